"""A cluster's node events out of its whole ledger, page by page, newest first.

A page's end is the place (at, id) of its last row, which never moves; rows that arrive meanwhile are newer and shift nothing.
"""

import base64
import binascii
from datetime import datetime

from django.db.models import Q

from console.api.queries import ABOUT_NODES
from console.api.shapes import LedgerEvent, LedgerEvents
from console.clusters.models import Cluster
from console.http import BadInput
from console.timeline.models import Entry
from console.timeline.queries import Place


def page(cluster: Cluster, limit: int, after: str | None, reason: str | None, node: str | None) -> LedgerEvents:
    rows = Entry.objects.filter(stream_id=cluster.stream, subject_kind__in=ABOUT_NODES)
    if reason is not None:
        rows = rows.filter(reason=reason)
    if node is not None:
        rows = rows.filter(subject_name=node)
    if after is not None:
        at, key = place_of(after)
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(at=at, pk__lt=key))
    found = list(rows.order_by("-at", "-id")[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    return LedgerEvents(
        node_lifecycle_events=[_event(entry) for entry in found],
        next_cursor=cursor_of((found[-1].at, found[-1].pk)) if more else None,
    )


def cursor_of(place: Place) -> str:
    at, key = place
    return base64.urlsafe_b64encode(f"{at.isoformat()} {key}".encode()).decode()


def place_of(cursor: str) -> Place:
    """Raises BadInput for what no answer ever said."""
    try:
        at, key = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode("ascii").split(" ")
        place = datetime.fromisoformat(at), int(key)
    except (binascii.Error, ValueError):
        place = None
    if place is None or place[0].tzinfo is None or not 0 < place[1] < 2**63:
        raise BadInput("This cursor is none of ours: take next_cursor of the page before.", param="after", code="bad_cursor")
    return place


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
