"""One hub a process: reads what is new once, and hands the same text to all its sockets.

A nudge (or the look at all heads every two seconds, so that a lost nudge costs two seconds) starts a read of one cluster.
One read runs and one may wait, however many nudges come: a burst batches itself, and no work is done per socket (DESIGN 4).
Rights are checked again for everybody at once, on the access nudge and each 30 s; who lost theirs is closed and hears no more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from uuid import UUID

from django.conf import settings
from django.db import Error
from prometheus_client import Gauge

from console.feed import reads
from console.feed.listener import listen
from console.feed.threads import CONNECTIONS, in_thread
from console.live import ACCESS
from console.timeline.models import Stream

log = logging.getLogger(__name__)
SOCKETS = Gauge("halftide_sockets", "Browsers that listen to this web process")

LOOK_EVERY = 2.0  # seconds between two looks at the heads of all watched streams
BEAT_EVERY = 5.0  # seconds between two heartbeats; the browser's light goes out after 12 without one
RIGHTS_EVERY = 30.0  # seconds
PAUSE = 1.0  # seconds between two checks of rights, however many nudges come, and before a failed one is tried again
WAITING = 64  # frames a slow browser may lag behind before it is told to load the page again


@dataclass(eq=False)
class Listener:
    """One socket, as the hub sees it: who, and the frames that wait for it. A number in the queue closes it with that code."""

    user_id: int
    session_key: str
    project_id: UUID
    rights_as_of: float  # the loop's time before its rights were read
    queue: asyncio.Queue[str | int] = field(default_factory=lambda: asyncio.Queue(WAITING))
    over: bool = False  # its last word is said or waits in the queue

    def hand(self, frame: str | int) -> None:
        """Never waits: a browser that cannot keep up loses its backlog and is told to load the page again."""
        if isinstance(frame, int):
            self.end(frame)
        elif not self.over and self.queue.full():
            self.end(reads.reload_frame("too much at once"))
        elif not self.over:
            self.queue.put_nowait(frame)

    def end(self, last: str | int) -> None:
        """What waits is dropped, and nothing comes after `last`: neither past a lost right, nor with a gap before it."""
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(last)
        self.over = True


@dataclass(eq=False)
class Channel:
    """One cluster that somebody looks at."""

    cluster_id: UUID
    streams: Mapping[UUID, int]  # the cluster's stream and its pool's, each with the revision read last
    epoch: str
    listeners: set[Listener] = field(default_factory=set)
    reading: bool = False
    again: bool = False

    def is_behind(self, heads: Mapping[UUID, Stream]) -> bool:
        """Whether there is something to read: news, another epoch, or that the cluster is gone."""
        own = heads.get(self.cluster_id)
        if own is None or str(own.epoch) != self.epoch:
            return True
        return any(heads[stream].revision > last for stream, last in self.streams.items() if stream in heads)


class Hub:
    """Lives on the process's loop; every method is called there."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._channels: dict[UUID, Channel] = {}
        self._by_stream: dict[UUID, set[UUID]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._doubt = asyncio.Event()  # somebody's rights may have changed
        self._doubted_at = 0.0
        # A thousand browsers that come back at once leave one thread to those who are here: news and beats go on.
        self.entrance = asyncio.Semaphore(CONNECTIONS - 1)

    async def join(self, cluster_id: UUID, listener: Listener) -> None:
        """From now on the listener gets what is new. It asks for what it missed itself, afterwards: doubles are harmless.

        Raises Cluster.DoesNotExist.
        """
        channel = self._channels.get(cluster_id)
        if channel is None:
            start = await in_thread(reads.start, cluster_id)
            channel = self._channels.setdefault(cluster_id, Channel(cluster_id, start.streams, start.epoch))
            for stream in channel.streams:
                self._by_stream.setdefault(stream, set()).add(cluster_id)
        channel.listeners.add(listener)
        SOCKETS.inc()
        if self._doubted_at >= listener.rights_as_of:
            self._doubt.set()  # rights changed between its door and here
        self._start()

    def leave(self, cluster_id: UUID, listener: Listener) -> None:
        """May be called for who never came or is gone."""
        channel = self._channels.get(cluster_id)
        if channel is None or listener not in channel.listeners:
            return
        channel.listeners.remove(listener)
        SOCKETS.dec()
        if channel.listeners:
            return
        del self._channels[cluster_id]
        for stream in channel.streams:
            self._by_stream[stream].discard(cluster_id)
            if not self._by_stream[stream]:
                del self._by_stream[stream]

    def _start(self) -> None:
        if not self._tasks:
            self._spawn(self._each(LOOK_EVERY, partial(listen, self._redis_url, self._heard, self._missed)))
            self._spawn(self._each(LOOK_EVERY, self._look))
            self._spawn(self._each(BEAT_EVERY, self._beat))
            self._spawn(self._each(PAUSE, self._check))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._told(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _each(self, seconds: float, turn: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._told(turn())
            await asyncio.sleep(seconds)

    @staticmethod
    async def _told(work: Awaitable[None]) -> None:
        """Nothing here ends unnoticed, and a turn that failed is followed by the next: else open sockets would go deaf."""
        try:
            await work
        except Error as error:
            log.warning("feed_database_failed", extra={"why": str(error)})
        except Exception:  # a process door
            log.exception("feed_failed")

    def _heard(self, nudge: str) -> None:
        if nudge == ACCESS:
            self._doubt_rights()
            return
        with suppress(ValueError):
            for cluster_id in self._by_stream.get(UUID(nudge), ()):
                self._read(self._channels[cluster_id])

    def _missed(self) -> None:
        """Nudges of both kinds may have been lost."""
        self._doubt_rights()
        for channel in self._channels.values():
            self._read(channel)

    def _doubt_rights(self) -> None:
        self._doubted_at = asyncio.get_running_loop().time()
        self._doubt.set()

    def _read(self, channel: Channel) -> None:
        channel.again = True
        if not channel.reading:
            channel.reading = True
            self._spawn(self._read_until_quiet(channel))

    @staticmethod
    async def _read_until_quiet(channel: Channel) -> None:
        """Where a read fails nothing is lost: the revision stands where it was, and the next look reads again."""
        try:
            while channel.again and channel.listeners:
                channel.again = False
                news = await in_thread(reads.news, channel.cluster_id, channel.streams, channel.epoch)
                channel.streams, channel.epoch = news.streams, news.epoch
                if news.frame is not None:
                    _hand(channel.listeners, news.frame)
                channel.again = channel.again or news.more
        finally:
            channel.reading = False

    async def _look(self) -> None:
        if not self._by_stream:
            return
        heads = await in_thread(reads.heads, list(self._by_stream))
        for channel in self._channels.values():
            if channel.is_behind(heads):
                self._read(channel)

    async def _beat(self) -> None:
        if not self._channels:
            return
        beats = await in_thread(reads.beats, list(self._channels))
        for cluster_id, beat in beats.items():
            if cluster_id in self._channels:
                _hand(self._channels[cluster_id].listeners, beat)

    async def _check(self) -> None:
        """Everybody at once: two queries, whatever the number of sockets. One check runs and one may wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RIGHTS_EVERY):
                await self._doubt.wait()
        self._doubt.clear()
        everybody = [listener for channel in self._channels.values() for listener in channel.listeners]
        if not everybody:
            return
        try:
            lost = await in_thread(reads.lost, {(one.user_id, one.session_key, one.project_id) for one in everybody})
        except Error:
            self._doubt.set()
            raise
        for one in everybody:
            if code := lost.get((one.user_id, one.session_key, one.project_id)):
                one.end(code)


def _hand(listeners: Iterable[Listener], frame: str | int) -> None:
    for listener in listeners:
        listener.hand(frame)


@cache
def hub() -> Hub:
    """The hub of this process."""
    return Hub(settings.REDIS_URL)
