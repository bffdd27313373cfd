"""What has changed on any of a cluster's pages between two revisions, workloads among it: for the socket and for the poll.

The rooms below draw what they know (`capacity.frames`); rows of workloads are added here, in the same frame.
"""

from __future__ import annotations

from uuid import UUID

from console.capacity import frames
from console.capacity.frames import Frame, Row
from console.clusters.models import Cluster
from console.timeline import queries as ledger
from console.workloads import queries
from console.workloads.rows import line_of, render_row

KIND = "workload"
MOST = 100  # rows in one frame; a browser shows a page of them, and a larger change is loaded anew with the page

STEP = frames.STEP
streams_of = frames.streams_of


def compose(cluster_id: UUID, after: int, upto: int, epoch: str, beside: bool = True) -> Frame | None:
    """As `capacity.frames.compose`. Raises Cluster.DoesNotExist."""
    frame = frames.compose(cluster_id, after, upto, epoch, beside)
    if frame is None or frame.only_entries:
        return frame
    cluster = Cluster.objects.get(pk=cluster_id)
    changed = queries.changed(cluster, after, upto)
    lines = [line_of(cluster, owner, frame.at) for owner in queries.owners(cluster, frame.at, changed)] if changed else []
    lines.sort(key=lambda line: line.sort)
    for line in lines[:MOST]:
        frame.rows.append(Row(KIND, line.owner.id.hex, upto, render_row(cluster, line), line.sort))
    for stone in ledger.gone_since(cluster.stream, after, upto, STEP):
        if stone.kind == KIND:
            frame.gone.append({"kind": KIND, "id": UUID(stone.object_id).hex})
    return frame
