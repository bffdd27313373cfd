"""What is too old goes, in small steps, once; and what went can be named."""

import threading
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from console.timeline import queries, retention
from console.timeline.changes import change
from console.timeline.models import Entry, FoldedEvent, Pruned, Stream, Tombstone
from console.timeline.retention import prune

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def a_ledger(ages: list[int]) -> uuid.UUID:
    """Entries of so many days each."""
    stream = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    with change(NOON) as made:
        for age in ages:
            made.entry(stream, "NodeReady", f"{age} days old", at=NOON - age * DAY)
    return stream


def left(stream: uuid.UUID) -> list[str]:
    return list(Entry.objects.filter(stream=stream).order_by("at").values_list("message", flat=True))


def test_entries_go_after_the_days_that_the_setting_says(db: None, settings: Any) -> None:
    stream = a_ledger([100, 91, 89, 8, 6, 0])
    assert prune(NOON) == 2
    assert left(stream) == ["89 days old", "8 days old", "6 days old", "0 days old"]
    assert prune(NOON) == 0
    settings.RETENTION_DAYS = 7
    assert prune(NOON) == 2
    assert left(stream) == ["6 days old", "0 days old"]


def test_a_link_to_an_entry_that_went_can_say_when(db: None) -> None:
    stream, other = a_ledger([100, 99, 1]), a_ledger([1])
    first, last, kept = Entry.objects.filter(stream=stream).order_by("at").values_list("pk", flat=True)
    prune(NOON)
    prune(NOON + timedelta(minutes=1))
    for gone in (first, last):
        note = queries.pruned(stream, gone)
        assert note is not None
        assert (note.at, note.before, note.rows) == (NOON, NOON - 90 * DAY, 2)
    assert queries.pruned(stream, kept) is None
    assert queries.pruned(other, first) is None


def test_a_run_takes_small_steps_and_ends_in_time_and_the_next_goes_on(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STEP", 10)
    stream = a_ledger([100] * 35)
    ticks = iter((0, 1, 2, 9, 9, 9, 9))  # seconds: the third step is not begun
    assert prune(NOON, lambda: float(next(ticks))) == 20
    assert len(left(stream)) == 15
    assert prune(NOON) == 15
    assert Pruned.objects.get().rows == 35  # one note a day, however many steps


def test_the_marks_of_what_disappeared_go_after_a_week(db: None) -> None:
    stream = a_ledger([])
    for age in (8, 6):
        Tombstone.objects.create(stream_id=stream, kind="node", object_id=str(age), revision=age, at=NOON - age * DAY)
        FoldedEvent.objects.create(stream_id=stream, source_uid=str(age), at=NOON - age * DAY)
    prune(NOON)
    assert [stone.object_id for stone in Tombstone.objects.all()] == ["6"]
    assert [event.source_uid for event in FoldedEvent.objects.all()] == ["6"]


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_take_each_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """celery/celery#3153: beats double; nothing may depend on there being one."""
    monkeypatch.setattr(retention, "STEP", 7)
    stream, taken = a_ledger([100] * 200 + [1]), list[int]()

    def run() -> None:
        try:
            for _ in range(40):
                taken.append(prune(NOON))
        finally:
            connection.close()

    runs = [threading.Thread(target=run) for _ in range(2)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert sum(taken) == 200
    assert sum(note.rows for note in Pruned.objects.all()) == 200
    assert left(stream) == ["1 days old"]
