"""Pods into rows, many at a time; a pod that ended is told to whoever waits for it (its drain).

The end of a pod is seen by looking on while it terminates: phase and exit code stand in its last states, before the deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from console.capacity.services import PodEnd
from console.clusters.models import Cluster, Pod
from console.kube.shapes import PodShape
from console.sync import owners
from console.sync.apply import PodView, checkpoint, covered, pod_view, trusted
from console.sync.room import Complete, Seen
from console.timeline.changes import Change

VIEWED = tuple(PodView.__dataclass_fields__)

# Pods without a node that are kept of one cluster. A queue of a hundred thousand jobs is a queue, and nobody reads its end; one
# that gets a node is kept from then on like any other.
MOST_WAITING = 2000


@dataclass
class _Batch:
    """What a batch makes of the rows: which to write, which to delete, whose workloads lost a pod, and the ends it saw."""

    rows: dict[str, Pod]
    dirty: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    left: set[UUID | None] = field(default_factory=set)
    ends: list[PodEnd] = field(default_factory=list)


def apply(
    made: Change, cluster: Cluster, items: Sequence[Seen | Complete], seen_version: str, clock_offset: float
) -> list[PodEnd]:
    """Write what a batch says of pods and of their workloads, and give the ends it saw, each once."""
    if not items:
        return []
    changes = [item for item in items if isinstance(item, Seen) and isinstance(item.shape, PodShape)]
    stored = Pod.objects.filter(cluster=cluster)
    batch = _Batch({pod.uid: pod for pod in stored.filter(uid__in={item.shape.uid for item in changes})})
    room = _room(stored, changes, batch.rows)
    for item in changes:
        room -= _take(batch, cluster, item, seen_version, clock_offset, room)
    for end in items:
        if isinstance(end, Complete):
            _miss(batch, stored, end)
    changed = [batch.rows[uid] for uid in sorted(batch.dirty - batch.gone)]
    stored.filter(uid__in=batch.gone).delete()
    owners.follow(made, cluster, changed, {one for one in batch.left if one is not None})
    Pod.objects.bulk_create(changed, update_conflicts=True, unique_fields=["cluster", "uid"], update_fields=[*VIEWED, "workload"])
    return batch.ends


def _take(batch: _Batch, cluster: Cluster, item: Seen, seen_version: str, clock_offset: float, room: int) -> int:
    """One change of one pod; 1 where it takes one of the places for pods that wait."""
    shape = item.shape
    assert isinstance(shape, PodShape)
    uid, row = shape.uid, batch.rows.get(shape.uid)
    if item.type == "DELETED":
        if row and row.node_name and not row.finished and uid not in batch.gone:
            batch.ends.append(_end(shape, item.at, clock_offset))
        if row:
            batch.left.add(row.workload_id)
        batch.gone.add(uid)
        return 0
    if (item.type and covered(item.version, seen_version)) or not (row or shape.node_name or (room > 0 and _waits(shape))):
        return 0
    batch.gone.discard(uid)
    known, row = row, row or Pod(cluster=cluster, uid=uid)
    batch.rows[uid] = row
    if shape.finished and not row.finished and shape.node_name:
        batch.ends.append(_end(shape, item.at, clock_offset))
    if _fill(row, shape, item.at):
        batch.dirty.add(uid)
    return int(known is None and not shape.node_name)


def _miss(batch: _Batch, stored: QuerySet[Pod], end: Complete) -> None:
    """What a complete list did not have is gone; nobody saw how."""
    ours = stored.exclude(uid__in=batch.gone).values_list(
        "uid", "finished", "node_name", "workload_id", "deleting_since", "grace_seconds"
    )
    for uid, finished, node, workload, since, grace in [row for row in ours if row[0] not in end.uids]:
        if node and not finished:
            batch.ends.append(PodEnd(uid, end.at, None, False, since, grace if since else 0))
        batch.left.add(workload)
        batch.gone.add(uid)


def _waits(shape: PodShape) -> bool:
    """A pod without a node concerns us where it waits for a GPU node."""
    return not shape.finished and (shape.gpus > 0 or shape.wish not in ("", "refused"))


def _room(stored: QuerySet[Pod], changes: Sequence[Seen], rows: dict[str, Pod]) -> int:
    """How many more pods without a node are kept; not counted where none comes."""
    come = any(isinstance(item.shape, PodShape) and not item.shape.node_name and item.shape.uid not in rows for item in changes)
    return MOST_WAITING - stored.filter(node_name="").count() if come else 0


def _fill(row: Pod, shape: PodShape, at: datetime) -> bool:
    seen = pod_view(shape)
    wanted = {name: getattr(seen, name) for name in VIEWED}
    wanted["last_checkpoint"] = checkpoint(seen.last_checkpoint, seen.started_at, at)
    changed = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    for name, value in changed.items():
        setattr(row, name, value)
    return bool(changed)


def _end(shape: PodShape, at: datetime, clock_offset: float) -> PodEnd:
    """How it ended. Without an exit code nobody saw it end, we only see that it is gone."""
    since, grace = pod_view(shape).deleting_since, shape.deletion_grace or shape.grace_seconds
    ended_at = trusted(shape.ended_at, at, clock_offset)
    return PodEnd(shape.uid, ended_at, shape.exit_code, shape.exit_code is not None, since, grace if since else 0)
