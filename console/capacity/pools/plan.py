"""The only place that decides about capacity: who gets machines, who gives them back, and what still has to wait.

Pure: views of what is there go in, decisions come out, and the same views give the same decisions. Whoever carries them out and
asks again with what came of it gets no further ones (a fixed point), so a run may be repeated, interrupted or doubled.
All counts are whole machines; the pool's GPU type says how many GPUs one has (DESIGN 6).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from console.capacity.models import Drain
from console.capacity.pools.victims import MachineView, cheapest, fair_victims
from console.clusters.models import ComputeClass, Machine

STANDARD, PREEMPTIBLE = ComputeClass.STANDARD, ComputeClass.PREEMPTIBLE
LEAST_PACE = 4  # launches in flight that even a small pool may have
PACE_SHARE = 10  # … and a large one: one in ten of its machines

TAKEN_BACK, CALLED_OFF, GIVEN_UP, LOST = "TogetherPreempted", "TogetherScaledDown", "LaunchGivenUp", "MachineLost"


@dataclass(frozen=True)
class PoolView:
    """What the provider said. `heard` is False while it does not answer: nothing is begun then, for it could not be finished."""

    total: int
    free: int
    owed: int  # standard demand of other tenants that waits for a machine of ours
    returning: int  # machines on their way back that `free` and `owed` do not show yet
    heard: bool = True
    on: bool = True  # the stop switch
    next_try_at: datetime | None = None

    @property
    def pace(self) -> int:
        """How many launches may be in flight: 10 % of the pool, at least 4."""
        return max(LEAST_PACE, self.total // PACE_SHARE)


@dataclass(frozen=True)
class ClusterView:
    id: UUID
    name: str
    standard: int  # machines asked for
    preemptible: int
    blocked: str = ""  # why nothing may be started for it, in a sentence's second half

    def wanted(self, compute_class: str) -> int:
        return self.standard if compute_class == STANDARD else self.preemptible


@dataclass(frozen=True)
class Launch:
    cluster: UUID
    compute_class: ComputeClass


@dataclass(frozen=True)
class Removal:
    """Of a machine that has no node: terminated without a drain. `reason` is the timeline's."""

    machine: UUID
    reason: str
    why: str


@dataclass(frozen=True)
class DrainStart:
    machine: UUID
    cause: Drain.Cause
    why: str


@dataclass(frozen=True)
class Plan:
    launches: tuple[Launch, ...] = ()
    removals: tuple[Removal, ...] = ()
    drains: tuple[DrainStart, ...] = ()
    waiting: Mapping[tuple[UUID, ComputeClass], int] = field(default_factory=dict)  # machines that nothing is free for
    held: Mapping[tuple[UUID, ComputeClass], int] = field(default_factory=dict)  # machines that come when others have arrived

    @property
    def settled(self) -> bool:
        return not (self.launches or self.removals or self.drains)


def plan(
    pool: PoolView, clusters: Sequence[ClusterView], machines: Sequence[MachineView], now: datetime, give_up_after: timedelta
) -> Plan:
    """Decide. With the stop switch off, while the provider is silent, or for a blocked cluster, nothing is begun or counted."""
    open_to_us = {cluster.id: cluster for cluster in clusters if pool.on and pool.heard and not cluster.blocked}
    goes = _Goes([machine for machine in machines if machine.cluster in open_to_us])
    for machine in goes.left():
        _end_of_hope(goes, machine, now, give_up_after)
    for cluster in open_to_us.values():
        _scale_down(goes, cluster, STANDARD)
        _scale_down(goes, cluster, PREEMPTIBLE)
    _reclaim(goes, pool, open_to_us)
    in_flight = sum(machine.counts and not machine.was_ready for machine in machines if machine.id not in goes.ids)
    backing_off = pool.next_try_at is not None and now < pool.next_try_at
    left = max(0, pool.free - pool.owed - unsent(goes.left())) if not backing_off else 0
    launches, waiting, held = _refill(open_to_us, goes.left(), left, max(0, pool.pace - in_flight))
    return Plan(tuple(launches), tuple(goes.removals), tuple(goes.drains), waiting, held)


def unsent(machines: Iterable[MachineView], compute_class: ComputeClass | None = None) -> int:
    """Launches that are committed but that the provider has not taken yet, so that `free` does not know of them."""
    asked = [machine for machine in machines if machine.counts and machine.state == Machine.State.ASKED]
    return sum(compute_class in (None, machine.compute_class) for machine in asked)


class _Goes:
    """Machines that this plan sends away: terminated where they have no node, drained where they have one."""

    def __init__(self, machines: Sequence[MachineView]) -> None:
        self.machines = machines
        self.removals: list[Removal] = []
        self.drains: list[DrainStart] = []
        self.ids: set[UUID] = set()
        self.returning = 0  # machines that the provider gets back by this plan

    def add(self, machine: MachineView, cause: Drain.Cause, reason: str, why: str) -> None:
        self.ids.add(machine.id)
        self.returning += machine.returns and not machine.remains
        if machine.has_node:
            self.drains.append(DrainStart(machine.id, cause, why))
        else:
            self.removals.append(Removal(machine.id, reason, why))

    def left(self) -> list[MachineView]:
        return [machine for machine in self.machines if machine.id not in self.ids]


def _end_of_hope(goes: _Goes, machine: MachineView, now: datetime, give_up_after: timedelta) -> None:
    """Machines that the provider no longer has, and those that never became a Ready node in time. Once: they stop counting."""
    if machine.draining:
        return
    if machine.remains:
        late = machine.state == Machine.State.GIVEN_UP
        why = "it became a node after it was given up" if late else "its machine is gone and its node was left behind"
        goes.add(machine, Drain.Cause.SCALED_DOWN, LOST, why)
    elif machine.counts and machine.lost:
        cause = Drain.Cause.PREEMPTED if machine.compute_class == PREEMPTIBLE else Drain.Cause.REPAIR
        goes.add(machine, cause, LOST, machine.lost)
    elif machine.counts and not machine.was_ready and not machine.kept and now - machine.asked_at >= give_up_after:
        minutes = f"{give_up_after.total_seconds() / 60:g}"
        goes.add(machine, Drain.Cause.REPAIR, GIVEN_UP, f"it did not become a Ready node within {minutes} minutes")


def _scale_down(goes: _Goes, cluster: ClusterView, compute_class: ComputeClass) -> None:
    """Too many of a class go. One whose drain a person or a budget stopped stays, and no other goes in its stead."""
    mine = [each for each in goes.left() if each.counts and (each.cluster, each.compute_class) == (cluster.id, compute_class)]
    wanted = cluster.wanted(compute_class)
    too_many = len(mine) - wanted - sum(machine.kept for machine in mine)
    for machine in cheapest([machine for machine in mine if not machine.kept], too_many):
        why = f"{cluster.name} asks for {wanted * machine.gpus} {compute_class.value} GPUs now"
        goes.add(machine, Drain.Cause.SCALED_DOWN, CALLED_OFF, why)


def _have(machines: Iterable[MachineView]) -> Counter[tuple[UUID, ComputeClass]]:
    return Counter((machine.cluster, machine.compute_class) for machine in machines if machine.counts)


def _reclaim(goes: _Goes, pool: PoolView, clusters: Mapping[UUID, ClusterView]) -> None:
    """Standard demand, ours and other tenants', takes preemptible machines: as many as needed, none that are coming back anyway.

    Preemptible launches not yet sent take from `free` too, and are the first to go.
    """
    have = _have(goes.left())
    short = {each.name: gap for each in clusters.values() if (gap := each.standard - have[each.id, STANDARD]) > 0}
    needed = pool.owed + sum(short.values()) + unsent(goes.left(), STANDARD)
    untaken = pool.free - min(pool.free, unsent(goes.left(), PREEMPTIBLE))
    candidates = [each for each in goes.left() if each.counts and each.compute_class == PREEMPTIBLE]
    for machine in fair_victims(candidates, needed - untaken - pool.returning - goes.returning):
        reasons = [f"{name} needs {gap * machine.gpus} standard GPUs" for name, gap in short.items()]
        if pool.owed or not reasons:
            reasons.append("standard demand in this pool needs it")
        goes.add(machine, Drain.Cause.PREEMPTED, TAKEN_BACK, "; ".join(reasons))


Numbers = dict[tuple[UUID, ComputeClass], int]


def _refill(
    clusters: Mapping[UUID, ClusterView], machines: Iterable[MachineView], left: int, slots: int
) -> tuple[list[Launch], Numbers, Numbers]:
    """Launch toward what is asked for: standard first, then preemptible, each fairly, out of `left`, `slots` at a time."""
    have = _have(machines)
    turns: list[Launch] = []
    waiting: Numbers = {}
    for compute_class in (STANDARD, PREEMPTIBLE):
        gaps = {cluster: (have[cluster, compute_class], view.wanted(compute_class)) for cluster, view in clusters.items()}
        given = fair_turns(gaps, left - len(turns))
        turns += [Launch(cluster, compute_class) for cluster in given]
        got = Counter(given)
        for cluster, (has, wants) in gaps.items():
            if wants - has > got[cluster]:
                waiting[cluster, compute_class] = wants - has - got[cluster]
    held = Counter((turn.cluster, turn.compute_class) for turn in turns[slots:])
    return turns[:slots], waiting, dict(held)


def fair_turns(gaps: Mapping[UUID, tuple[int, int]], machines: int) -> list[UUID]:
    """Who gets the next machines, one after another: always the cluster with the smallest part of what it asks for (max-min).

    `gaps` are (has, wants) by cluster. Ties go by id, so that the same views give the same answer.
    """
    has = {cluster: have for cluster, (have, _) in gaps.items()}
    turns: list[UUID] = []
    while len(turns) < machines:
        short = [cluster for cluster, (_, wants) in gaps.items() if has[cluster] < wants]
        if not short:
            break
        first = min(short, key=lambda cluster: (has[cluster] / gaps[cluster][1], cluster))
        has[first] += 1
        turns.append(first)
    return turns
