"""Writing drains: the row and its announcement in one transaction, so that neither can be without the other or come twice.

Whoever starts or stops a drain has locked the cluster, its machine and its node before (pool, cluster, machine, node, drain).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from console.capacity.enqueue import enqueue_on_commit
from console.capacity.models import Drain, Reclaim
from console.clusters.changes import count_allocated
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.timeline.changes import HALFTIDE, Actor, Change
from console.timeline.models import Entry

Cause, State = Drain.Cause, Drain.State

DRIVE = "capacity.drive_drains"
REASONS = {Cause.PREEMPTED: "TogetherPreempted", Cause.SCALED_DOWN: "TogetherScaledDown", Cause.REPAIR: "TogetherScaledDown"}


@dataclass(frozen=True)
class Start:
    """A machine that shall go, its node if it has one, and why: the second half of "… goes back: atlas-serve needs 8 GPUs"."""

    machine: Machine
    node: Node | None
    cause: str
    why: str


def start_drains(
    made: Change,
    cluster: Cluster,
    starts: Sequence[Start],
    asked_by: str,
    now: datetime,
    *,
    deadline: datetime | None = None,
    actor: Actor = HALFTIDE,
    reclaim: Reclaim | None = None,
) -> list[Drain]:
    """Write that machines of a cluster shall go, each as an open drain that is due now. Nothing is sent from here.

    `deadline` is at the latest, and by default, the drain window (setting) from `now`. A machine has one open drain: a second
    notice only moves its deadline earlier, and a preemption makes it one.
    """
    last = now + timedelta(seconds=settings.DRAIN_WINDOW)
    until = min(deadline or last, last)
    machines = [start.machine.pk for start in starts]
    rows = made.lock(Drain.objects.filter(machine__in=machines, state__in=Drain.OPEN))
    known = {row.machine_id: row for row in (*rows, *made.pending(Drain))}
    drains = []
    for start in starts:
        drain = known.get(start.machine.pk)
        if drain is None:
            drain = known[start.machine.pk] = _new(made, cluster, start, asked_by, now, until, actor, reclaim)
        else:
            _second_notice(made, cluster, drain, start, until, actor, reclaim)
        drains.append(drain)
    count_allocated(made, cluster)
    wake_drains(cluster.pk)
    return drains


def start_drain(
    made: Change,
    cluster: Cluster,
    machine: Machine,
    node: Node | None,
    cause: str,
    why: str,
    asked_by: str,
    now: datetime,
    *,
    deadline: datetime | None = None,
    actor: Actor = HALFTIDE,
) -> Drain:
    """The same for a single machine."""
    start = Start(machine, node, cause, why)
    return start_drains(made, cluster, [start], asked_by, now, deadline=deadline, actor=actor)[0]


def _new(
    made: Change,
    cluster: Cluster,
    start: Start,
    asked_by: str,
    now: datetime,
    until: datetime,
    actor: Actor,
    reclaim: Reclaim | None,
) -> Drain:
    machine, node = start.machine, start.node
    drain = Drain(
        cluster=cluster,
        machine=machine,
        node_uid=node.uid if node is not None else "",
        node_name=node.name if node is not None else machine.node_name,
        cause=start.cause,
        why=start.why[:300],
        asked_by=asked_by[:200],
        reclaim=reclaim,
        started_at=now,
        deadline=until,
        due_at=now,
    )
    made.save(cluster.stream, drain)
    machine.drain_started_at = now
    made.save(cluster.stream, machine, "drain_started_at")
    if node is not None:
        node.draining = True
        made.save(cluster.stream, node, "draining")
    _announce(made, cluster, drain, actor)
    return drain


def _second_notice(
    made: Change, cluster: Cluster, drain: Drain, start: Start, until: datetime, actor: Actor, reclaim: Reclaim | None
) -> None:
    """The deadline moves earlier or not at all; a preemption is stronger than what was going on, and is announced."""
    stronger = start.cause == Cause.PREEMPTED and drain.cause != Cause.PREEMPTED
    if until >= drain.deadline and not stronger:
        return
    drain.deadline = min(until, drain.deadline)
    drain.due_at = made.now
    made.save(cluster.stream, drain, "deadline", "due_at")
    if stronger:
        drain.cause, drain.why, drain.announced_at, drain.reclaim = start.cause, start.why[:300], None, reclaim
        made.save(cluster.stream, drain, "cause", "why", "announced_at", "reclaim")
        _announce(made, cluster, drain, actor)
        return
    for entry in Entry.objects.filter(stream=cluster.stream, own_event=event_name(drain.pk, drain.cause)):
        entry.message = announcement(drain)
        made.save(cluster.stream, entry, "message")


def stop_drain(made: Change, cluster: Cluster, drain: Drain, node: Node | None, note: str, due_at: datetime | None) -> None:
    """End an open drain without removing anything: the node counts again. Cluster, node and drain are locked by the caller."""
    drain.state, drain.note, drain.due_at = State.STOPPED, note[:300], due_at
    made.save(cluster.stream, drain, "state", "note", "due_at")
    if node is not None:
        node.draining = False
        made.save(cluster.stream, node, "draining")
        count_allocated(made, cluster)


def take_back(made: Change, cluster: Cluster, drain: Drain, node: Node | None, actor: Actor, by: str) -> None:
    """A person has opened the node: a drain that is no preemption stops, the entry says who, and our marks come off next."""
    stop_drain(made, cluster, drain, node, f"taken back by {by}", made.now)
    message = f"{drain.node_name} stays: taken back by {by}, so its drain stops"
    about, data = subject(drain), {"drain": str(drain.pk)}
    made.entry(cluster.stream, "DrainTakenBack", message, actor=actor, subject=about, compute_class=class_of(drain), data=data)


def wake_drains(cluster_id: UUID) -> None:
    """Hint to a worker, after this transaction commits, that a drain is due. The row is the wake-up."""
    enqueue_on_commit(DRIVE, str(cluster_id))


def event_name(drain_id: UUID, cause: str) -> str:
    """The name of our Event on the Node: the same on every try, so that Kubernetes itself refuses a second one."""
    return f"halftide-{cause.replace('_', '-')}-{drain_id}"


def announcement(drain: Drain) -> str:
    """What the timeline and the Event say."""
    verb = "goes back" if drain.cause == Cause.PREEMPTED else "goes"
    return f"{drain.node_name} {verb}: {drain.why}, gone by {drain.deadline:%H:%M:%S} UTC"


def subject(drain: Drain) -> tuple[str, str, str]:
    return ("Node", drain.node_name, drain.node_uid)


def class_of(drain: Drain) -> str:
    """Of its node. Only preemptible ones are preempted; for the others the machine is asked."""
    return ComputeClass.PREEMPTIBLE if drain.cause == Cause.PREEMPTED else drain.machine.compute_class


def _announce(made: Change, cluster: Cluster, drain: Drain, actor: Actor) -> None:
    made.entry(
        cluster.stream,
        REASONS[Cause(drain.cause)],
        announcement(drain),
        actor=actor,
        severity=Entry.Severity.WARNING if drain.cause == Cause.PREEMPTED else Entry.Severity.INFO,
        subject=subject(drain),
        compute_class=class_of(drain),
        own_event=event_name(drain.pk, drain.cause),
        drain_id=drain.pk,
        data={"gpus": drain.machine.gpus, "deadline": drain.deadline.isoformat(), "why": drain.why},
    )
