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
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.kube import parse
from console.kube.answers import loads, status_error
from console.kube.api import utc_now
from console.kube.client import Kube, selectors
from console.kube.errors import Garbage, KubeError
from console.kube.fields import Json, mapping, number, text
from console.kube.place import Place
from console.kube.resources import path
from console.kube.shapes import Change, ChangeType, Kind, Listing

# How long the server keeps one watch open, in seconds. It sends a bookmark two seconds before the end and otherwise only each
# minute (measured, Kubernetes 1.36), so this is what tells a quiet cluster from a dead one within half a minute. With 25 s the
# light of a quiet real cluster was seen at 30.5 s, half a second amber.
SERVER_TIMEOUT = 20

# Silence after which we no longer believe in a stream, in seconds: longer than the server lets any watch be quiet.
READ_TIMEOUT = 40

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


class BrokenObject(Garbage):
    """One object of a stream that cannot be read; the stream itself is well."""


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
    place = Place(version=since, highest=since)
    while True:
        try:
            if place.doubted:
                place.compared(await kube.newest(kind))
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
    place: Place,
    wanted: dict[str, str],
    server_timeout: int,
    read_timeout: float,
    clock: Callable[[], datetime],
) -> AsyncGenerator[Signal, None]:
    """One watch, until the server ends it. Raises any KubeError."""
    place.opened(clock())
    asked = wanted | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": place.version or "",
        "timeoutSeconds": str(server_timeout),
    }
    lines = 0
    async with kube.stream(path(kind), asked, read_timeout) as chunks:
        answered = clock()
        place.answered(answered)
        yield Heard(*place.heard(clock()))
        async for line in _lines(chunks):
            if line:
                lines += 1
                try:
                    change = _change(kind, loads(line), place, clock())
                except BrokenObject as error:
                    yield Failed(error, clock(), clock())
                else:
                    yield change or Heard(*place.heard(clock()))
            if place.may_tell(clock()):
                yield Heard(*place.heard(clock()))
    place.ended(quiet=not lines and kind != "events" and clock() - answered >= timedelta(seconds=server_timeout - 1))


def _change(kind: Kind, raw: Json, place: Place, now: datetime) -> Change | None:
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
