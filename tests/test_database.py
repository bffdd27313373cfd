"""Instants come out of the database as they went in, in UTC."""

from datetime import UTC, datetime

import pytest

from console.timeline.models import INSTALLATION, Entry, Stream

INSTANTS = (
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    datetime(2026, 11, 1, 0, 0, 0, 5, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC),
    datetime(1890, 1, 1, 12, tzinfo=UTC),
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
)


@pytest.mark.parametrize("at", INSTANTS)
def test_an_instant_is_read_as_it_was_written(db: None, at: datetime) -> None:
    Stream.objects.create(pk=INSTALLATION, kind=Stream.Kind.INSTALLATION)
    Entry.objects.create(stream_id=INSTALLATION, at=at, recorded_at=at, first_at=at, last_at=at, message="then")
    rows = Entry.objects.order_by("pk").values_list("at", flat=True)
    for read in (rows[0], next(iter(rows.iterator()))):  # and through a cursor of the server's, as the exports read
        assert read == at
        assert read.tzinfo is UTC
