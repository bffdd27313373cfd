"""Reading a ledger: a page of it both ways, what changed since a revision, how far streams are, and what a filter can offer."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from psycopg.errors import QueryCanceled

from console.http import Unprocessable
from console.timeline.filters import Filter, at_any_time, narrow
from console.timeline.lately import Counts, Lately, draw, edges
from console.timeline.models import Entry, LastLook, Pruned, Stream, Tombstone

Place = tuple[datetime, int]  # an entry's place in the list: (at, id), which never moves

LONGEST = 4000  # milliseconds that one page of a search in text may take; a term that nothing holds may have to read much


def before(rows: QuerySet[Entry], place: Place) -> QuerySet[Entry]:
    at, pk = place
    return rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=pk))


def after(rows: QuerySet[Entry], place: Place) -> QuerySet[Entry]:
    at, pk = place
    return rows.filter(at__gte=at).filter(Q(at__gt=at) | Q(pk__gt=pk))


def older(stream: UUID, limit: int, chosen: Filter, now: datetime, place: Place | None = None) -> tuple[list[Entry], bool]:
    """The newest entries, or those before a place, newest first, and whether there are more. Flat in the ledger's length.

    Raises Unprocessable where a search in text takes too long.
    """
    rows = narrow(Entry.objects.filter(stream_id=stream), chosen, now)
    if place is not None:
        rows = before(rows, place)
    found = _read(lambda: list(rows.order_by("-at", "-id")[: limit + 1]), bool(chosen.text))
    return found[:limit], len(found) > limit


def newer(stream: UUID, limit: int, chosen: Filter, now: datetime, place: Place) -> tuple[list[Entry], bool]:
    """The entries right after a place, newest first as everywhere, and whether there are more beyond. Raises as `older`."""
    rows = after(narrow(Entry.objects.filter(stream_id=stream), chosen, now), place)
    found = _read(lambda: list(rows.order_by("at", "id")[: limit + 1]), bool(chosen.text))
    return found[:limit][::-1], len(found) > limit


Found = TypeVar("Found")


def _read(read: Callable[[], Found], is_search: bool) -> Found:
    if not is_search:
        return read()
    try:
        return _within(LONGEST, read)
    except TimeoutError as error:
        raise Unprocessable(
            f"Looking for this text took longer than {LONGEST // 1000} s. "
            "A shorter time, a node or a reason beside it makes it quick.",
            param="q",
        ) from error


def _within(milliseconds: int, read: Callable[[], Found]) -> Found:
    """What `read` answers. Raises TimeoutError where one statement of it takes longer; the database then stops it."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(milliseconds)])
            found = read()
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', '0', true)")
            return found
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        raise TimeoutError from error


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


def pruned(stream: UUID, entry_id: int) -> Pruned | None:
    """The run of retention that an entry of that id went with, if one did."""
    return Pruned.objects.filter(stream=stream, last__gte=entry_id, first__lte=entry_id).order_by("last").first()


def last_look(user_id: int, stream: UUID) -> LastLook | None:
    return LastLook.objects.filter(user=user_id, stream=stream).first()


MOST_COUNTED = 100


def counted(stream: UUID, severity: str, after: datetime) -> int:
    """How many entries of a severity since an instant, MOST_COUNTED at most: a badge says no more than "99+"."""
    rows = Entry.objects.filter(stream_id=stream, severity=severity, at__gte=after).order_by("-at", "-id")
    return rows[:MOST_COUNTED].count()


MOST_IN_BAR = 1000
LONGEST_LATELY = 1000  # milliseconds that the counting may take; the page stands without the picture


def lately(stream: UUID, chosen: Filter, now: datetime) -> Lately | None:
    """The last 24 hours of what the filter lets through, whatever time it asks for. None where counting takes LONGEST_LATELY.

    One query. Without a filter: for each bar so many steps into an index as it has entries, MOST_IN_BAR at most, so a flood costs
    no more. With one, what its index finds may be left out for another condition (a text, a second filter, the severity that is
    counted), so that more is read than counted; LONGEST_LATELY is the bound of that.
    """
    rows = narrow(Entry.objects.filter(stream_id=stream), at_any_time(chosen), now).values("at", "id")
    graver = [rows.filter(severity=severity) for severity in (Entry.Severity.WARNING, Entry.Severity.CRITICAL)]
    (every, of_every), (warnings, of_warnings), (criticals, of_criticals) = [_in_bar(some) for some in (rows, *graver)]
    sql = f"""
        SELECT a.number, w.number, c.number, greatest(a.newest, w.newest, c.newest)
        FROM unnest(%s::timestamptz[], %s::timestamptz[]) WITH ORDINALITY AS bar (start, stop, place),
        LATERAL ({every}) AS a, LATERAL ({warnings}) AS w, LATERAL ({criticals}) AS c
        ORDER BY bar.place"""  # noqa: S608
    starts, stops = zip(*pairwise(edges(now)), strict=True)
    params = [list(starts), list(stops), *of_every, *of_warnings, *of_criticals]

    def count() -> list[tuple[int, int, int, int]]:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())

    try:
        found = _within(LONGEST_LATELY, count)
    except TimeoutError:
        return None
    counted = [Counts(entries, warning, critical, entries >= MOST_IN_BAR) for entries, warning, critical, _ in found]
    return draw(counted, max(newest for *_, newest in found), chosen, now)


def _in_bar(rows: QuerySet[Entry, Any]) -> tuple[str, tuple[Any, ...]]:
    """How many of these rows lie in `bar`, and the highest id of those counted (0 for none), as a part of a query."""
    sql, params = rows.query.sql_with_params()
    inside = f"SELECT one.id FROM ({sql}) AS one WHERE one.at >= bar.start AND one.at < bar.stop LIMIT {MOST_IN_BAR}"  # noqa: S608
    return f"SELECT count(*) AS number, coalesce(max(id), 0) AS newest FROM ({inside}) AS seen", params  # noqa: S608


MOST_WORDS = 200


def reasons(stream: UUID) -> list[str]:
    """The reasons there are, at most MOST_WORDS: one step into the index for each, whatever the number of rows."""
    return [row[0] for row in _steps(("reason",), "TRUE", stream)]


def nodes(stream: UUID) -> list[str]:
    return [row[0] for row in _steps(("node_name",), "NOT node_name = ''", stream)]


def actors(stream: UUID) -> list[tuple[str, str]]:
    """People and keys (kind, name) who did something."""
    return [(row[0], row[1]) for row in _steps(("actor_kind", "actor_name"), "actor_kind IN ('person', 'key')", stream)]


def _steps(columns: tuple[str, ...], where: str, stream: UUID) -> list[tuple[Any, ...]]:
    """Distinct values by jumping through an index that begins with stream and `columns`; words of ours only, no input."""
    names = ", ".join(columns)
    ahead = ", ".join(f"t.{name}" for name in columns)
    one = f"SELECT {names} FROM timeline_entry WHERE stream_id = %(stream)s AND {where}"  # noqa: S608
    sql = f"""
        WITH RECURSIVE steps AS (
            ({one} ORDER BY {names} LIMIT 1)
            UNION ALL
            SELECT found.* FROM steps t CROSS JOIN LATERAL (
                {one} AND ({names}) > ({ahead}) ORDER BY {names} LIMIT 1
            ) found
        ) SELECT * FROM steps LIMIT {MOST_WORDS}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, {"stream": stream})
        return list(cursor.fetchall())


def about(stream: UUID, pods: Collection[str], drains: Collection[UUID], after: datetime, limit: int) -> list[Entry]:
    """The newest entries since an instant that are about one of these pods (by uid) or hold one of these drains' verdicts."""
    rows = Entry.objects.filter(stream_id=stream, at__gte=after)
    told = rows.filter(subject_kind="Pod", subject_uid__in=list(pods)) if pods else rows.none()
    drained = rows.filter(drain_id__in=list(drains)) if drains else rows.none()
    newest = [*told.order_by("-at", "-id")[:limit], *drained.order_by("-at", "-id")[:limit]]
    return sorted({entry.pk: entry for entry in newest}.values(), key=lambda entry: (entry.at, entry.pk), reverse=True)[:limit]
