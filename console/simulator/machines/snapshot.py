"""A cluster at one moment, as the pure parts read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from console.simulator.values import Json

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Snapshot:
    """What there is. Objects are read, never changed."""

    nodes: Sequence[Json] = ()
    pods: Sequence[Json] = ()
    jobs: Sequence[Json] = ()
    replica_sets: Sequence[Json] = ()
    daemon_sets: Sequence[Json] = ()
    deployments: Sequence[Json] = ()
    budgets: Sequence[Json] = ()
    leases: Mapping[str, Json] = field(default_factory=dict)


def active(pod: Json) -> bool:
    """Neither finished nor on its way out: what a controller counts as one of its replicas."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Succeeded", "Failed")


def finished(pod: Json) -> bool:
    """Whether its containers have ended for good."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def condition(body: Json, kind: str) -> Json | None:
    """One condition of an object."""
    found = [item for item in body.get("status", {}).get("conditions") or [] if item["type"] == kind]
    return found[0] if found else None


def is_true(body: Json, kind: str) -> bool:
    """Whether a condition is True."""
    found = condition(body, kind)
    return found is not None and found["status"] == "True"


def gpus(pod: Json) -> int:
    """GPUs that a pod asks for."""
    return sum(int((item.get("resources", {}).get("requests") or {}).get(GPU, 0)) for item in pod["spec"].get("containers") or [])


def owner(pod: Json) -> Json | None:
    """Its controller."""
    return next((item for item in pod["metadata"].get("ownerReferences") or [] if item.get("controller")), None)
