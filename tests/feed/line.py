"""Both ends of the line: writers as sync and capacity are, and a browser as static/js/live.js is."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import close_old_connections

from console.accounts.models import Role
from console.asgi import application
from console.capacity.models import Pool
from console.clusters.models import Cluster
from console.timeline.changes import Actor, change
from console.timeline.models import Entry, Stream
from tests.pages.world import a_cluster, a_node, a_person, a_pool, an_installation, browser

KUBERNETES = Actor("kubernetes", "kubelet")


@dataclass
class World:
    """A cluster with a node, the pool it is of, and somebody who may look."""

    cluster: Cluster
    pool: Pool
    user: Any
    session: str

    @property
    def id(self) -> uuid.UUID:
        return self.cluster.pk


def a_world() -> World:
    an_installation()
    pool = a_pool()
    cluster = a_cluster(pool)
    a_node(cluster, "gpu-preemptible-dp-0001")
    user = a_person("vic", Role.VIEWER, "aurora")
    return World(cluster, pool, user, session_of(user))


def session_of(user: Any) -> str:
    return browser(user).cookies[settings.SESSION_COOKIE_NAME].value


async def off(work: Callable[..., Any], *args: Any) -> Any:
    """Run database work on a thread of its own, as another process would."""

    def run() -> Any:
        try:
            return work(*args)
        finally:
            close_old_connections()

    return await asyncio.to_thread(run)


def happen(cluster: Cluster, *messages: str) -> list[int]:
    """Each message an entry, all in one transaction."""
    with change() as made:
        rows = [made.entry(cluster.stream, "Pulled", message, actor=KUBERNETES) for message in messages]
    return [row.pk for row in rows]


def repeat(cluster: Cluster, pk: int) -> None:
    """Kubernetes says the same once more: the row moves to a new revision."""
    with change() as made:
        [entry] = made.lock(Entry.objects.filter(pk=pk))
        entry.count += 1
        made.save(cluster.stream, entry, "count")


def refill(pool: Pool, free: int) -> None:
    """The provider says something else about the pool; no cluster's row changes."""
    with change() as made:
        [row] = made.lock(Pool.objects.filter(pk=pool.pk))
        row.free_machines = free
        made.save(row.pk, row, "free_machines")


def ledger(cluster: Cluster) -> dict[int, int]:
    """What a page must show in the end: each entry with its revision."""
    return dict(Entry.objects.filter(stream=cluster.stream).values_list("pk", "revision"))


def head(cluster: Cluster) -> tuple[int, str]:
    stream = Stream.objects.get(pk=cluster.stream)
    return stream.revision, str(stream.epoch)


@dataclass
class Page:
    """What live.js keeps: frames older than the page are dropped, rows older than their row too."""

    revision: int
    epoch: str
    entries: dict[int, int] = field(default_factory=dict)
    panel: str = ""
    added: list[int] = field(default_factory=list)
    largest: int = 0
    told: list[str] = field(default_factory=list)  # reasons to load again

    def take(self, text: str) -> dict[str, Any]:
        self.largest = max(self.largest, len(text.encode()))
        frame: dict[str, Any] = json.loads(text)
        if frame["type"] == "reload":
            self.told.append(frame["why"])
        if frame["type"] == "rows" and frame["revision"] >= self.revision:
            self._apply(frame)
        return frame

    def _apply(self, frame: dict[str, Any]) -> None:
        for row in frame["rows"]:
            if row["kind"] == "panel":
                self.panel = row["html"]
            if row["kind"] == "entry" and self.entries.get(int(row["id"]), 0) < row["revision"]:
                if int(row["id"]) not in self.entries:
                    self.added.append(int(row["id"]))
                self.entries[int(row["id"])] = row["revision"]
        self.revision = frame["revision"]


async def a_page(world: World) -> Page:
    """As the server has just drawn it."""
    revision, epoch = await off(head, world.cluster)
    return Page(revision, epoch, await off(ledger, world.cluster))


class Closed(Exception):
    """The server closed the socket with `code`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Socket:
    """A browser's socket, spoken to through the ASGI application."""

    def __init__(self, communicator: WebsocketCommunicator) -> None:
        self.communicator = communicator

    async def text(self, seconds: float = 10) -> str:
        """The next frame's text. Raises Closed."""
        said = await self.communicator.receive_output(seconds)
        if said["type"] == "websocket.close":
            raise Closed(said.get("code", 1000))
        text: str = said["text"]
        return text

    async def frame(self, kind: str, seconds: float = 10) -> dict[str, Any]:
        """The next frame of a type; others are passed over. Raises Closed."""
        async with asyncio.timeout(seconds):
            while True:
                frame: dict[str, Any] = json.loads(await self.text(seconds))
                if frame["type"] == kind:
                    return frame

    async def code(self, seconds: float = 10) -> int:
        """Wait for the close; what comes before is passed over."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.text(seconds)
        except Closed as closed:
            return closed.code

    def waiting(self) -> int:
        """What was sent and not yet read."""
        return self.communicator.output_queue.qsize()


@asynccontextmanager
async def connected(
    world: World, page: Page, session: str | None = None, origin: str = "http://localhost"
) -> AsyncIterator[Socket]:
    path = f"/live/{world.id}/?since={page.revision}&epoch={page.epoch}"
    cookie = f"{settings.SESSION_COOKIE_NAME}={world.session if session is None else session}"
    headers = [(b"origin", origin.encode()), (b"cookie", cookie.encode()), (b"host", b"localhost")]
    communicator = WebsocketCommunicator(application, path, headers)
    accepted, code = await communicator.connect(timeout=10)
    if not accepted:
        raise Closed(code or 1000)
    try:
        yield Socket(communicator)
    finally:
        await communicator.disconnect(timeout=10)


async def follow(socket: Socket, page: Page, until: Callable[[Page], bool], seconds: float = 15) -> None:
    """Take frames until the page is as wanted, or the server says to load it again."""
    async with asyncio.timeout(seconds):
        while not until(page) and not page.told:
            page.take(await socket.text(seconds))
