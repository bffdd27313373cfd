"""When a cluster tells too much: Normal Events of pods become one counted row a minute, and the row says so (DESIGN 7).

A thousand entries a minute are more than anybody reads, and a job that starts ten thousand pods tells six things of each.
Warnings and whatever nodes tell always get rows of their own. Which Events were counted is remembered, because Kubernetes lists
them again for an hour: a list counts nothing twice. How many entries this minute has is kept in memory; whoever takes over
begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.clusters.models import Cluster
from console.kube.shapes import EventShape
from console.timeline.changes import KUBERNETES, Change
from console.timeline.models import Entry, FoldedEvent

MOST = 1000  # entries a minute with rows of their own
REASON = "PodEventsFolded"


@dataclass(slots=True)
class Pace:
    """How many entries one cluster has got in this minute."""

    minute: datetime | None = None
    entries: int = 0

    def count(self, now: datetime, entries: int = 1) -> None:
        minute = now.replace(second=0, microsecond=0)
        if minute != self.minute:
            self.minute, self.entries = minute, 0
        self.entries += entries

    def is_over(self, now: datetime) -> bool:
        return self.minute == now.replace(second=0, microsecond=0) and self.entries >= MOST


def may_fold(event: EventShape) -> bool:
    return event.involved_kind == "Pod" and event.type == "Normal"


def folded_before(cluster: Cluster, events: Sequence[EventShape]) -> set[str]:
    """Uids of those that a row has counted already. No query where none could be."""
    uids = {event.uid for event in events if may_fold(event)}
    if not uids:
        return set()
    return set(FoldedEvent.objects.filter(stream=cluster.stream, source_uid__in=uids).values_list("source_uid", flat=True))


def fold(made: Change, cluster: Cluster, events: Sequence[EventShape]) -> None:
    """Count Events, of which none has been counted yet, into the row of this minute. The cluster is locked by the caller."""
    if not events:
        return
    minute = made.now.replace(second=0, microsecond=0)
    key = f"folded-{minute:%Y%m%dT%H%MZ}"
    FoldedEvent.objects.bulk_create(
        FoldedEvent(stream_id=cluster.stream, source_uid=event.uid[:64], at=made.now) for event in events
    )
    first, last = min(event.at for event in events), min(max(event.at for event in events), made.now)
    found = made.lock(Entry.objects.filter(stream=cluster.stream, source_uid=key))
    entry = found[0] if found else None
    count = len(events) + (entry.count if entry else 0)
    message = (
        f"{count} Normal Events of pods, received from {minute:%H:%M} to {minute + timedelta(minutes=1):%H:%M} UTC, are counted "
        f"in this one row: more than {MOST} entries came in that minute"
    )
    if entry is None:
        entry = made.entry(cluster.stream, REASON, message, actor=KUBERNETES, source_uid=key, count=count)
        entry.first_at, entry.last_at = min(first, entry.at), last
        return
    entry.message, entry.count = message, count
    entry.first_at, entry.last_at = min(entry.first_at, first), max(entry.last_at, last)
    made.save(cluster.stream, entry, "message", "count", "first_at", "last_at")
