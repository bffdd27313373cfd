"""Objects of one cluster, the one counter that orders their changes, and what happened lately.

A change is written to the journal, then to memory, then told to whoever watches, in one step of the event loop: nobody
can see a version that a restart would take back. Recent changes are kept per resource, so that a watch can start in the
past; what fell out of that memory is answered with 410, as etcd's compaction does.
"""

import asyncio
import bisect
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from console.simulator.journal import Journal
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, dumps, loads

HISTORY = 20_000  # changes kept per resource; a watch further back than that gets 410
BACKLOG = 50_000  # changes a watcher may fall behind before its stream ends


@dataclass(frozen=True)
class Record:
    """One object as stored: without kind and apiVersion, as lists carry it; shared, so never changed in place."""

    version: int
    body: Json

    @cached_property
    def raw(self) -> bytes:
        """Its JSON, made once for all answers and streams."""
        return dumps(self.body)


@dataclass(frozen=True)
class Event:
    """One change: `old` is None when the object is new, `new` is its last state even when it was deleted."""

    version: int
    key: str
    deleted: bool
    new: Record
    old: Record | None


class Subscription:
    """One watcher's queue."""

    def __init__(self) -> None:
        self.queue: deque[Event] = deque()
        self.wake = asyncio.Event()
        self.lost = False

    def push(self, event: Event) -> None:
        """Hand over a change; a reader that is hopelessly behind is cut off instead of filling the memory."""
        if len(self.queue) >= BACKLOG:
            self.lost = True
        else:
            self.queue.append(event)
        self.wake.set()


class _Shelf:
    """The objects and recent changes of one resource."""

    def __init__(self, oldest: int) -> None:
        self.records: dict[str, Record] = {}
        self.history: deque[Event] = deque()
        self.oldest = oldest  # changes after this version are all in `history`
        self.subscriptions: set[Subscription] = set()


class Store:
    """All objects of one cluster."""

    def __init__(self, cluster: str, journal: Journal) -> None:
        self.cluster = cluster
        self.version = max(journal.version(cluster), 1)
        self._journal = journal
        self._shelves: dict[str, _Shelf] = {}
        for resource, key, version, body in journal.objects(cluster):
            self._shelf(resource).records[key] = Record(version, loads(body))

    def _shelf(self, resource: str) -> _Shelf:
        if resource not in self._shelves:
            self._shelves[resource] = _Shelf(self.version)
        return self._shelves[resource]

    def get(self, resource: Resource, namespace: str, name: str) -> Record | None:
        """One object."""
        return self._shelf(resource.key).records.get(f"{namespace}/{name}")

    def records(self, resource: Resource) -> Iterator[tuple[str, Record]]:
        """All objects with their keys, in the order of the keys."""
        yield from sorted(self._shelf(resource.key).records.items())

    def in_namespace(self, resource: Resource, namespace: str) -> Iterator[Record]:
        """The objects of one namespace, unordered."""
        prefix = f"{namespace}/"
        yield from [record for key, record in self._shelf(resource.key).records.items() if key.startswith(prefix)]

    def put(self, resource: Resource, body: Json) -> Record:
        """Write an object under the next version. `body` belongs to the store from here on."""
        shelf = self._shelf(resource.key)
        metadata = body["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        version = self.version + 1
        metadata["resourceVersion"] = str(version)
        record = Record(version, body)
        self._journal.put(self.cluster, resource.key, key, version, record.raw)
        old = shelf.records.get(key)
        shelf.records[key] = record
        self._tell(shelf, Event(version, key, False, record, old))
        return record

    def remove(self, resource: Resource, body: Json) -> Record:
        """Delete an object; `body` is its last state, which watchers see under a version of its own."""
        shelf = self._shelf(resource.key)
        metadata = body["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        version = self.version + 1
        metadata["resourceVersion"] = str(version)
        record = Record(version, body)
        self._journal.remove(self.cluster, resource.key, key, version)
        self._tell(shelf, Event(version, key, True, record, shelf.records.pop(key)))
        return record

    def _tell(self, shelf: _Shelf, event: Event) -> None:
        self.version = event.version
        shelf.history.append(event)
        if len(shelf.history) > HISTORY:
            shelf.oldest = shelf.history.popleft().version
        for subscription in shelf.subscriptions:
            subscription.push(event)

    def oldest(self, resource: Resource) -> int:
        """The oldest version a watch of this resource can start from."""
        return self._shelf(resource.key).oldest

    def compact(self) -> None:
        """Forget what happened: every watch from the past gets 410 from now on."""
        for shelf in self._shelves.values():
            shelf.history.clear()
            shelf.oldest = self.version

    def since(self, resource: Resource, version: int) -> list[Event]:
        """The changes after `version`, oldest first; the caller has compared it with `oldest`."""
        history = self._shelf(resource.key).history
        first = bisect.bisect_right(history, version, key=lambda event: event.version)
        return [history[at] for at in range(first, len(history))]

    def at(self, resource: Resource, version: int) -> list[tuple[str, Record]]:
        """All objects as they were at `version` (a list's later pages show the same instant as its first)."""
        records = dict(self._shelf(resource.key).records)
        for event in reversed(self.since(resource, version)):
            if event.old is None:
                records.pop(event.key, None)
            else:
                records[event.key] = event.old
        return sorted(records.items())

    def subscribe(self, resource: Resource) -> Subscription:
        """Be told of every change from now on."""
        subscription = Subscription()
        self._shelf(resource.key).subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, resource: Resource, subscription: Subscription) -> None:
        """Be told no more."""
        self._shelf(resource.key).subscriptions.discard(subscription)
