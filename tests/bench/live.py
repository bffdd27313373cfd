"""From a Kubernetes Event to a browser, beside a bare watch on the same API; and how many Events a second become entries."""

import asyncio
import base64
import json
import statistics
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import websockets
from django.conf import settings
from django.test import Client

from console.accounts.models import User
from console.clusters.models import Cluster, Node
from console.runner.controlplane.build import programs
from console.timeline.models import Entry, Stream
from tests.bench import world
from tests.bench.bare import Bare, Call
from tests.bench.report import Book, share
from tests.installation import Installation, within

EVENTS, A_SECOND = 500, 15
HELD, HELD_SECONDS = 300, 60
BURST = 3000
SOCKETS, TO_ALL = 1000, 100


def run(here: Installation, book: Book) -> None:
    cluster = world.cluster("bench", 4)
    node = world.nodes(cluster, 1)[0]
    latency(here, book, cluster, node)
    thousand(here, book, cluster, node)
    held(here, book, cluster, node)
    burst(here, book, cluster, node)


def cookie() -> str:
    """A session of ada's."""
    client = Client()
    client.force_login(User.objects.get(username="ada"), backend=settings.AUTHENTICATION_BACKENDS[0])
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def event(node: Node, message: str) -> Call:
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    body = {
        "metadata": {"name": f"bench-{uuid.uuid4().hex}", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid},
        "reason": "Bench",
        "type": "Normal",
        "message": message,
        "source": {"component": "bench"},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
    return ("POST", "/api/v1/namespaces/default/events", body)


def events(node: Node, mark: str, count: int) -> Iterable[Call]:
    return (event(node, f"{mark} {number}.") for number in range(count))


def latency(here: Installation, book: Book, cluster: Cluster, node: Node) -> None:
    stream = Stream.objects.get(pk=cluster.stream)
    path = f"/live/{cluster.pk}/?since={stream.revision}&epoch={stream.epoch}"
    folder = world.plane(here, cluster)
    peer_name = "a bare watch" if folder is None else "kubectl get events -w"
    bare, browser = asyncio.run(_both(here, world.api(here, cluster), path, cookie(), list(events(node, "seen", EVENTS)), folder))
    assert len(bare) == len(browser) == EVENTS, (len(bare), len(browser))
    ours, peer = statistics.median(browser), statistics.median(bare)
    book.ratio_at_most(f"Kubernetes event → browser, p50, beside {peer_name}", ours, "ms", peer, 1.5)
    book.at_most("Kubernetes event → browser, p99", share(browser, 0.99), "ms", 100)
    book.ratio_at_most(f"Kubernetes event → browser, p99, beside {peer_name}", share(browser, 0.99), "ms", share(bare, 0.99), 1.5)


async def _both(
    here: Installation, api: Bare, path: str, session: str, calls: list[Call], folder: Path | None
) -> tuple[list[float], list[float]]:
    """Milliseconds from the sending of each Event to either end."""
    sent: dict[int, float] = {}
    bare: dict[int, float] = {}
    browser: dict[int, float] = {}

    def note(into: dict[int, float], text: str) -> None:
        for part in text.split("seen ")[1:]:
            number = part.partition(".")[0]
            if number.isdecimal():
                into.setdefault(int(number), time.monotonic())

    async def kubectl(folder: Path) -> None:
        program = programs(["kubectl"]) / "kubectl"
        words = ["--kubeconfig", str(world.kubeconfig(folder)), "get", "events", "-w", "--no-headers"]
        process = await asyncio.create_subprocess_exec(program, *words, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                note(bare, line.decode())
        finally:
            process.kill()
            await process.wait()

    async def watch() -> None:
        async for line in api.watch("/api/v1/events?watch=true&timeoutSeconds=120"):
            note(bare, line["object"].get("message", ""))

    headers = {"Cookie": session, "Origin": here.address}
    async with websockets.connect(f"ws{here.address.removeprefix('http')}{path}", additional_headers=headers) as socket:

        async def listen() -> None:
            async for frame in socket:
                note(browser, json.dumps(json.loads(frame), ensure_ascii=False))

        ends = [asyncio.create_task(watch() if folder is None else kubectl(folder)), asyncio.create_task(listen())]
        await asyncio.sleep(2)
        await api.paced(calls, A_SECOND, lambda number: sent.setdefault(number, time.monotonic()))
        for _ in range(100):
            if len(browser) == len(bare) == len(calls):
                break
            await asyncio.sleep(0.1)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    return [1000 * (bare[one] - sent[one]) for one in sorted(bare)], [
        1000 * (browser[one] - sent[one]) for one in sorted(browser)
    ]


class Browser(asyncio.Protocol):
    """A websocket that does nothing but answer pings and note when which frame came: a thousand must not be what is measured."""

    def __init__(self, hello: bytes, note: Callable[[bytes], None]) -> None:
        self._hello, self._note, self._rest = hello, note, b""
        self._transport: asyncio.Transport | None = None
        self.open = asyncio.get_running_loop().create_future()
        self.let_in = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._hello)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self.open.done():
            head, ended, rest = self._rest.partition(b"\r\n\r\n")
            if not ended:
                return
            self._rest = rest
            self.open.set_result(head)
        while (frame := _frame(self._rest)) is not None:
            kind, payload, self._rest = frame
            if kind == PING and self._transport is not None:
                self._transport.write(bytes((0x80 | PONG, 0x80 | len(payload), 0, 0, 0, 0)) + payload)
            else:
                self.let_in = True
                self._note(payload)


PING, PONG = 0x9, 0xA  # RFC 6455, 5.2


def _frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    """Kind, payload and what follows, of a server's frame (never masked); None where it is not all there yet."""
    if len(data) < 2:
        return None
    size, start = data[1], 2
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(data[2:start])
    if len(data) < start + size:
        return None
    return data[0] & 0x0F, data[start : start + size], data[start + size :]


def thousand(here: Installation, book: Book, cluster: Cluster, node: Node) -> None:
    """From the sending of an Event to each of a thousand sockets of one process."""
    stream = Stream.objects.get(pk=cluster.stream)
    path = f"/live/{cluster.pk}/?since={stream.revision}&epoch={stream.epoch}"
    took = asyncio.run(_to_all(here, world.api(here, cluster), path, cookie(), list(events(node, "many", TO_ALL))))
    assert len(took) == SOCKETS * TO_ALL, (len(took), SOCKETS * TO_ALL)
    book.at_most(f"Kubernetes event → each of {SOCKETS:,} browsers of one process, p50", statistics.median(took), "ms", 200)
    book.at_most(f"Kubernetes event → each of {SOCKETS:,} browsers of one process, p99", share(took, 0.99), "ms", 200)


async def _to_all(here: Installation, api: Bare, path: str, session: str, calls: list[Call]) -> list[float]:
    sent: dict[int, float] = {}
    came: list[dict[int, float]] = [{} for _ in range(SOCKETS)]
    where = urlsplit(here.address)

    def listener(number: int) -> Callable[[bytes], None]:
        def note(data: bytes) -> None:
            for part in data.split(b"many ")[1:]:
                event_number, dot, _ = part.partition(b".")
                if dot and event_number.isdigit():
                    came[number].setdefault(int(event_number), time.monotonic())

        return note

    hello = "\r\n".join(
        (
            f"GET {path} HTTP/1.1",
            f"Host: {where.netloc}",
            f"Origin: {here.address}",
            f"Cookie: {session}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",  # as Chromium does; nothing here inflates
            "",
            "",
        )
    ).encode()
    loop, transports, browsers = asyncio.get_running_loop(), [], []
    for number in range(SOCKETS):
        transport, browser = await loop.create_connection(
            lambda n=number: Browser(hello, listener(n)), where.hostname, where.port
        )
        transports.append(transport)
        browsers.append(browser)
        assert b"101" in await browser.open
    for _ in range(600):  # each is let in by questions to the database, and told what it missed
        if all(browser.let_in for browser in browsers):
            break
        await asyncio.sleep(0.1)
    await api.paced(calls, 5, lambda number: sent.setdefault(number, time.monotonic()))
    for _ in range(200):
        if all(len(one) == len(calls) for one in came):
            break
        await asyncio.sleep(0.1)
    for transport in transports:
        transport.close()
    return [1000 * (at - sent[number]) for one in came for number, at in one.items()]


def held(here: Installation, book: Book, cluster: Cluster, node: Node) -> None:
    """A steady stream: what is in the ledger a moment after the last was sent, and how long the rest takes."""
    count = HELD * HELD_SECONDS
    began = time.monotonic()
    asyncio.run(_paced(world.api(here, cluster), list(events(node, "held", count)), HELD))
    posted = time.monotonic() - began
    took = _all_there(cluster, "held", count) - began
    print(f"      {count} Events sent in {posted:.1f} s ({count / posted:.0f}/s)")
    book.at_least(
        f"ingest: {HELD} Events a second for {HELD_SECONDS} s, entries a second", count / took, "entries/s", 0.9 * count / posted
    )


async def _paced(api: Bare, calls: list[Call], per_second: int) -> None:
    """In tenths of a second, over kept connections: the pace is the point, not each Event's instant."""
    began, tenth = time.monotonic(), max(1, per_second // 10)
    for number, first in enumerate(range(0, len(calls), tenth)):
        await asyncio.sleep(max(0.0, began + number / 10 - time.monotonic()))
        await api.send(calls[first : first + tenth], 4)


def burst(here: Installation, book: Book, cluster: Cluster, node: Node) -> None:
    began = time.monotonic()
    statuses = asyncio.run(world.api(here, cluster).send(list(events(node, "burst", BURST))))
    assert set(statuses) == {201}, set(statuses)
    posted = time.monotonic() - began
    took = _all_there(cluster, "burst", BURST) - began
    found = Entry.objects.filter(stream=cluster.stream, message__startswith="burst ").count()
    book.at_most(f"ingest: a burst of {BURST} Events, lost or doubled", abs(found - BURST), "entries", 0)
    book.ratio_at_least(f"ingest: a burst of {BURST} Events, rate", BURST / took, "entries/s", BURST / posted, 0.7)


def _all_there(cluster: Cluster, mark: str, count: int) -> float:
    rows = Entry.objects.filter(stream=cluster.stream, message__startswith=f"{mark} ")
    within(120, lambda: rows.count() >= count, 0.1)
    return time.monotonic()
