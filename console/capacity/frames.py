"""What has changed on a cluster's page between two revisions: one composition for the socket and for the poll.

Each row carries its own revision, so a browser never replaces a newer row by an older one (django/channels_redis#89), and
doubled frames are harmless. A frame has a bounded number of rows; for more, the page loads again and says so, because a
snapshot that is refused for its size would be asked for again without end (BlackBeltTechnology/pi-agent-dashboard#370).
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from console.capacity import panels, picture, queries
from console.capacity.drawing.lines import Line
from console.capacity.drawing.nodes import render_cell, render_node
from console.capacity.drawing.verdict_table import render_drain
from console.capacity.models import Drain
from console.capacity.picture import Picture
from console.clusters.models import Cluster, Machine, Node
from console.timeline import queries as ledger
from console.timeline.models import Tombstone
from console.timeline.rows import render_entry

STEP = 250  # revisions in one frame, so at most as many rows: some 400 kB of entries, far below any limit of a proxy


@dataclass(frozen=True)
class Row:
    """A piece of the page as it is now. Kinds: entry, drain, cell, node, panel."""

    kind: str
    id: str
    revision: int
    html: str
    sort: str = ""  # where a new cell or node belongs


@dataclass(frozen=True)
class Frame:
    """Everything up to `revision`; `gone` names cells and nodes (by key) that are no more.

    `only_entries`: each revision is one row's, and every one of them was an entry's, so nothing else has changed.
    """

    revision: int
    epoch: str
    at: datetime
    only_entries: bool = False
    rows: list[Row] = field(default_factory=list)
    gone: list[dict[str, str]] = field(default_factory=list)

    def payload(self) -> dict[str, Any]:
        return {
            "revision": self.revision,
            "epoch": self.epoch,
            "at": self.at.isoformat(),
            "rows": [vars(row) for row in self.rows],
            "gone": self.gone,
        }


def streams_of(cluster_id: UUID) -> list[UUID]:
    """What a cluster's page must watch: its own stream, and its pool's, because that says what could be given."""
    cluster = Cluster.objects.get(pk=cluster_id)
    return [cluster.stream, queries.pool_of(cluster).pk]


def compose(cluster_id: UUID, after: int, upto: int, epoch: str, beside: bool = True) -> Frame | None:
    """The frame from one revision (excluded) to another; None where it would be too much for one.

    `beside`: something beside the cluster may have changed, such as its pool, so the panel is drawn in any case.
    Entries alone, most of what a cluster says, are read with one statement (a cluster's id is its stream's).
    Raises Cluster.DoesNotExist.
    """
    if upto - after > STEP:
        return None
    entries = ledger.since(cluster_id, after, upto, STEP)
    frame = Frame(upto, epoch, timezone.now(), only_entries=len(entries) == upto - after)
    frame.rows.extend(Row("entry", str(entry.pk), entry.revision, render_entry(entry)) for entry in entries)
    mentioned = {entry.drain_id for entry in entries if entry.drain_id is not None}
    if frame.only_entries and not beside:
        frame.rows.extend(_tables((), mentioned, frame.at))
        return frame
    cluster = Cluster.objects.select_related("region", "gpu_type", "project").get(pk=cluster_id)
    others = Others() if frame.only_entries else _others(cluster, after, upto)
    frame.rows.extend(_tables(others.drains, mentioned, frame.at))
    if others.any or cluster.revision > after or beside:
        drawn = picture.read(cluster, frame.at)
        _lines(frame, drawn, others.changed, others.gone)
        frame.rows.append(Row("panel", str(cluster.pk), upto, panels.render_panel(drawn)))
    return frame


@dataclass(frozen=True)
class Others:
    """What else changed on a stream: drains, machines and nodes by the keys of their lines, and what is gone."""

    drains: Sequence[Drain] = ()
    changed: Set[str] = frozenset()
    gone: Sequence[Tombstone] = ()

    @property
    def any(self) -> bool:
        return bool(self.drains or self.changed or self.gone)


def _others(cluster: Cluster, after: int, upto: int) -> Others:
    span: dict[str, Any] = {"cluster": cluster, "revision__gt": after, "revision__lte": upto}
    machines = Machine.objects.filter(**span).values_list("pk", flat=True)
    nodes = Node.objects.filter(**span).only("pk", "machine_id")
    return Others(
        list(Drain.objects.filter(**span).prefetch_related("verdicts")),
        {pk.hex for pk in machines} | {(node.machine_id or node.pk).hex for node in nodes},
        ledger.gone_since(cluster.stream, after, upto, STEP),
    )


def _tables(drains: Sequence[Drain], shown: set[UUID], now: datetime) -> Iterator[Row]:
    """The verdict tables of drains that changed, and of those whose entry is sent anew and comes with an empty slot."""
    known = {drain.pk for drain in drains}
    more = Drain.objects.filter(pk__in=shown - known).prefetch_related("verdicts") if shown - known else ()
    for drain in (*drains, *more):
        yield Row("drain", str(drain.pk), drain.revision, render_drain(drain, drain.verdicts.all(), now))


def _lines(frame: Frame, drawn: Picture, changed: Set[str], gone: Sequence[Tombstone]) -> None:
    """Cells and table rows of the machines and nodes that changed; those that have no line any more go."""
    there = {line.key: line for line in drawn.lines}
    nodes_gone = {UUID(stone.object_id).hex for stone in gone if stone.kind == "node"}
    # A node that went leaves its machine's line behind, if any; which one is not known any more, but it has no node now.
    shown = [line for line in drawn.lines if line.key in changed or (nodes_gone and not line.node_id)]
    for line in shown:
        frame.rows.extend(_both(line, drawn, frame.revision))
    for key in sorted((changed | nodes_gone) - there.keys()):
        frame.gone.extend(({"kind": "cell", "id": key}, {"kind": "node", "id": key}))


def _both(line: Line, drawn: Picture, revision: int) -> tuple[Row, Row]:
    return (
        Row("cell", line.key, revision, render_cell(line, drawn.dense, drawn.cluster.pk), line.sort),
        Row("node", line.key, revision, render_node(line, drawn.cluster.pk), line.sort),
    )
