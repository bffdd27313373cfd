"""What the process knows of one pool while it runs: what was set by hand, and how other tenants' demand stands."""

from dataclasses import dataclass, field

from console.simulator.provider.demand import Curve, Surge


@dataclass
class Market:
    """One pool's demand side while the process runs."""

    given: int  # machines it was started with
    total: int
    curve: Curve
    auto: bool
    wanted: int
    surge: Surge | None = None
    version: int = 1
    seen: tuple[int, int, int] = field(default=(-1, -1, -1))
