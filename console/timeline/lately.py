"""The last 24 hours of a timeline as bars of 20 minutes, under each hour a link to its entries. Pure.

A bar is a stretch of instants, so it means the same to readers in every zone, and nothing of it depends on whose clock is put
back tonight; only the words over it are written in a reader's own zone (`static/js/lately.js`). It counts what the filter lets
through, whatever time the filter asks for, so that an hour can be chosen, and another after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from console.timeline.filters import Filter, between, query_of

LENGTH = timedelta(hours=24)
BAR = timedelta(minutes=20)
BASE, HIGH, LEAST = 40, 36, 3  # pixels: the baseline, the highest bar, the lowest part
FEWEST = 12  # entries at least that a bar of full height stands for
TICK_HOURS, MARGIN = 3, 0.03  # between two times on the axis; its share at either end that is left free of them


@dataclass(frozen=True)
class Counts:
    """Entries of a stretch, and those of them that are warnings and critical. `more`: these and more."""

    entries: int = 0
    warning: int = 0
    critical: int = 0
    more: bool = False

    @property
    def words(self) -> str:
        graver = [f"{self.warning:,} warning{'' if self.warning == 1 else 's'}"] if self.warning else []
        graver += [f"{self.critical:,} critical"] if self.critical else []
        number = f"{self.entries:,}{' or more' if self.more else ''} entr{'y' if self.entries == 1 else 'ies'}"
        return ", ".join([number, *graver])


@dataclass(frozen=True)
class Part:
    """One colour of a bar."""

    look: str
    y: int
    height: int


@dataclass(frozen=True)
class Bar:
    start: datetime
    counts: Counts
    x: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Hour:
    """`query` asks for its entries; `tick` is its beginning where the axis names it."""

    start: datetime
    words: str
    query: str
    current: bool
    x: str
    width: str
    bars: tuple[Bar, ...]
    tick: str


@dataclass(frozen=True)
class Lately:
    """`end` is when the newest bar is over and the picture is to be drawn anew; `newest` the highest id that is counted."""

    end: datetime
    newest: int
    total: Counts
    hours: tuple[Hour, ...]
    width: str  # of a bar

    @property
    def says(self) -> str:
        number = f"{self.total.entries:,}{' or more' if self.total.more else ''}" if self.total.entries else "None"
        return f"{number} in the last 24 hours"


def edges(now: datetime) -> list[datetime]:
    """Where bars begin and the last one ends: from 24 hours ago, so the first is cut, to the end of the running one."""
    running = now.replace(minute=now.minute - now.minute % 20, second=0, microsecond=0)
    return [now - LENGTH, *(running - BAR * back for back in range(LENGTH // BAR - 1, -2, -1))]


def draw(counted: Sequence[Counts], newest: int, chosen: Filter, now: datetime) -> Lately:
    """`counted` is of each stretch between two `edges(now)`."""
    starts = edges(now)
    share, top = 1 / len(counted), max(FEWEST, *(counts.entries for counts in counted))
    bars = [
        Bar(begins, counts, _percent(number * share), parts(counts, top))
        for number, (begins, counts) in enumerate(zip(starts[:-1], counted, strict=True))
    ]
    hours, shown = [], 0
    for hour, group in groupby(bars, key=lambda bar: bar.start.replace(minute=0, second=0, microsecond=0)):
        some = tuple(group)
        hours.append(_hour(hour, some, shown * share, share, chosen))
        shown += len(some)
    return Lately(starts[-1], newest, _sum(counted), tuple(hours), _percent(share * 0.72))


def parts(counts: Counts, top: int) -> tuple[Part, ...]:
    """From the baseline up: information, warnings, critical ones. What is there at all can be seen."""
    numbers = {"s-info": counts.entries - counts.warning - counts.critical, "s-warn": counts.warning, "s-crit": counts.critical}
    drawn, y = [], BASE
    for look, number in numbers.items():
        if number > 0:
            height = max(LEAST, round(number * HIGH / top))
            y -= height
            drawn.append(Part(look, y, height))
    return tuple(drawn)


def _hour(hour: datetime, bars: tuple[Bar, ...], at: float, share: float, chosen: Filter) -> Hour:
    begins, ends = bars[0].start, hour + timedelta(hours=1)
    last = ends - timedelta(microseconds=1)  # a filter includes its ends
    stretch = f"{begins:%a} {begins.day} {begins:%b}, {begins:%H:%M} to {ends:%H:%M} UTC"
    named = hour.hour % TICK_HOURS == 0 and MARGIN < at < 1 - MARGIN
    return Hour(
        start=begins,
        words=f"{stretch}: {_sum([bar.counts for bar in bars]).words}",
        query=query_of(between(chosen, begins, last)),
        current=(chosen.since, chosen.until) == (begins, last),
        x=_percent(at),
        width=_percent(share * len(bars)),
        bars=bars,
        tick=f"{hour:%H:%M}" if named else "",
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(
        sum(one.entries for one in counts),
        sum(one.warning for one in counts),
        sum(one.critical for one in counts),
        any(one.more for one in counts),
    )


def _percent(share: float) -> str:
    return f"{share * 100:.3f}".rstrip("0").rstrip(".") + "%"
