"""Watching, for as long as a lease lasts: one group of coroutines a cluster.

Three followers (nodes, pods, events) fill one inbox; one writer empties it. The writer takes everything that waits and never
waits for more, so a single change is written at once and a burst batches itself (DESIGN 4). Database work runs on threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError

from console.clusters.leases import Held
from console.kube.client import Kube
from console.kube.kubeconfig import Connection
from console.kube.shapes import EventShape, Kind
from console.kube.watch import Listed, follow
from console.sync import errands
from console.sync.errands import Errand
from console.sync.ingest import wanted
from console.sync.room import KINDS, Item, Room, Seen, Tick, items
from console.sync.threads import Threads
from console.sync.writer import MOST, enter, write

log = logging.getLogger(__name__)

# Items that may wait for the writer before the followers are held back.
INBOX = 5000

# Seconds between two tries while the database does not answer. What waits, waits; nothing is dropped.
DATABASE_PAUSE = 1.0


class ClusterWatch:
    """One cluster under one lease. `run` ends only by cancellation, by the lease's loss, or by a fault of ours."""

    def __init__(
        self, cluster_id: UUID, connection: Connection, held: Held, threads: Threads, clock: Callable[[], datetime]
    ) -> None:
        self.cluster_id = cluster_id
        self._connection = connection
        self._held = held
        self._threads = threads
        self._clock = clock
        self._inbox: asyncio.Queue[Item] = asyncio.Queue(INBOX)

    async def run(self) -> None:
        """List, watch, write. A group: where one part falls, all do, and the next start lists anew."""
        room = await self._threads.call(enter, self.cluster_id, self._held)
        async with Kube(self._connection) as kube, asyncio.TaskGroup() as group:
            for kind in KINDS:
                group.create_task(self._read(kube, kind, room.floors.get(kind, "")))
            group.create_task(self._tick())
            group.create_task(self._write(kube, room, group))

    async def _read(self, kube: Kube, kind: Kind, floor: str) -> None:
        async with aclosing(follow(kube, kind)) as signals:
            async for signal in signals:
                for item in items(kind, signal, self._clock(), floor):
                    if is_of_use(item):
                        await self._inbox.put(item)
                if isinstance(signal, Listed):
                    floor = ""  # from here on the follower itself refuses what is older

    async def _tick(self) -> None:
        """Silence has consequences too: trouble becomes news only after a while."""
        while True:
            await asyncio.sleep(1)
            await self._inbox.put(Tick())

    async def _write(self, kube: Kube, room: Room, group: asyncio.TaskGroup) -> None:
        for errand in await self._stored(errands.unannounced, self.cluster_id, self._clock()):
            group.create_task(self._do(kube, errand))
        while True:
            batch = [await self._inbox.get()]
            while len(batch) < MOST and not self._inbox.empty():
                batch.append(self._inbox.get_nowait())
            room.clock_offset = kube.clock_offset
            for errand in await self._stored(write, room, batch, self._clock()):
                group.create_task(self._do(kube, errand))

    async def _stored(self, function: Callable[..., list[Errand]], *args: object) -> list[Errand]:
        """Run on a thread, again and again while the database does not answer."""
        while True:
            try:
                return await self._threads.call(function, *args)
            except (OperationalError, InterfaceError) as error:
                log.warning("database_unreachable", extra={"cluster": str(self.cluster_id), "why": str(error).strip()})
                await asyncio.sleep(DATABASE_PAUSE)

    async def _do(self, kube: Kube, errand: Errand) -> None:
        came = await errands.run(kube, errand)
        if came is not None:
            await self._threads.call(errands.note, self.cluster_id, errand, came, self._clock())


def is_of_use(item: Item) -> bool:
    """Events that will never be rows are dropped before they wait in line."""
    return not (isinstance(item, Seen) and isinstance(item.shape, EventShape)) or wanted(item.shape, settings.WATCH_POD_EVENTS)
