"""Pods into rows, many at a time; a pod that ended is told to whoever waits for it (its drain).

The end of a pod is seen by looking on while it terminates: phase and exit code stand in its last states, before the deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from console.capacity.services import PodEnd
from console.clusters.models import Cluster, Pod
from console.kube.shapes import PodShape
from console.sync.apply import PodView, checkpoint, covered, pod_view, trusted
from console.sync.room import Complete, Seen

VIEWED = tuple(PodView.__dataclass_fields__)


def apply(cluster: Cluster, items: Sequence[Seen | Complete], seen_version: str, clock_offset: float) -> list[PodEnd]:
    """Write what a batch says of pods, and give the ends it saw, each once."""
    if not items:
        return []
    changes = [item for item in items if isinstance(item, Seen) and isinstance(item.shape, PodShape)]
    stored = Pod.objects.filter(cluster=cluster)
    rows = {pod.uid: pod for pod in stored.filter(uid__in={item.shape.uid for item in changes})}
    dirty: set[str] = set()
    gone: set[str] = set()
    ends: list[PodEnd] = []
    for item in changes:
        assert isinstance(item.shape, PodShape)
        uid, row = item.shape.uid, rows.get(item.shape.uid)
        if item.type == "DELETED":
            if row and not row.finished and uid not in gone:
                ends.append(_end(item.shape, item.at, clock_offset))
            gone.add(uid)
        elif (row or item.shape.node_name) and not (item.type and covered(item.version, seen_version)):
            gone.discard(uid)
            if row is None:
                row = rows[uid] = Pod(cluster=cluster, uid=uid)
            if item.shape.finished and not row.finished:
                ends.append(_end(item.shape, item.at, clock_offset))
            if _fill(row, item.shape, item.at):
                dirty.add(uid)
    for end in items:
        if isinstance(end, Complete):
            ours = stored.exclude(uid__in=gone).values_list("uid", "finished")
            absent = {uid: finished for uid, finished in ours if uid not in end.uids}
            ends += [PodEnd(uid, end.at, None, False) for uid, finished in absent.items() if not finished]
            gone |= absent.keys()
    stored.filter(uid__in=gone).delete()
    Pod.objects.bulk_create(
        [rows[uid] for uid in sorted(dirty - gone)], update_conflicts=True, unique_fields=["cluster", "uid"], update_fields=VIEWED
    )
    return ends


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
    return PodEnd(shape.uid, trusted(shape.ended_at, at, clock_offset), shape.exit_code, shape.exit_code is not None)
