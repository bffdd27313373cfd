"""Reading a ledger: the newest rows, the rows before one, what changed since a revision, and how far streams are."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery

from console.timeline.models import Entry, Stream, Tombstone

Place = tuple[datetime, int]  # an entry's place in the list: (at, id), which never moves


def latest(stream: UUID, limit: int, before: Place | None = None) -> list[Entry]:
    """The newest entries, or those before a place, newest first. Flat in the length of the ledger: one index range."""
    rows = Entry.objects.filter(stream_id=stream)
    if before is not None:
        at, pk = before
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(at=at, pk__lt=pk))
    return list(rows.order_by("-at", "-id")[:limit])


def since(stream: UUID, after: int, upto: int, limit: int) -> list[Entry]:
    """Entries new or changed after one revision and up to another, in the order in which they changed."""
    rows = Entry.objects.filter(stream_id=stream, revision__gt=after, revision__lte=upto)
    return list(rows.order_by("revision")[:limit])


def gone_since(stream: UUID, after: int, upto: int, limit: int) -> list[Tombstone]:
    """What disappeared between two revisions."""
    rows = Tombstone.objects.filter(stream_id=stream, revision__gt=after, revision__lte=upto)
    return list(rows.order_by("revision")[:limit])


def newest_of_each(streams: Iterable[UUID]) -> dict[UUID, Entry]:
    """The newest entry of each stream, in one query: one step into the index for each, however long its ledger is."""
    newest = Entry.objects.filter(stream=OuterRef("pk")).order_by("-at", "-id").values("pk")[:1]
    found = Stream.objects.filter(pk__in=list(streams)).values_list(Subquery(newest))
    return {entry.stream_id: entry for entry in Entry.objects.filter(pk__in=found)}


def with_reason(stream: UUID, reason: str, after: datetime, limit: int) -> list[Entry]:
    """The newest entries of one reason since an instant, oldest first: the chart's marks."""
    rows = Entry.objects.filter(stream_id=stream, reason=reason, at__gte=after)
    return list(rows.order_by("-at", "-id")[:limit])[::-1]


def of_drains(drains: Iterable[UUID]) -> list[Entry]:
    """The entries under which these drains' verdicts stand."""
    return list(Entry.objects.filter(drain_id__in=list(drains)))


def heads(streams: Iterable[UUID]) -> dict[UUID, Stream]:
    """Each stream with its revision and epoch, in one query."""
    return Stream.objects.in_bulk(list(streams))
