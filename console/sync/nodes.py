"""Nodes into rows: matched to the machine they are, with the times that are written once and what the timeline says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.kube.shapes import NodeShape
from console.sync.apply import NodeNews, NodeView, concerns_us, covered, leftover, node_news, node_view, true_mark, trusted
from console.sync.room import Complete, Seen
from console.timeline.changes import Change


@dataclass(frozen=True, slots=True)
class Told:
    """One thing to say of a node."""

    news: NodeNews
    row: Node
    machine: Machine | None
    at: datetime
    shape: NodeShape
    known: bool  # we had a row of it before
    since: datetime | None  # since when it had been what it no longer is, Ready or not
    why: str  # it is not Ready, as of then: the row may have moved on within the batch
    first_ready: bool = False  # the machine's first Ready: it has arrived


@dataclass(slots=True)
class Nodes:
    """What a batch did to a cluster's nodes."""

    told: list[Told] = field(default_factory=list)
    gone: list[tuple[Node, Machine | None]] = field(default_factory=list)
    writes: dict[str, tuple[Node, set[str]]] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether anything was written, so that what is allocated may have moved."""
        return bool(self.writes or self.gone)

    @property
    def uncordoned(self) -> list[Node]:
        """Nodes that a person opened in the middle of a drain."""
        return [told.row for told in self.told if told.news is NodeNews.UNCORDONED and told.row.draining]

    @property
    def noticed(self) -> list[tuple[Node, Machine | None]]:
        """Nodes that their cloud has given notice to, and their machines; each once, as it is at the end of the batch."""
        gone = {row.uid for row, _ in self.gone}
        found = [told for told in self.told if told.news is NodeNews.NOTICED and told.row.notice and told.row.uid not in gone]
        return list({told.row.uid: (told.row, told.machine) for told in found}.values())


def apply(made: Change, cluster: Cluster, items: Sequence[Seen | Complete], seen_version: str, clock_offset: float) -> Nodes:
    """Write what a batch says of nodes. `seen_version`: up to which version this kind is already in the database.

    A change that is part of a picture already written says nothing new; a deletion is always true, for a uid never returns.
    """
    if not items:
        return Nodes()
    changes = [item for item in items if isinstance(item, Seen) and isinstance(item.shape, NodeShape)]
    gone = absent(cluster.pk, items)
    rows, machines = _lock(made, cluster, {item.shape.uid for item in changes} | gone, changes)
    done, deleted = Nodes(), set[str]()
    for item in changes:
        row = rows.get(item.shape.uid)
        assert isinstance(item.shape, NodeShape)
        if item.type == "DELETED":
            gone.add(item.shape.uid)
            deleted.add(item.shape.uid)
        elif item.type and covered(item.version, seen_version):
            continue
        elif row or concerns_us(item.shape):
            gone.discard(item.shape.uid)
            rows[item.shape.uid] = _see(made, cluster, row, item.shape, machines, item.at, clock_offset, done)
    for uid in sorted(gone & rows.keys()):
        _forget(made, cluster, rows[uid], machines, done, seen=uid in deleted)
    Node.objects.filter(pk__in=[row.pk for row, _ in done.gone]).delete()
    for row, fields in done.writes.values():
        made.save(cluster.stream, row, *fields)
    return done


def absent(cluster_id: UUID, items: Iterable[Seen | Complete]) -> set[str]:
    """Uids of nodes that we have and a complete list has not (lensapp/lens#2375)."""
    missing: set[str] = set()
    for item in items:
        if isinstance(item, Complete):
            missing |= set(Node.objects.filter(cluster=cluster_id).values_list("uid", flat=True)) - item.uids
    return missing


def _lock(
    made: Change, cluster: Cluster, uids: set[str], changes: Iterable[Seen]
) -> tuple[dict[str, Node], dict[object, Machine]]:
    """Machines first, then nodes: the one order."""
    labels = {node_view(item.shape).machine for item in changes if isinstance(item.shape, NodeShape)} - {None}
    nodes = Node.objects.filter(cluster=cluster, uid__in=uids)
    matched = Machine.objects.filter(Q(pk__in=labels) | Q(pk__in=nodes.values("machine")), cluster=cluster)
    machines: dict[object, Machine] = {machine.pk: machine for machine in made.lock(matched)}
    return {node.uid: node for node in made.lock(nodes)}, machines


def _see(
    made: Change,
    cluster: Cluster,
    row: Node | None,
    shape: NodeShape,
    machines: dict[object, Machine],
    at: datetime,
    clock_offset: float,
    done: Nodes,
) -> Node:
    seen = node_view(shape)
    machine = _machine(seen, machines)
    before = stored(row) if row else None
    if row is None:
        row = Node(cluster=cluster, uid=shape.uid, created_at=shape.created_at or at)
        row.draining = machine is not None and machine.state not in Machine.ALIVE  # too late: it goes again, and never counts
    seen = replace(seen, mark=true_mark(before, seen, row.draining))
    since = row.ready_since
    if fields := _fill(row, seen, shape, machine, before, at):
        done.writes.setdefault(row.uid, (row, set()))[1].update(fields)
    leftovers = (NodeNews.LEFTOVER,) if not row.draining and leftover(shape, seen.mark) else ()
    for news in (*node_news(before, seen), *leftovers):
        when = trusted(_instant(news, shape), at, clock_offset)
        told = Told(news, row, machine, when, shape, before is not None, since, row.not_ready_why)
        times = _machine_times(told, machine) if machine else []
        if machine and times:
            made.save(cluster.stream, machine, *times)
        done.told.append(replace(told, first_ready="first_ready_at" in times))
    return row


def _instant(news: NodeNews, shape: NodeShape) -> datetime | None:
    """When Kubernetes says that it happened; of a cordon it says nothing."""
    if news is NodeNews.JOINED:
        return shape.created_at
    return shape.ready_since if news in (NodeNews.READY, NodeNews.NOT_READY) else None


def _machine(seen: NodeView, machines: dict[object, Machine]) -> Machine | None:
    """The machine this node is. The label alone does not make it so: it must carry the name we gave that machine."""
    machine = machines.get(seen.machine)
    return machine if machine and machine.node_name == seen.name else None


def stored(row: Node) -> NodeView:
    """A row as the view it was written from, as far as news is told from it."""
    return NodeView(
        name=row.name,
        gpus=row.gpus,
        ready=row.ready,
        why=row.not_ready_why.partition(": ")[0],
        unschedulable=row.unschedulable,
        mark=row.cordoned_by,
        startup_pending=row.startup_pending,
        notice=row.notice,
        kubelet_version=row.kubelet_version,
        internal_ip=row.internal_ip,
        machine=row.machine_id,
        preemptible=row.compute_class == ComputeClass.PREEMPTIBLE,
    )


def _fill(
    row: Node, seen: NodeView, shape: NodeShape, machine: Machine | None, before: NodeView | None, at: datetime
) -> list[str]:
    """Set what differs and name it. The class is the machine's; the label's only where no machine is ours (DESIGN 5)."""
    label = ComputeClass.PREEMPTIBLE if seen.preemptible else ComputeClass.STANDARD
    wanted: dict[str, object] = {
        "machine_id": machine.pk if machine else None,
        "name": seen.name,
        "compute_class": machine.compute_class if machine else label,
        "gpus": seen.gpus,
        "ready": seen.ready,
        "unschedulable": seen.unschedulable,
        "cordoned_by": seen.mark,
        "startup_pending": seen.startup_pending,
        "notice": seen.notice,
        "kubelet_version": seen.kubelet_version,
        "internal_ip": seen.internal_ip,
    }
    if before is None or before.ready is not seen.ready:
        wanted["ready_since"] = min(shape.ready_since or at, at)
    if before is None or before.why != seen.why or before.ready is not seen.ready:
        wanted["not_ready_why"] = _why(shape, seen)
    changed = [name for name, value in wanted.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, wanted[name])
    if changed or before is None:
        row.resource_version = shape.resource_version[:32]
        changed.append("resource_version")
    return ["machine" if name == "machine_id" else name for name in changed]


def _why(shape: NodeShape, seen: NodeView) -> str:
    """Why it is not Ready, as the kubelet says it; its message moves with each heartbeat, so only the first is kept."""
    condition = next((c for c in shape.conditions if c.type == "Ready"), None)
    if seen.ready or condition is None:
        return ""
    return f"{seen.why}: {condition.message}"[:300] if condition.message else seen.why


def _machine_times(told: Told, machine: Machine) -> list[str]:
    """Set the machine's own times, each once, and name them. A machine that is Ready again was not lost after all."""
    fields: list[str] = []
    if machine.joined_at is None:
        machine.joined_at = told.at
        fields.append("joined_at")
    if told.news is NodeNews.READY and machine.first_ready_at is None:
        machine.first_ready_at = told.at
        fields.append("first_ready_at")
        if machine.state in (Machine.State.ASKED, Machine.State.BOOTING):
            machine.state = Machine.State.JOINED
            fields.append("state")
    if told.news is NodeNews.READY and machine.last_proof_at is not None:
        machine.last_proof_at = None
        fields.append("last_proof_at")
    if told.news is NodeNews.NOT_READY and told.shape.ready is None and machine.last_proof_at is None:
        machine.last_proof_at = told.at
        fields.append("last_proof_at")
    return fields


def _forget(made: Change, cluster: Cluster, row: Node, machines: dict[object, Machine], done: Nodes, seen: bool) -> None:
    """Take a node away. Of one that nobody saw go (`seen`), the last complete picture is the last proof of life."""
    machine = machines.get(row.machine_id)
    if machine and machine.last_proof_at is None and machine.state in Machine.ALIVE and not row.draining:
        machine.last_proof_at = made.now if seen else min(cluster.proved_to or made.now, made.now)
        made.save(cluster.stream, machine, "last_proof_at")
    done.writes.pop(row.uid, None)
    done.gone.append((row, machine))
    if not row._state.adding:
        made.gone(cluster.stream, "node", row.pk)
