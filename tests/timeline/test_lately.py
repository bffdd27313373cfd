"""The last 24 hours as bars: each instant in one, each entry counted once, and an hour's link shows what its bars count."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from console.timeline import filters, lately, queries
from console.timeline.filters import Filter
from console.timeline.lately import Counts, Lately
from console.timeline.models import Entry, Stream

NOW = datetime(2026, 11, 12, 14, 3, 2, 123, UTC)
DAY, TICK = timedelta(days=1), timedelta(microseconds=1)
numbers = st.integers(0, 2000)


@pytest.fixture
def stream(db: None) -> uuid.UUID:
    return Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id


def write(stream: uuid.UUID, at: datetime, **more: Any) -> None:
    fields = {"reason": "NodeReady", **more}
    Entry.objects.create(stream_id=stream, at=at, recorded_at=at, first_at=at, last_at=at, **fields)


def seen(stream: uuid.UUID, wish: Filter | None = None, now: datetime = NOW) -> Lately:
    found = queries.lately(stream, wish or Filter(), now)
    assert found is not None
    return found


def sums(found: Lately) -> list[int]:
    return [sum(bar.counts.entries for bar in hour.bars) for hour in found.hours]


@given(st.timedeltas(timedelta(), 3000 * DAY).map(NOW.__add__))
def test_bars_follow_each_other_without_a_gap_from_a_day_ago_until_after_now(now: datetime) -> None:
    edges = lately.edges(now)
    assert edges[0] == now - DAY
    assert now < edges[-1] <= now + lately.BAR
    first, *others = [later - earlier for earlier, later in pairwise(edges)]
    assert timedelta() < first <= lately.BAR
    assert set(others) == {lately.BAR}
    drawn = lately.draw([Counts(1)] * (len(edges) - 1), 7, Filter(), now)
    assert [bar.start for hour in drawn.hours for bar in hour.bars] == edges[:-1]
    assert all(earlier.start < later.start for earlier, later in pairwise(drawn.hours))
    assert len({hour.query for hour in drawn.hours}) == len(drawn.hours)


@given(numbers, numbers, numbers, st.integers(1, 6000))
def test_what_is_there_can_be_seen_and_no_bar_is_too_high(info: int, warning: int, critical: int, top: int) -> None:
    whole = Counts(info + warning + critical, warning, critical)
    drawn = lately.parts(whole, max(top, whole.entries))
    looks = ("s-info", "s-warn", "s-crit")
    assert [part.look for part in drawn] == [look for look, n in zip(looks, (info, warning, critical), strict=True) if n]
    assert all(part.height >= lately.LEAST for part in drawn)
    assert all(above.y + above.height == below.y for below, above in pairwise(drawn))
    assert sum(part.height for part in drawn) <= lately.BASE + 4


def edge_cases() -> Iterator[datetime]:
    """On the hour, right before and after it, at both ends of the day, twice in one instant."""
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    for back in (0, 1, 5, 23):
        yield from (hour - timedelta(hours=back) + step for step in (-TICK, timedelta(), TICK, TICK))
    yield from (NOW - DAY, NOW - DAY - TICK, NOW - 2 * DAY, NOW)


def test_each_entry_counts_once_and_an_hours_link_shows_what_its_bars_count(stream: uuid.UUID) -> None:
    for at in edge_cases():
        write(stream, at, severity="warning" if at.microsecond else "info")
    found = seen(stream)
    assert found.total.entries == len([at for at in edge_cases() if at >= NOW - DAY]) == sum(sums(found))
    assert found.says == f"{found.total.entries} in the last 24 hours"
    assert found.newest == Entry.objects.latest("pk").pk
    for hour, number in zip(found.hours, sums(found), strict=True):
        wish = filters.parse(QueryDict(hour.query))
        rows, _ = queries.older(stream, 100, wish, NOW)
        assert len(rows) == number
        chosen = [other for other in seen(stream, wish).hours if other.current]
        assert [other.start for other in chosen] == [hour.start]
        assert f": {number} entr" in hour.words
    ticks = [hour.tick for hour in found.hours if hour.tick]
    assert ticks == ["15:00", "18:00", "21:00", "00:00", "03:00", "06:00", "09:00", "12:00"]


def test_it_counts_what_the_filter_lets_through_whatever_time_it_asks_for(stream: uuid.UUID) -> None:
    for hours in (1, 2, 30):
        write(stream, NOW - timedelta(hours=hours), message="oom", severity="critical", node_name="gpu-1")
        write(stream, NOW - timedelta(hours=hours), message="fine")
    other = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    write(other, NOW - timedelta(hours=1))
    old = {"since": NOW - 3 * DAY, "until": NOW - 2 * DAY}
    for wish, number in (
        (Filter(**old), 4),
        (Filter(last="1h", severity="critical"), 2),
        (Filter(severity="warning"), 0),
        (Filter(text="OO", **old), 2),
        (Filter(node="gpu-1", reason="NodeReady"), 2),
    ):
        found = seen(stream, wish)
        assert found.total.entries == number, wish
        assert found.total.critical == (number if wish.severity or wish.text or wish.node else 2)
    assert seen(stream, Filter(severity="warning")).says == "None in the last 24 hours"


def test_the_newest_counted_is_this_streams_own_and_one_of_what_the_filter_lets_through(stream: uuid.UUID) -> None:
    """Ids of one stream are committed in their order, those of others in between them: a live row with a lower id may be new."""
    assert seen(stream).newest == 0
    write(stream, NOW, severity="warning")
    counted = Entry.objects.latest("pk").pk
    write(stream, NOW - 2 * DAY)
    write(stream, NOW - timedelta(hours=3), reason="NodeGone")
    highest = Entry.objects.latest("pk").pk
    write(Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id, NOW)
    assert seen(stream).newest == highest
    assert seen(stream, Filter(reason="NodeReady")).newest == seen(stream, Filter(severity="warning")).newest == counted


def test_a_flood_says_or_more_and_whatever_takes_long_to_count_leaves_the_picture_out(
    stream: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        write(stream, NOW - timedelta(hours=2, seconds=number), severity="warning" if number else "info")
    monkeypatch.setattr(queries, "MOST_IN_BAR", 5)
    found = seen(stream)
    assert found.says == "5 or more in the last 24 hours"
    assert any(hour.words.endswith(": 5 or more entries, 5 warnings") for hour in found.hours)
    monkeypatch.setattr(queries, "LONGEST_LATELY", 1)
    monkeypatch.setattr(queries, "_in_bar", lambda _: ("SELECT 1 AS number, 1 AS newest FROM pg_sleep(1)", ()))
    for wish in (Filter(), Filter(text="x"), Filter(reason="NodeReady", node="gpu-1")):
        assert queries.lately(stream, wish, NOW) is None


def test_it_reads_the_day_and_no_more_of_a_long_ledger(stream: uuid.UUID) -> None:
    """Of 20,000 entries, a minute apart, those of the day are looked at once each; what the index has is all that is needed."""
    write(stream, NOW)
    columns = [field.column for field in Entry._meta.concrete_fields if not field.primary_key]
    places = ", ".join("at - n * interval '1 minute'" if column == "at" else column for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO timeline_entry ({', '.join(columns)}) "
            f"SELECT {places} FROM timeline_entry, generate_series(1, 20000) AS n"
        )
        cursor.execute("ANALYZE timeline_entry")
    with CaptureQueriesContext(connection) as asked:
        assert seen(stream).total.entries == 1440 + 1
    (query,) = [one for one in asked if "timeline_entry" in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + query["sql"])
        ((plan,),) = cursor.fetchall()
    scans = list(scans_of(plan[0]["Plan"] if isinstance(plan, list) else json.loads(plan)[0]["Plan"]))
    assert {scan["Node Type"] for scan in scans} <= {"Index Only Scan", "Index Scan"}
    assert sum(round(scan["Actual Rows"] * scan["Actual Loops"]) for scan in scans) < 1500  # rows are told rounded, a loop
    assert all(scan.get("Rows Removed by Filter", 0) == 0 for scan in scans)


def scans_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if node.get("Relation Name") == "timeline_entry":
        yield node
    for part in node.get("Plans", ()):
        yield from scans_of(part)
