"""The chart's series from the ledger: levels as steps, preemptions as marks. Bounded, whatever happened in the range."""

from datetime import datetime, timedelta
from typing import Any

from console.clusters.models import Cluster
from console.clusters.queries import levels
from console.timeline.queries import with_reason

RANGES = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
FIRST = "1h"
MOST_MARKS = 500


def series(cluster: Cluster, wanted: str, now: datetime) -> dict[str, Any]:
    """Steps from the left edge to now. An unknown range is the first one. A level holds until the next."""
    length = RANGES.get(wanted, RANGES[FIRST])
    start = now - length
    steps = [(max(level.at, start), level.desired, level.allocated) for level in levels(cluster, start)]
    if not steps:
        steps = [(max(start, cluster.created_at), cluster.desired_preemptible_gpus, cluster.allocated_preemptible_gpus)]
    steps.append((now, steps[-1][1], steps[-1][2]))
    return {
        "from": start.isoformat(),
        "to": now.isoformat(),
        "at": [at.isoformat() for at, _, _ in steps],
        "desired": [desired for _, desired, _ in steps],
        "allocated": [allocated for _, _, allocated in steps],
        "step": cluster.gpu_type.gpus_per_node,
        "marks": [
            {"at": entry.at.isoformat(), "what": entry.subject_name, "id": entry.pk}
            for entry in with_reason(cluster.stream, "TogetherPreempted", start, MOST_MARKS)
        ],
    }
