"""What Halftide would do to a cluster that it only observes, as sentences: the plan itself, asked as if it might act.

Pure, and over the same views as the plan, so that the list cannot say anything else than what acting would begin with.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from console.capacity.models import Drain
from console.capacity.pools.plan import ClusterView, Plan, PoolView, plan
from console.capacity.pools.victims import MachineView
from console.clusters.models import ComputeClass, Machine

NOT_HEARD = "the provider of machines does not answer"


@dataclass(frozen=True)
class Would:
    """One thing. `kind`: launch, drain, end, wait, or nothing."""

    kind: str
    text: str


@dataclass(frozen=True)
class Names:
    """What sentences call things: machines by their node's name, and how many GPUs a node has."""

    step: int
    machines: Mapping[UUID, str]

    def some(self, number: int, compute_class: str) -> str:
        machines = "machine" if number == 1 else "machines"
        return f"{number} {compute_class} {machines} ({number * self.step} GPUs)"


def would(
    pool: PoolView,
    clusters: Sequence[ClusterView],
    machines: Sequence[MachineView],
    mine: UUID,
    names: Names,
    now: datetime,
    give_up_after: timedelta,
) -> tuple[Would, ...]:
    """In the order in which it would begin. `clusters` has the one looked at as if Halftide acted on it."""
    view = next(cluster for cluster in clusters if cluster.id == mine)
    if view.blocked or not pool.heard:
        return (Would("nothing", f"Nothing for now: {view.blocked or NOT_HEARD}."),)
    decided = plan(pool, clusters, machines, now, give_up_after)
    own = [machine for machine in machines if machine.cluster == mine]
    found = (*_goes(decided, own, names), *_under_way(decided, own, names), *_comes(decided, mine, names))
    return found or (Would("nothing", "Nothing: the cluster has what it asks for."),)


def _goes(decided: Plan, own: Iterable[MachineView], names: Names) -> list[Would]:
    here = {machine.id for machine in own}
    drains = [
        Would("drain", f"Drain and {_ends(start.cause)} {names.machines[start.machine]}: {start.why}.")
        for start in decided.drains
        if start.machine in here
    ]
    return drains + [
        Would("end", f"End {names.machines[removal.machine]} before it joins: {removal.why}.")
        for removal in decided.removals
        if removal.machine in here
    ]


def _ends(cause: Drain.Cause) -> str:
    return "give back" if cause == Drain.Cause.PREEMPTED else "remove"


def _under_way(decided: Plan, own: Iterable[MachineView], names: Names) -> list[Would]:
    """What was decided while Halftide acted, and has waited since."""
    ending = {removal.machine for removal in decided.removals}
    found = []
    unsent: Counter[str] = Counter()
    for machine in own:
        if machine.draining:
            found.append(Would("drain", f"Go on with the drain of {names.machines[machine.id]}."))
        elif machine.state == Machine.State.LEAVING:
            found.append(Would("end", f"End {names.machines[machine.id]}, which was called off."))
        elif machine.state == Machine.State.ASKED and machine.id not in ending:
            unsent[machine.compute_class.value] += 1
    found += [Would("launch", f"Launch {names.some(number, kind)}, as asked for before.") for kind, number in unsent.items()]
    return found


def _comes(decided: Plan, mine: UUID, names: Names) -> list[Would]:
    launches = Counter(launch.compute_class for launch in decided.launches if launch.cluster == mine)
    found = []
    for kind in (ComputeClass.STANDARD, ComputeClass.PREEMPTIBLE):
        if number := launches[kind]:
            found.append(Would("launch", f"Launch {names.some(number, kind.value)}."))
        if number := decided.held.get((mine, kind), 0):
            found.append(Would("wait", f"Launch {names.some(number, kind.value)} more, once others have arrived."))
        if number := decided.waiting.get((mine, kind), 0):
            found.append(Would("wait", f"Wait for {names.some(number, kind.value)}: the pool has none to give."))
    return found
