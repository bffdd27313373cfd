"""One hub a process: reads what is new once, and hands the same text to all its sockets.

A nudge (or the look at all heads every two seconds, so that a lost nudge costs two seconds) starts a read of one cluster.
One read runs and one may wait, however many nudges come: a burst batches itself, and no work is done per socket (DESIGN 4).
Rights are checked again for everybody at once, on the access nudge and each 30 s; whoever lost theirs is closed with 4403.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError

from console.feed import reads
from console.feed.listener import listen
from console.feed.threads import in_thread
from console.live import ACCESS

log = logging.getLogger(__name__)

LOOK_EVERY = 2.0  # seconds between two looks at the heads of all watched streams
BEAT_EVERY = 5.0  # seconds between two heartbeats; the browser's light goes out after 10
RIGHTS_EVERY = 30.0  # seconds
WAITING = 64  # frames a slow browser may lag behind before it is told to load the page again

RIGHT_LOST = 4403


@dataclass(eq=False)
class Listener:
    """One socket, as the hub sees it: who, and the frames that wait for it. A number in the queue closes it with that code."""

    user_id: int
    session_key: str
    project_id: UUID
    queue: asyncio.Queue[str | int] = field(default_factory=lambda: asyncio.Queue(WAITING))

    def hand(self, frame: str | int) -> None:
        """Never waits: a browser that cannot keep up loses its backlog and is told to load the page again."""
        try:
            self.queue.put_nowait(frame)
        except asyncio.QueueFull:
            while not self.queue.empty():
                self.queue.get_nowait()
            self.queue.put_nowait(frame if isinstance(frame, int) else reads.reload_frame("too much at once"))


@dataclass(eq=False)
class Channel:
    """One cluster that somebody looks at."""

    cluster_id: UUID
    streams: dict[UUID, int]  # the cluster's stream and its pool's, each with the revision read last
    epoch: str
    listeners: set[Listener] = field(default_factory=set)
    reading: bool = False
    again: bool = False


class Hub:
    """Lives on the process's loop; every method is called there."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._channels: dict[UUID, Channel] = {}
        self._by_stream: dict[UUID, set[UUID]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def join(self, cluster_id: UUID, listener: Listener) -> None:
        """From now on the listener gets what is new. It asks for what it missed itself, afterwards: doubles are harmless."""
        channel = self._channels.get(cluster_id)
        if channel is None:
            start = await in_thread(reads.start, cluster_id)
            channel = self._channels.setdefault(cluster_id, Channel(cluster_id, dict(start.streams), start.epoch))
            for stream in start.streams:
                self._by_stream.setdefault(stream, set()).add(cluster_id)
        channel.listeners.add(listener)
        self._start()

    def leave(self, cluster_id: UUID, listener: Listener) -> None:
        channel = self._channels.get(cluster_id)
        if channel is None:
            return
        channel.listeners.discard(listener)
        if not channel.listeners:
            del self._channels[cluster_id]
            for stream in channel.streams:
                self._by_stream.get(stream, set()).discard(cluster_id)

    def _start(self) -> None:
        if not self._tasks:
            self._spawn(listen(self._redis_url, self._heard, self._look_everywhere))
            self._spawn(self._look())
            self._spawn(self._beat())
            self._spawn(self._check())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _heard(self, nudge: str) -> None:
        if nudge == ACCESS:
            self._spawn(self._check_once())
            return
        try:
            stream = UUID(nudge)
        except ValueError:
            return
        for cluster_id in self._by_stream.get(stream, ()):
            self._read(cluster_id)

    def _look_everywhere(self) -> None:
        for cluster_id in self._channels:
            self._read(cluster_id)

    def _read(self, cluster_id: UUID) -> None:
        channel = self._channels.get(cluster_id)
        if channel is None:
            return
        if channel.reading:
            channel.again = True
            return
        channel.reading = True
        self._spawn(self._read_until_quiet(channel))

    async def _read_until_quiet(self, channel: Channel) -> None:
        try:
            while True:
                channel.again = False
                news = await in_thread(reads.news, channel.cluster_id, dict(channel.streams), channel.epoch)
                channel.streams, channel.epoch = dict(news.streams), news.epoch
                if news.frame is not None:
                    self._hand(channel.listeners, news.frame)
                if not (channel.again or news.more):
                    return
        except DatabaseError as error:
            # Nothing is lost: the revision stands where it was, and the next look reads again.
            log.warning("feed_read_failed", extra={"cluster": str(channel.cluster_id), "why": str(error)})
        finally:
            channel.reading = False

    @staticmethod
    def _hand(listeners: Iterable[Listener], frame: str | int) -> None:
        for listener in tuple(listeners):
            listener.hand(frame)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if not self._by_stream:
                continue
            try:
                heads = await in_thread(reads.heads, [stream for stream, watched in self._by_stream.items() if watched])
            except DatabaseError as error:
                log.warning("feed_look_failed", extra={"why": str(error)})
                continue
            for channel in tuple(self._channels.values()):
                if any(heads.get(stream, last) > last for stream, last in channel.streams.items()):
                    self._read(channel.cluster_id)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_EVERY)
            if not self._channels:
                continue
            try:
                beats = await in_thread(reads.beats, list(self._channels))
            except DatabaseError as error:
                log.warning("feed_beat_failed", extra={"why": str(error)})
                continue
            for channel in tuple(self._channels.values()):
                if channel.cluster_id in beats:
                    self._hand(channel.listeners, beats[channel.cluster_id])

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(RIGHTS_EVERY)
            await self._check_once()

    async def _check_once(self) -> None:
        """Everybody at once: one query, whatever the number of sockets."""
        everybody = [listener for channel in self._channels.values() for listener in channel.listeners]
        if not everybody:
            return
        asked = {(one.user_id, one.session_key, one.project_id) for one in everybody}
        try:
            allowed = await in_thread(reads.still_allowed, asked)
        except DatabaseError as error:
            log.warning("feed_rights_unchecked", extra={"why": str(error)})
            return
        self._hand((one for one in everybody if (one.user_id, one.session_key, one.project_id) not in allowed), RIGHT_LOST)


@cache
def hub() -> Hub:
    """The hub of this process."""
    return Hub(settings.REDIS_URL)
