"""Which machines go first, when some must (DESIGN 6).

Not yet Ready; then without pods (but DaemonSets); then the node whose pods have the least unsaved time; spread so that no cluster
loses more than its share; ties by machine id.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from console.clusters.models import ComputeClass, Machine


@dataclass(frozen=True)
class MachineView:
    """A machine as the plan sees it. `unsaved` is the longest time, in seconds, that a pod of its node would lose."""

    id: UUID
    cluster: UUID
    compute_class: ComputeClass
    state: Machine.State
    gpus: int
    asked_at: datetime
    was_ready: bool = False  # its node was Ready once
    ready: bool = False
    has_node: bool = False
    draining: bool = False
    kept: bool = False  # a person or a budget stopped its drain, and what is asked for has not changed since
    lost: str = ""  # why it is beyond hope: the provider no longer has it, and its node is not Ready either
    returns: bool = True  # whether the provider gets it back by our ending it
    idle: bool = True  # no pods but DaemonSets
    unsaved: float = 0.0

    @property
    def counts(self) -> bool:
        """Toward what was asked for: asked, booting or joined, and not draining."""
        return self.state in Machine.ALIVE and not self.draining

    @property
    def remains(self) -> bool:
        """A node that outlived its machine."""
        return self.has_node and self.state in (Machine.State.GONE, Machine.State.GIVEN_UP)


def _order(machine: MachineView) -> tuple[bool, bool, float, UUID]:
    return machine.ready, not machine.idle, machine.unsaved, machine.id


def cheapest(machines: Iterable[MachineView], number: int) -> list[MachineView]:
    """The `number` machines whose loss costs least; none for a number below one."""
    return sorted(machines, key=_order)[: max(0, number)]


def fair_victims(machines: Collection[MachineView], number: int) -> list[MachineView]:
    """The same over several clusters, none of which loses more than its share of the machines (rounded up to a whole one)."""
    number = min(number, len(machines))
    if number <= 0:
        return []
    held = Counter(machine.cluster for machine in machines)
    most = {cluster: -(-number * count // len(machines)) for cluster, count in held.items()}
    lost: Counter[UUID] = Counter()
    victims: list[MachineView] = []
    for machine in sorted(machines, key=_order):
        if len(victims) < number and lost[machine.cluster] < most[machine.cluster]:
            lost[machine.cluster] += 1
            victims.append(machine)
    return victims
