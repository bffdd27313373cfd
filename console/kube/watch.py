"""List, then watch from that version, for ever.

The loop is ours because what can go wrong is ours to tell: the library's and the official client's loops forget versions, hang on
silence, or end. Nothing here ends, raises or decides; trouble is told as `Failed` and the next try follows.

What it holds (each from a fault people had elsewhere):
- 410, as HTTP or inside the stream, means list again, with back-off (apache/airflow#21087, kr8s-org/kr8s#476);
- silence is noticed by our own read time-out (kubernetes-client/python#1148, nolar/kopf#810);
- a list is given whole, so that what vanished unseen can be taken away (lensapp/lens#2375), and never an older one than was seen;
- a bookmark moves the version and is no object (kubernetes-client/python#1404).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from console.kube import parse
from console.kube.answers import loads, status_error
from console.kube.api import utc_now
from console.kube.client import Kube, selectors
from console.kube.errors import Expired, Garbage, KubeError, Stale
from console.kube.fields import Json, mapping, number, text
from console.kube.resources import path
from console.kube.shapes import Change, ChangeType, Kind, Listing

# How long the server keeps one watch open, in seconds. It sends a bookmark two seconds before the end and otherwise only each
# minute (measured, Kubernetes 1.36), so this is what tells a quiet cluster from a dead one within half a minute.
SERVER_TIMEOUT = 25

# Silence after which we no longer believe in a stream, in seconds: longer than the server lets any watch be quiet.
READ_TIMEOUT = 40

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 30.0

# After so many failures in a row the version we continue from is itself under suspicion.
_FAILURES_BEFORE_LIST = 3

# No two watches are opened, and no two Heard are told, closer together than this.
_PACE = timedelta(seconds=1)

# A stored object has at most 1.5 MiB (etcd's limit); its JSON in a watch some times that.
_LONGEST_LINE = 16 * 1024 * 1024

_CHANGES: dict[str, ChangeType] = {"ADDED": "ADDED", "MODIFIED": "MODIFIED", "DELETED": "DELETED"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete list. What we knew and it does not have is gone (unless its `broken` says that it is not complete)."""

    listing: Listing


@dataclass(frozen=True, slots=True)
class Heard:
    """The API spoke, whatever it said. The picture is true up to `resource_version` as of `at`."""

    at: datetime
    resource_version: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Trouble since `since`. Nothing known becomes untrue by it, only older; the next try is at `next_try`.

    A single unreadable object is told so too, with `next_try` now: it was left out and the stream went on.
    """

    error: KubeError
    since: datetime
    next_try: datetime


Signal = Listed | Change | Heard | Failed


async def follow(
    kube: Kube,
    kind: Kind,
    *,
    labels: str | None = None,
    fields: str | None = None,
    since: str | None = None,
    server_timeout: int = SERVER_TIMEOUT,
    read_timeout: float = READ_TIMEOUT,
    clock: Callable[[], datetime] = utc_now,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[Signal, None]:
    """Everything that happens to the objects of `kind`, without end: a list first, then its changes, and how well we hear.

    With `since` it continues from that version instead of listing. Close it with `aclosing`. It raises nothing but cancellation.
    """
    wanted = selectors(labels, fields)
    place = _Place(version=since, highest=since)
    while True:
        try:
            if place.version is None:
                listing = await kube.list(kind, labels=labels, fields=fields)
                place.listed(listing)
                for sentence in listing.broken:
                    yield Failed(Garbage(sentence), clock(), clock())
                yield Listed(listing)
            await pause(place.wait_for_turn(clock()))
            async with aclosing(_watch(kube, kind, place, wanted, server_timeout, read_timeout, clock)) as signals:
                async for signal in signals:
                    yield signal
        except KubeError as error:
            now = clock()
            delay = place.failed(error, now)
            yield Failed(error, place.trouble_since or now, now + timedelta(seconds=delay))
            await pause(delay)


async def _watch(
    kube: Kube,
    kind: Kind,
    place: _Place,
    wanted: dict[str, str],
    server_timeout: int,
    read_timeout: float,
    clock: Callable[[], datetime],
) -> AsyncGenerator[Signal, None]:
    """One watch, until the server ends it. Raises any KubeError."""
    opened = clock()
    place.opened(opened)
    asked = wanted | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": place.version or "",
        "timeoutSeconds": str(server_timeout),
    }
    lines = 0
    async with kube.stream(path(kind), asked, read_timeout) as chunks:
        yield place.heard(clock())
        async for line in _lines(chunks):
            if line:
                lines += 1
                try:
                    change = _change(kind, loads(line), place, clock())
                except BrokenObject as error:
                    yield Failed(error, clock(), clock())
                else:
                    if change:
                        yield change
            if place.may_tell(clock()):
                yield place.heard(clock())
    place.ended(quiet=not lines and kind != "events" and clock() - opened >= timedelta(seconds=server_timeout - 1))


class BrokenObject(Garbage):
    """One object of a stream that cannot be read; the stream itself is well."""


def _change(kind: Kind, raw: Json, place: _Place, now: datetime) -> Change | None:
    """One line of a watch; None for a bookmark. Raises what an ERROR in it says, or BrokenObject."""
    type_, body = text(raw, "type"), mapping(raw, "object")
    if type_ == "ERROR":
        raise status_error(number(body, "code") or 0, body)
    place.moved(text(mapping(body, "metadata"), "resourceVersion"))
    if type_ == "BOOKMARK":
        return None
    if type_ not in _CHANGES:
        raise BrokenObject(f"The watch of {kind} said something unknown ({type_ or 'nothing'}).")
    try:
        return Change(kind, _CHANGES[type_], parse.shape(kind, body, now))
    except Garbage as error:
        raise BrokenObject(error.sentence) from error


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines, however the network cut them; an empty one after each chunk, so that any byte counts as a sign of life."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > _LONGEST_LINE:
            raise Garbage("The watch sent a line that is too long to be an object.")
        yield b""
    yield rest


@dataclass(slots=True)
class _Place:
    """Where we are in the history of one kind, and how well it goes."""

    version: str | None
    highest: str | None
    failures: int = 0
    trouble_since: datetime | None = None
    _opened: datetime | None = field(default=None)
    _told: datetime | None = field(default=None)

    def listed(self, listing: Listing) -> None:
        """Continue from a list. Raises Stale for one that is older than what was seen."""
        if _older(listing.resource_version, self.highest):
            raise Stale(
                f"The Kubernetes API answered with version {listing.resource_version}, but {self.highest} was seen before. "
                "It may have been restored from a backup; restart the watcher once that is sure."
            )
        self.version = self.highest = listing.resource_version

    def moved(self, version: str) -> None:
        """The stream brought us to `version`: it works."""
        if version and not _older(version, self.version):
            self.version = self.highest = version
        self.failures = 0
        self.trouble_since = None

    def failed(self, error: KubeError, now: datetime) -> float:
        """Note a failure; seconds until the next try."""
        self.trouble_since = self.trouble_since or now
        self.failures += 1
        if isinstance(error, Expired) or self.failures >= _FAILURES_BEFORE_LIST:
            self.version = None
        delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(self.failures - 1, 10))
        return delay * random.uniform(1, 1.2)  # noqa: S311 - spreads retries, keeps no secret

    def ended(self, *, quiet: bool) -> None:
        """The server ended a watch in good order. A `quiet` one sent not even a bookmark: its history may not be ours any more
        (a version from before a restore is waited for, not refused), so the next step is a list."""
        self.failures = 0
        self.trouble_since = None
        if quiet:
            self.version = None

    def opened(self, now: datetime) -> None:
        """A watch is being opened."""
        self._opened = now

    def wait_for_turn(self, now: datetime) -> float:
        """Seconds until the next watch may be opened."""
        return max(0.0, (self._opened + _PACE - now).total_seconds()) if self._opened else 0.0

    def may_tell(self, now: datetime) -> bool:
        """Whether the last Heard is long enough ago for another."""
        return self._told is None or now - self._told >= _PACE

    def heard(self, now: datetime) -> Heard:
        """A sign of life, now."""
        self._told = now
        return Heard(now, self.version or "")


def _older(version: str, than: str | None) -> bool:
    # Versions are opaque by contract and integers in fact; what is no integer is not compared.
    return bool(than) and version.isdecimal() and str(than).isdecimal() and int(version) < int(str(than))
