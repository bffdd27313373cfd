"""Into the ledger: lines about nodes, and Kubernetes' own Events. One fact is one row.

A repeat of an Event is the same uid with a higher count, so it moves its row; a new uid is a new row; that Kubernetes forgets
an Event after an hour changes nothing here (mustafaakin/kubernetes-event-exporter#197, kubernetes/kubernetes#50510). Our own
Events come back as proof that they arrived. Kubernetes' NodeReady and NodeNotReady tell what the node's condition told already:
whichever of the two comes second joins the row of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.clusters.models import Cluster, Node, Pod
from console.kube.marks import REPORTING_COMPONENT
from console.kube.shapes import EventShape
from console.sync import folding
from console.sync.room import Seen
from console.sync.words import NODE_UNCORDONED, TOLD_TWICE, Line
from console.timeline.changes import Actor, Change
from console.timeline.models import Entry

# How far apart the two tellings of one fact may be: the node controller's Event and our look at the condition.
SAME = timedelta(seconds=120)

SECOND = timedelta(seconds=1)  # Kubernetes' times are whole seconds

# How long an Event of a pod waits for its pod to be seen, and how many may wait.
ORPHAN_LIFE = timedelta(seconds=30)
MOST_ORPHANS = 1000


def wanted(event: EventShape, pod_events: str) -> bool:
    """Whether an Event may become a row, as far as it shows by itself: nodes all, pods as the setting says, others none."""
    if event.involved_kind == "Node" or is_own(event):
        return True
    return event.involved_kind == "Pod" and (pod_events == "all" or (pod_events == "warnings" and event.type == "Warning"))


def is_own(event: EventShape) -> bool:
    """Whether we emitted it, by its own word. One that lies gets no row and finds none."""
    return event.reporting_component == REPORTING_COMPONENT


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs, and since when."""

    node: str
    since: datetime
    compute_class: str


Places = Mapping[str, Place]
Nodes = Mapping[str, Node]


def places(made: Change, cluster: Cluster, uids: set[str]) -> dict[str, Place]:
    """By pod uid, for the pods among these that run on GPU nodes, those this change is about to write included."""
    if not uids:
        return {}
    classes = dict(Node.objects.filter(cluster=cluster, gpus__gt=0).values_list("name", "compute_class"))
    classes |= {node.name: node.compute_class for node in made.pending(Node) if node.gpus}
    pods = Pod.objects.filter(cluster=cluster, uid__in=uids, started_at__isnull=False)
    found = pods.values_list("uid", "node_name", "started_at")
    return {uid: Place(name, since, classes[name]) for uid, name, since in found if since and name in classes}


def pod_uids(events: Iterable[Seen]) -> set[str]:
    """The pods that these Events are about."""
    shapes = [item.shape for item in events if isinstance(item.shape, EventShape)]
    return {shape.involved_uid for shape in shapes if shape.involved_kind == "Pod" and not is_own(shape)}


def sort_out(events: Sequence[Seen], at_pods: Places, orphans: dict[str, Seen], now: datetime) -> list[EventShape]:
    """The Events that get rows now.

    Those of unseen pods wait in `orphans` for a moment: pods and Events come by two watches. What is said of a pod before it
    runs (it finds no room) is not about a GPU node.
    """
    ready: list[EventShape] = []
    for item in [*orphans.values(), *events]:
        event = item.shape
        assert isinstance(event, EventShape)
        if event.involved_kind != "Pod" or is_own(event):
            ready.append(event)
        elif place := at_pods.get(event.involved_uid):
            orphans.pop(event.uid, None)
            if event.last_at >= place.since - SECOND:
                ready.append(event)
        elif now - item.at > ORPHAN_LIFE or len(orphans) >= MOST_ORPHANS:
            orphans.pop(event.uid, None)
        else:
            orphans[event.uid] = item
    return ready


def record(
    made: Change,
    cluster: Cluster,
    lines: Sequence[Line],
    events: Sequence[EventShape],
    at_pods: Places,
    gone: Iterable[Node],
    pace: folding.Pace,
) -> None:
    """Write the rows. Everything that may be the same fact is read and locked first, in few queries."""
    by_uid, by_name, told = _known(made, cluster, lines, events)
    for line in lines:
        _say(made, cluster, line, told)
    pace.count(made.now, len(lines))
    nodes = _nodes(made, cluster, events, gone)
    counted = folding.folded_before(cluster, [event for event in events if event.uid not in by_uid])
    folded: dict[str, EventShape] = {}
    for event in events:
        if is_own(event):
            _arrived(made, cluster, event, by_name.get(event.name))
        elif event.uid in counted or event.uid in folded:
            continue
        elif entry := by_uid.get(event.uid):
            _again(made, cluster, event, entry)
        elif entry := _same_fact(event, nodes, [*told, *made.pending(Entry)]):
            by_uid[event.uid] = entry
            entry.source_uid = event.uid
            made.save(cluster.stream, entry, "source_uid")
            _again(made, cluster, event, entry)
        elif folding.may_fold(event) and pace.is_over(made.now):
            folded[event.uid] = event
        else:
            by_uid[event.uid] = _new(made, cluster, event, nodes, at_pods)
            pace.count(made.now)
    folding.fold(made, cluster, list(folded.values()))


def _known(
    made: Change, cluster: Cluster, lines: Sequence[Line], events: Sequence[EventShape]
) -> tuple[dict[str, Entry], dict[str, Entry], list[Entry]]:
    """Rows of these Events, rows whose own Event came back, and recent rows that may tell the same fact."""
    entries = Entry.objects.filter(stream=cluster.stream)
    ours, others = [e for e in events if is_own(e)], [e for e in events if not is_own(e)]
    by_uid = made.lock(entries.filter(source_uid__in={e.uid for e in others})) if others else []
    by_name = made.lock(entries.filter(own_event__in={e.name for e in ours})) if ours else []
    times = [line.at for line in lines if line.reason in (*TOLD_TWICE, NODE_UNCORDONED)]
    times += [e.at for e in others if e.reason in TOLD_TWICE]
    told: list[Entry] = []
    if times:
        recent = entries.filter(at__gte=min(times) - SAME, at__lte=max(times) + SAME)
        told = made.lock(recent.filter(reason__in=(*TOLD_TWICE, NODE_UNCORDONED)))
    # One object a row, however many ways led to it: what is saved once must be all of it.
    one = {entry.pk: entry for entry in [*told, *by_name, *by_uid]}
    return (
        {str(entry.source_uid): one[entry.pk] for entry in by_uid},
        {str(entry.own_event): one[entry.pk] for entry in by_name},
        [one[entry.pk] for entry in told],
    )


def _say(made: Change, cluster: Cluster, line: Line, told: Sequence[Entry]) -> None:
    """A line about a node, unless its fact has a row: Kubernetes' Event of it, or our page's own row of an uncordon."""
    for entry in told:
        near = entry.subject_uid == line.uid and entry.reason == line.reason and abs(entry.at - line.at) <= SAME
        if near and line.reason == NODE_UNCORDONED and entry.actor_kind != Entry.ActorKind.KUBERNETES:
            return
        if near and line.reason in TOLD_TWICE and entry.source_uid and not entry.data.get("condition"):
            entry.data = {**entry.data, "condition": True}
            made.save(cluster.stream, entry, "data")
            return
    made.entry(
        cluster.stream,
        line.reason,
        line.message,
        actor=line.actor,
        severity=line.severity,
        at=line.at,
        subject=("Node", line.name, line.uid),
        compute_class=line.compute_class,
        own_event=line.own_event,
        data={**line.data, **({"condition": True} if line.reason in TOLD_TWICE else {})},
    )


def _same_fact(event: EventShape, nodes: Nodes, told: Iterable[Entry]) -> Entry | None:
    """The row that the node's condition has made of what this Event tells."""
    if event.reason not in TOLD_TWICE or event.involved_kind != "Node":
        return None
    for entry in told:
        node = nodes.get(event.involved_name)
        same = entry.reason == event.reason and node is not None and entry.subject_uid == node.uid
        if same and entry.source_uid is None and abs(entry.at - event.at) <= SAME:
            return entry
    return None


def _nodes(made: Change, cluster: Cluster, events: Sequence[EventShape], gone: Iterable[Node]) -> dict[str, Node]:
    """By name, because a kubelet writes its node's name where the uid belongs."""
    names = {event.involved_name for event in events if event.involved_kind == "Node"}
    if not names:
        return {}
    stored = Node.objects.filter(cluster=cluster, name__in=names).only("name", "uid", "compute_class")
    return {row.name: row for row in (*gone, *stored, *made.pending(Node))}


def _arrived(made: Change, cluster: Cluster, event: EventShape, entry: Entry | None) -> None:
    if entry and entry.source_uid is None:
        entry.source_uid, entry.seen_at = event.uid, made.now
        made.save(cluster.stream, entry, "source_uid", "seen_at")


def _again(made: Change, cluster: Cluster, event: EventShape, entry: Entry) -> None:
    """The same Event once more: the row counts, and never backwards. `at` stays, so that paging is stable."""
    last_at, count = max(entry.last_at, min(event.last_at, made.now)), max(entry.count, event.count)
    if (count, last_at) != (entry.count, entry.last_at):
        entry.count, entry.last_at = count, last_at
        made.save(cluster.stream, entry, "count", "last_at")


def _new(made: Change, cluster: Cluster, event: EventShape, nodes: Nodes, at_pods: Places) -> Entry:
    """An Event as a row. A time from the future is marked, and held to now for order."""
    of_node = event.involved_kind == "Node"
    name = event.involved_name if of_node else f"{event.involved_namespace}/{event.involved_name}"
    known, place = nodes.get(event.involved_name) if of_node else None, at_pods.get(event.involved_uid)
    uid = known.uid if known else event.involved_uid
    node = event.involved_name if of_node or place is None else place.node
    compute_class = known.compute_class if known else place.compute_class if place else ""
    data = {"node": node, "event": f"{event.namespace}/{event.name}"}
    entry = made.entry(
        cluster.stream,
        event.reason[:128] or "Event",
        event.message,
        actor=Actor(Entry.ActorKind.KUBERNETES, event.reporting_component[:200] or "Kubernetes"),
        severity=Entry.Severity.WARNING if event.type == "Warning" else Entry.Severity.INFO,
        at=min(event.at, made.now),
        subject=(event.involved_kind[:64], name[:253], uid[:64]),
        node=node[:253],
        compute_class=compute_class,
        source_uid=event.uid[:64],
        count=event.count,
        data={**data, "future": event.at.isoformat()} if event.from_future else data,
    )
    entry.first_at, entry.last_at = min(event.first_at, entry.at), min(event.last_at, made.now)
    return entry
