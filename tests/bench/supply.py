"""How soon a machine is asked for: after capacity has come back, and after somebody has moved a target."""

import time
from collections.abc import Callable

from console.capacity.models import Pool, Wait
from tests.bench import world
from tests.bench.report import Book
from tests.installation import Installation, within


def run(here: Installation, book: Book) -> None:
    cluster = world.cluster("bench", 4)
    pool = here.control("GET", f"pools/{world.REGION}/{world.GPU_TYPE}")
    _others(here, pool["free"])
    world.want(cluster, 5)
    waits = Wait.objects.filter(cluster=cluster, preemptible__gt=0)
    assert within(30, lambda: waits.exists() and Pool.objects.filter(tries__gte=2).exists(), 0.2), "nothing waits"
    back = _until_asked(here, lambda: _others(here, 0))
    book.at_most("capacity is back → first launch, while backing off", back, "s", 1)
    world.settle(cluster)
    book.at_most("a target is raised → first launch", _until_asked(here, lambda: world.want(cluster, 6)), "s", 1)
    world.settle(cluster)


def _others(here: Installation, machines: int) -> None:
    """What other tenants want of the pool."""
    here.control("POST", "demand", {"region": world.REGION, "gpu_type": world.GPU_TYPE, "machines": machines})


def _until_asked(here: Installation, cause: Callable[[], None]) -> float:
    """Seconds from the cause to the first new machine at the provider."""

    def tokens() -> set[str]:
        found = here.control("GET", f"machines?region={world.REGION}&gpu_type={world.GPU_TYPE}")
        return {machine["token"] for machine in found["machines"]}

    before, began = tokens(), time.monotonic()
    cause()
    assert within(30, lambda: tokens() - before, 0.01), "nothing was asked for"
    return time.monotonic() - began
