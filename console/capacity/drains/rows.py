"""Drain rows as the step sees them, and what it decided back into rows: one transaction a round, under the run's fence.

Between reading and writing, others write too: the watch notes how pods ended, a second notice moves a deadline, a person takes a
node back. So a write names what it changed, gives way to them, and never un-says an end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from console.capacity.drains.changes import stop_drain, take_back
from console.capacity.drains.entries import say
from console.capacity.drains.verdicts import Fate, merge
from console.capacity.drains.views import DrainView
from console.capacity.models import Drain, PodVerdict
from console.capacity.pools.wakes import wake_pool
from console.clusters.changes import count_allocated
from console.clusters.leases import Held, guard
from console.clusters.models import Cluster, Machine, Node
from console.timeline.changes import KUBERNETES, Change, change

State = Drain.State
Pair = tuple[DrainView, DrainView]  # as it was read, as it is now

AT_ONCE = 500  # drains of one cluster that one round takes; the rest stay due
MOMENTS = ("cordoned_at", "announced_at", "told_at", "emptied_at", "terminated_at", "removed_at", "pods_left", "staying", "note")
FATE_FIELDS = [field.name for field in fields(Fate) if field.name != "uid"]


def due(cluster_id: UUID, now: datetime) -> list[Drain]:
    """A cluster's drains whose time has come, the longest due first, with their machines and verdicts. Two queries.

    Those of a cluster that is only observed wait until somebody lets Halftide act again.
    """
    rows = _due(cluster_id, now).select_related("machine").prefetch_related("verdicts")
    return list(rows.order_by("due_at", "pk")[:AT_ONCE])


def count_nodes(cluster_id: UUID) -> int:
    """How many nodes the cluster has, as far as is known here."""
    return Node.objects.filter(cluster_id=cluster_id).count()


def is_due(cluster_id: UUID, now: datetime) -> bool:
    """Whether a cluster has such drains."""
    return _due(cluster_id, now).exists()


def _due(cluster_id: UUID, now: datetime) -> QuerySet[Drain]:
    return Drain.objects.filter(cluster=cluster_id, cluster__mode=Cluster.Mode.ACT, due_at__lte=now)


def view_of(row: Drain) -> DrainView:
    """A row with its verdicts as the step sees it."""
    same = {name: getattr(row, name) for name in ("cause", "state", "started_at", "deadline", "node_uid", "due_at", *MOMENTS)}
    return DrainView(id=row.pk, fates=tuple(fate_of(verdict) for verdict in row.verdicts.all()), **same)


def fate_of(verdict: PodVerdict) -> Fate:
    return Fate(uid=verdict.pod_uid, **{name: getattr(verdict, name) for name in FATE_FIELDS})


def put_fates(changed: Iterable[tuple[Drain, Fate]]) -> None:
    """Write verdict rows of any number of drains, new ones and changed ones, in one statement."""
    rows = [
        PodVerdict(drain=drain, pod_uid=fate.uid, **{name: getattr(fate, name) for name in FATE_FIELDS})
        for drain, fate in changed
    ]
    PodVerdict.objects.bulk_create(rows, update_conflicts=True, unique_fields=["drain", "pod_uid"], update_fields=FATE_FIELDS)


def store(held: Held, cluster_id: UUID, pairs: Sequence[Pair], now: datetime) -> None:
    """Write what a round found out and decided. Raises LeaseLost where another run has taken over: then nothing is written."""
    loud = {before.id: (before, after) for before, after in pairs if replace(after, due_at=before.due_at) != before}
    _look_again([(before, after) for before, after in pairs if before.id not in loud and after.due_at != before.due_at])
    if not loud:
        return
    with change(now) as made:
        guard(held)
        _write(made, cluster_id, loud)


def _look_again(pairs: Sequence[Pair]) -> None:
    """When the next look is, quietly: nobody needs to see that. One statement; a drain that somebody woke meanwhile stays due."""
    if not pairs:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE capacity_drain SET due_at = new.due_at"
            " FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[]) AS new (id, was, due_at)"
            " WHERE capacity_drain.id = new.id AND capacity_drain.due_at = new.was",
            [
                [before.id for before, _ in pairs],
                [before.due_at for before, _ in pairs],
                [after.due_at for _, after in pairs],
            ],
        )


def _write(made: Change, cluster_id: UUID, pairs: dict[UUID, Pair]) -> None:
    ending = [before.id for before, after in pairs.values() if _of_machine(before) != _of_machine(after)]
    opening = [after for before, after in pairs.values() if _stops(before, after)]
    joining = [after for before, after in pairs.values() if after.node_uid != before.node_uid]
    touched = {after.node_uid for after in opening + joining}
    cluster = made.lock(Cluster.objects.filter(pk=cluster_id))[0] if touched else Cluster(pk=cluster_id)
    machines = {row.pk: row for row in made.lock(Machine.objects.filter(drains__in=ending))} if ending else {}
    nodes = {row.uid: row for row in made.lock(Node.objects.filter(cluster_id=cluster_id, uid__in=touched))} if touched else {}
    rows = made.lock(Drain.objects.filter(pk__in=pairs))
    verdicts: dict[UUID, list[Fate]] = {row.pk: [] for row in rows}
    for verdict in PodVerdict.objects.filter(drain__in=pairs):
        verdicts[verdict.drain_id].append(fate_of(verdict))
    changed: list[tuple[Drain, Fate]] = []
    for row in rows:
        before, after = pairs[row.pk]
        stored = verdicts[row.pk]
        fates = _merged(stored, after.fates)
        known = {fate.uid: fate for fate in stored}
        changed += [(row, fate) for fate in fates if known.get(fate.uid) != fate]
        if (row.state, row.cause) != (before.state, before.cause):
            made.save(cluster_id, row)  # stopped by a person, or made a preemption: what was decided before is void
            continue
        _machine(made, cluster_id, machines.get(row.machine_id), row, before, after)
        node = nodes.get(after.node_uid)
        if _stops(before, after):
            _stop(made, cluster, row, node, after)
        elif node is not None:
            node.draining = True
            made.save(cluster_id, node, "draining")
            count_allocated(made, cluster)
        if node is None:  # not in our picture yet: only with its row, which then counts as draining, is it the drain's
            after = replace(after, node_uid=before.node_uid)
        _row(made, cluster_id, row, before, after)
        if row.state != State.STOPPED or after.due_at is None:
            say(made, row, before.state, stored, fates)
    put_fates(changed)


def _merged(stored: list[Fate], found: Iterable[Fate]) -> list[Fate]:
    """What a round found, combined with what others have written meanwhile."""
    known = {fate.uid: fate for fate in stored}
    merged = {fate.uid: merge(known[fate.uid], fate) if fate.uid in known else fate for fate in found}
    return list({**known, **merged}.values())


def _row(made: Change, stream: UUID, row: Drain, before: DrainView, after: DrainView) -> None:
    names = [name for name in ("state", "node_uid", *MOMENTS) if getattr(before, name) != getattr(after, name)]
    for name in names:
        setattr(row, name, getattr(after, name))
    if row.due_at == before.due_at:  # else somebody woke it meanwhile, and it stays due
        row.due_at = after.due_at
    made.save(stream, row, *names, "due_at")


def _of_machine(view: DrainView) -> tuple[bool, bool]:
    """Whether the machine is on its way out, and gone."""
    return view.state in {State.DRAINED, State.TIMED_OUT, State.REMOVED}, view.terminated_at is not None


def _stops(before: DrainView, after: DrainView) -> bool:
    return after.state == State.STOPPED and before.state != State.STOPPED


def _machine(made: Change, stream: UUID, machine: Machine | None, row: Drain, before: DrainView, after: DrainView) -> None:
    """Leaving before `terminate` is sent, gone once the provider has confirmed it."""
    if machine is None or _of_machine(before) == _of_machine(after):
        return
    if after.terminated_at is not None:
        if machine.state != Machine.State.GIVEN_UP:
            machine.state = Machine.State.GONE
        machine.gone_at = machine.gone_at or after.terminated_at
        wake_pool(machine.region_id, machine.gpu_type_id)
    elif machine.state in Machine.ALIVE:
        machine.state, machine.why_gone = Machine.State.LEAVING, row.why
    made.save(stream, machine, "state", "gone_at", "why_gone")


def _stop(made: Change, cluster: Cluster, row: Drain, node: Node | None, after: DrainView) -> None:
    """Held at the deadline, or (then our marks are still to come off) opened by a person."""
    if after.due_at is None:
        stop_drain(made, cluster, row, node, after.note, None)
    else:
        take_back(made, cluster, row, node, KUBERNETES, "a person")
