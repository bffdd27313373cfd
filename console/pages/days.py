"""Timeline rows under the headings of their days (UTC), each with its drain's verdicts: two queries besides the entries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from uuid import UUID

from console.capacity.drawing.verdict_table import render_drain
from console.capacity.models import Drain
from console.timeline.models import Entry
from console.timeline.queries import Place
from console.timeline.rows import render_entry


@dataclass(frozen=True)
class Day:
    day: date
    word: str  # Today, Yesterday, or nothing
    rows: tuple[str, ...]


def under_days(entries: Sequence[Entry], now: datetime) -> list[Day]:
    words = {now.date(): "Today", now.date() - timedelta(days=1): "Yesterday"}
    drawn = zip(entries, rows_of(entries, now), strict=True)
    return [
        Day(day, words.get(day, ""), tuple(row for _, row in group))
        for day, group in groupby(drawn, key=lambda one: one[0].at.date())
    ]


def rows_of(entries: Sequence[Entry], now: datetime) -> list[str]:
    drains = _drains(entry.drain_id for entry in entries if entry.drain_id)
    return [_row(entry, drains, now) for entry in entries]


def _drains(ids: Iterable[UUID]) -> dict[UUID, Drain]:
    return Drain.objects.prefetch_related("verdicts").in_bulk(list(ids))


def _row(entry: Entry, drains: dict[UUID, Drain], now: datetime) -> str:
    drain = drains.get(entry.drain_id) if entry.drain_id else None
    return render_entry(entry, render_drain(drain, drain.verdicts.all(), now) if drain is not None else "")


def place_of(entry: Entry) -> str:
    """An entry's place as it stands in an address."""
    return f"{entry.at.isoformat()}~{entry.pk}"


def read_place(text: str) -> Place | None:
    """The other way round; nonsense is no place, which shows the newest."""
    at, _, pk = text.partition("~")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (moment, int(pk)) if moment.tzinfo is not None and pk.isascii() and pk.isdigit() and len(pk) < 19 else None
