"""What the watch saw that a drain should know: a pod's end, a node that is gone, a person's uncordon.

Called by `sync` inside its own change, nodes before pods (the one order of locks): it writes what is true and wakes the drain's
next step. It decides nothing that `drain_step` decides.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, prefetch_related_objects

from console.capacity.drains.changes import class_of, subject, take_back, wake_drains
from console.capacity.drains.rows import fate_of, put_fates
from console.capacity.drains.verdicts import Fate, ended, merge, seen_told, vanished
from console.capacity.models import Drain, PodVerdict
from console.clusters.models import Cluster, Node
from console.timeline.changes import KUBERNETES, Change
from console.timeline.models import Entry

State = Drain.State


@dataclass(frozen=True)
class PodEnd:
    """How a pod ended. `observed`: its terminated state was seen, with an exit code; else it is only known to be gone.

    `told_at`: when Kubernetes was asked to delete it, None where nobody asked; `grace`: the seconds it was given then.
    """

    uid: str
    ended_at: datetime
    exit_code: int | None
    observed: bool
    told_at: datetime | None = None
    grace: int = 0


def hold(made: Change, cluster: Cluster, nodes: Sequence[Node], ends: Sequence[PodEnd]) -> None:
    """Lock all drains that a batch concerns, at once and so by id: one node's after another's would cross what a round writes."""
    machines = [node.machine_id for node in nodes if node.machine_id]
    of_nodes = Q(node_uid__in=[node.uid for node in nodes]) | Q(machine__in=machines)
    of_pods = Q(pk__in=_of_pods(cluster, [end.uid for end in ends]))
    made.lock(Drain.objects.filter(Q(of_nodes, cluster=cluster, state__in=Drain.OPEN) | of_pods))


def _of_pods(cluster: Cluster, uids: Collection[str]) -> list[UUID]:
    """The drains that do not know yet how these pods ended."""
    verdicts = PodVerdict.objects.filter(drain__cluster=cluster, pod_uid__in=uids)
    open_ones = verdicts.filter(Q(ended_at=None) | Q(verdict=PodVerdict.Verdict.UNKNOWN))
    return list(open_ones.values_list("drain", flat=True))


def pod_ended(made: Change, cluster: Cluster, ends: Sequence[PodEnd]) -> None:
    """Note how pods of drains ended; the drain of the last one is due at once. Other pods are nobody's business here."""
    told = {end.uid: end for end in ends}
    rows = made.lock(Drain.objects.filter(pk__in=_of_pods(cluster, told))) if told else []
    prefetch_related_objects(rows, "verdicts")  # once they are locked: nobody changes them now
    written: list[tuple[Drain, Fate]] = []
    emptied: list[Drain] = []
    for row in rows:
        before = {verdict.pod_uid: fate_of(verdict) for verdict in row.verdicts.all()}
        after = dict(before)
        for uid in before.keys() & told.keys():
            end, fate = told[uid], before[uid]
            if end.told_at is not None:
                fate = seen_told(fate, min(made.now, end.told_at), end.grace, row.cause == Drain.Cause.PREEMPTED)
            seen = end.observed and end.exit_code is not None
            found = ended(fate, end.ended_at, end.exit_code) if seen else vanished(fate, end.ended_at)
            after[uid] = merge(before[uid], found)
        changed = [fate for uid, fate in after.items() if fate != before[uid]]
        if changed:
            written += [(row, fate) for fate in changed]
            made.save(cluster.stream, row)
        if changed and row.state in Drain.OPEN and not any(fate.open for fate in after.values()):
            emptied.append(row)
    put_fates(written)
    _wake(made, cluster, emptied)


def node_gone(made: Change, cluster: Cluster, uid: str) -> None:
    """A node is no longer there: its drain, if one is open, looks again at once."""
    _wake(made, cluster, made.lock(Drain.objects.filter(cluster=cluster, node_uid=uid, state__in=Drain.OPEN)))


def node_uncordoned_by_person(made: Change, cluster: Cluster, uid: str) -> None:
    """Somebody opened the node of a drain: it stops. Where the machine goes anyway, that is said, and the node closed again."""
    node = _node(made, cluster, uid)
    for row in made.lock(Drain.objects.filter(cluster=cluster, node_uid=uid, state__in=Drain.OPEN)):
        if row.cause != Drain.Cause.PREEMPTED:
            take_back(made, cluster, row, node, KUBERNETES, "a person")
            wake_drains(cluster.pk)
        elif row.terminated_at is None:
            message = f"{row.node_name} was opened by a person, but goes anyway: {row.why}, gone by {row.deadline:%H:%M:%S} UTC"
            made.entry(
                cluster.stream,
                "NodeUncordoned",
                message,
                actor=KUBERNETES,
                severity=Entry.Severity.WARNING,
                subject=subject(row),
                compute_class=class_of(row),
            )
            _wake(made, cluster, [row])


def _node(made: Change, cluster: Cluster, uid: str) -> Node | None:
    """The row that this change already holds, or else the locked one: two of the same would be counted twice."""
    held = next((row for row in made.pending(Node) if row.uid == uid and row.cluster_id == cluster.pk), None)
    return held or next(iter(made.lock(Node.objects.filter(cluster=cluster, uid=uid))), None)


def _wake(made: Change, cluster: Cluster, rows: Sequence[Drain]) -> None:
    """All due now, with one hint: a worker takes everything that is due."""
    for row in rows:
        row.due_at = made.now
        made.save(cluster.stream, row, "due_at")
    if rows:
        wake_drains(cluster.pk)
