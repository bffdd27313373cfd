"""A machine as the provider knows it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from console.simulator.values import Json

SHOWN = (
    "token",
    "provider_id",
    "cluster_id",
    "node_name",
    "compute_class",
    "state",
    "asked_at",
    "booted_at",
    "region",
    "gpu_type",
)
BOOTING, RUNNING, LOST, TERMINATED = "booting", "running", "lost", "terminated"


@dataclass(frozen=True)
class Machine:
    """One machine that Halftide asked for. `token` is the idempotency key of the asking."""

    token: str
    region: str
    gpu_type: str
    cluster_id: str
    node_name: str
    compute_class: str
    provider_id: str = ""  # this, ip and asked_at are the provider's to fill in
    ip: str = ""
    asked_at: str = ""
    state: str = BOOTING
    booted_at: str | None = None
    joins_after: float | None = 0.0  # seconds from its boot to its Node; None: it never registers
    leaving: bool = False  # termination was asked for and takes a moment
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, Any]] = field(default_factory=list)

    def shown(self) -> Json:
        """As the control API says it."""
        return {key: getattr(self, key) for key in SHOWN}

    def kept(self) -> Json:
        """As the journal keeps it."""
        return asdict(self)
