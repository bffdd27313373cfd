"""A watch: what changed since a version, then what changes, with bookmarks, until its time is over."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass

from console.simulator.kubernetes.errors import ApiError, expired
from console.simulator.kubernetes.listing import number
from console.simulator.kubernetes.paths import Target
from console.simulator.kubernetes.render import Renderer
from console.simulator.kubernetes.selectors import matcher, parse_fields, parse_labels
from console.simulator.kubernetes.store import Event, Record, Store, Subscription
from console.simulator.values import Json, dumps

LAST_BOOKMARK_SECONDS = 2.0  # before its end, as the real one does
BOOKMARK_SECONDS = 10.0  # the real one sends them about once a minute; a quick one shows sooner that a client obeys them
DEFAULT_SECONDS = (1800, 3600)  # as the real one: a random time, so that watches do not all come back together
Matches = Callable[[Json], bool]


def translate(event: Event, matches: Matches) -> str | None:
    """The change as a watcher with a selector sees it: an object that leaves the selection is DELETED for it."""
    before = event.old is not None and matches(event.old.body)
    after = not event.deleted and matches(event.new.body)
    if after:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None


def check(query: Mapping[str, str]) -> None:
    """Refuse `sendInitialEvents` where the real one does."""
    match, initial = query.get("resourceVersionMatch"), query.get("sendInitialEvents")
    why = ""
    if initial is not None and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif initial is None and match is not None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    if why:
        cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {why}", "field": "resourceVersionMatch"}
        message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {why}'
        details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
        raise ApiError(422, "Invalid", message, details)


@dataclass(frozen=True)
class Watch:
    """What a watch was asked for, read and checked."""

    target: Target
    renderer: Renderer
    matches: Matches
    since: int  # 0: everything there is comes first
    initial: bool
    bookmarks: bool
    seconds: float


def parse(target: Target, query: Mapping[str, str], renderer: Renderer) -> Watch:
    """Read a watch's query. Raises ApiError for what is refused with an HTTP status."""
    fields = parse_fields(target.resource, query.get("fieldSelector", ""))
    matches = matcher(target.namespace, parse_labels(query.get("labelSelector", "")), fields)
    since = number(query.get("resourceVersion") or "0", "resourceVersion")
    seconds = number(query.get("timeoutSeconds") or "0", "timeoutSeconds") or random.uniform(*DEFAULT_SECONDS)
    check(query)
    initial, bookmarks = query.get("sendInitialEvents") in ("true", "1"), query.get("allowWatchBookmarks") in ("true", "1")
    return Watch(target, renderer, matches, 0 if initial else since, initial, bookmarks, seconds)


async def lines(store: Store, asked: Watch) -> AsyncGenerator[bytes, None]:
    """The lines of a watch, several in one piece where several are due."""
    resource = asked.target.resource
    if asked.since and asked.since < store.oldest(resource):
        yield error_line(expired(asked.since, store.oldest(resource)))
        return
    subscription = store.subscribe(resource)
    try:
        loop = asyncio.get_running_loop()
        end = loop.time() + asked.seconds
        next_mark = _next_mark(loop.time(), end)
        teller = _Teller(asked, asked.since or store.version)
        if asked.since:
            subscription.queue.extend(store.since(resource, asked.since))
        else:
            yield teller.everything(store)
        while loop.time() < end and not subscription.lost:
            subscription.wake.clear()
            if piece := teller.changes(subscription):
                yield piece
            # A bookmark promises that everything before it was told, so none is sent while something waits.
            if asked.bookmarks and loop.time() >= next_mark and not subscription.queue:
                next_mark = _next_mark(loop.time(), end)
                # Nor to who asks for a version that is still to come: the real one leaves it waiting in silence.
                if store.version >= teller.version:
                    teller.version = store.version
                    yield asked.renderer.bookmark(teller.version)
            if not subscription.queue:
                await _woken(subscription.wake, min(end, next_mark if asked.bookmarks else end) - loop.time())
    finally:
        store.unsubscribe(resource, subscription)


class _Teller:
    """Renders one watch's changes; a table's column heads go with the first row only."""

    def __init__(self, asked: Watch, version: int) -> None:
        self._asked = asked
        self._first = True
        self.version = version

    def _line(self, kind: str, record: Record) -> bytes:
        line = self._asked.renderer.change(kind, record, first=self._first)
        self._first = False
        return line

    def everything(self, store: Store) -> bytes:
        """What is there already, and the bookmark that says it is complete."""
        asked = self._asked
        records = [record for _, record in store.records(asked.target.resource) if asked.matches(record.body)]
        pieces = [self._line("ADDED", record) for record in records]
        if asked.initial and asked.bookmarks:
            pieces.append(asked.renderer.bookmark(self.version, initial=True))
        return b"".join(pieces)

    def changes(self, subscription: Subscription) -> bytes:
        """Everything that waits, as one piece."""
        pieces = []
        while subscription.queue:
            event = subscription.queue.popleft()
            if event.version <= self.version:
                continue
            self.version = event.version
            if kind := translate(event, self._asked.matches):
                pieces.append(self._line(kind, _left(event) if kind == "DELETED" else event.new))
        return b"".join(pieces)


def _left(event: Event) -> Record:
    """The last state a watcher may see: one that left its selection is shown as it was, under the new version."""
    if event.deleted or event.old is None:
        return event.new
    metadata = {**event.old.body["metadata"], "resourceVersion": str(event.version)}
    return Record(event.version, {**event.old.body, "metadata": metadata})


def _next_mark(now: float, end: float) -> float:
    """When the next bookmark is due: at a steady pace, and shortly before the watch ends."""
    last = end - LAST_BOOKMARK_SECONDS
    return min(now + BOOKMARK_SECONDS, last) if now < last else now + BOOKMARK_SECONDS


async def _woken(wake: asyncio.Event, seconds: float) -> None:
    """Wait for a change, but no longer than that."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await wake.wait()
    except TimeoutError:
        return


def error_line(error: ApiError) -> bytes:
    """An error inside a stream whose status is 200 already."""
    return dumps({"type": "ERROR", "object": error.status()}) + b"\n"
