"""A cluster's node events out of its whole ledger, page by page, newest first."""

from django.utils import timezone

from console.api.cursors import cursor_of, place_of
from console.api.shapes import LedgerEvent, LedgerEvents
from console.clusters.models import Cluster
from console.timeline.filters import Filter, narrow
from console.timeline.models import Entry
from console.timeline.queries import before


def page(cluster: Cluster, limit: int, after: str | None, reason: str | None, node: str | None) -> LedgerEvents:
    rows = Entry.objects.filter(stream_id=cluster.stream, subject_kind__in=Entry.ABOUT_NODES)
    rows = narrow(rows, Filter(reason=reason or "", node=node or ""), timezone.now())
    if after is not None:
        rows = before(rows, place_of(after, _row_id))
    found = list(rows.order_by("-at", "-id")[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    return LedgerEvents(
        node_lifecycle_events=[_event(entry) for entry in found],
        next_cursor=cursor_of(found[-1].at, found[-1].pk) if more else None,
    )


def _row_id(text: str) -> int:
    found = int(text)
    if not 0 < found < 2**63:
        raise ValueError(text)
    return found


def _event(entry: Entry) -> LedgerEvent:
    return LedgerEvent(
        id=str(entry.pk),
        node_id=entry.subject_name,
        reason=entry.reason,
        message=entry.message,
        timestamp=entry.at,
        severity=Entry.Severity(entry.severity),
        count=entry.count,
        actor=entry.actor_name,
    )
