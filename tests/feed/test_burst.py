"""Much at once: everybody who reads gets all of it, who does not read is told to load again, and no frame is too large."""

import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest
from django.db import close_old_connections
from websockets.asyncio.client import ClientConnection

from console.capacity import frames
from console.capacity.models import Drain
from console.feed import hub as feed_hub
from console.feed import reads
from console.timeline.changes import change
from tests.feed.line import Page, World, a_page, connected, follow, happen, head, ledger, off
from tests.feed.servers import a_browser, web
from tests.pages.world import a_drain, a_node

MIB = 1024 * 1024
LONG = "x" * 1000  # Kubernetes allows an Event's note 1,024 characters
AHEAD = 100  # entries: with the next batch three frames at most, as many as may wait for one browser here
HOSTILE = "<&\"'>" * 200


def burst(world: World, entries: int, pages: Sequence[Page]) -> None:
    """As a resync of many nodes: two writers, 50 entries a transaction.

    A writer waits while a reader lags by more than `AHEAD` entries: a machine that is busy elsewhere makes nobody here slow.
    """
    start = min(page.revision for page in pages)

    def write(number: int) -> None:
        patience = time.monotonic() + 40
        while min(page.revision for page in pages) < start + 50 * number - AHEAD:
            assert time.monotonic() < patience, "a reader stands still"
            time.sleep(0.005)
        try:
            happen(world.cluster, *(LONG for _ in range(50)))
        finally:
            close_old_connections()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(entries // 50)))


async def read_to(browser: ClientConnection, page: Page, revision: int) -> None:
    while page.revision < revision and not page.told:
        page.take(str(await browser.recv()))


async def test_a_burst_reaches_every_reader_and_the_one_who_never_reads_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """django/channels_redis#131: what did not fit a slow consumer's channel was dropped without a word, for some or for all."""
    monkeypatch.setattr(feed_hub, "WAITING", 3)  # with frames of a quarter of a megabyte
    start = await a_page(world)
    goal = start.revision + 2000
    async with AsyncExitStack() as stack, web() as port:
        browsers = [await stack.enter_async_context(await a_browser(port, world, start)) for _ in range(20)]
        pages = [await a_page(world) for _ in browsers]
        for browser, page in zip(browsers, pages, strict=True):
            page.take(str(await browser.recv()))
        async with asyncio.timeout(40):
            reading = (read_to(browser, page, goal) for browser, page in zip(browsers[1:], pages[1:], strict=True))
            await asyncio.gather(off(burst, world, 2000, pages[1:]), *reading)
            await read_to(browsers[0], pages[0], goal)  # awake at last
    rows = await off(ledger, world.cluster)
    assert all(page.entries == rows and page.told == [] for page in pages[1:])
    assert pages[0].told == ["too much at once"]
    assert max(page.largest for page in pages) < MIB
    loaded = await a_page(world)
    assert loaded.entries == rows


async def test_who_comes_with_many_others_is_let_in_and_caught_up_in_one_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all doors come before all that was missed, and who waits between the two gathers frames until it must load again."""
    entrance, asked = asyncio.Semaphore(0), []

    def noted(name: str) -> None:
        work = getattr(reads, name)
        monkeypatch.setattr(reads, name, lambda *args: (asked.append(name), work(*args))[1])

    noted("door")
    noted("catch_up")
    monkeypatch.setattr(feed_hub.hub(), "entrance", entrance)
    start = await a_page(world)
    async with AsyncExitStack() as stack, web() as port:
        browsers = [await stack.enter_async_context(await a_browser(port, world, start)) for _ in range(10)]
        entrance.release()
        async with asyncio.timeout(20):
            for browser in browsers:
                await browser.recv()
    assert asked == ["door", "catch_up"] * 10


async def test_entries_full_of_markup_come_in_frames_below_a_mebibyte(world: World) -> None:
    """BlackBeltTechnology/pi-agent-dashboard#370: what is refused for its size is asked for again without end."""
    page = await a_page(world)
    await off(happen, world.cluster, *(HOSTILE for _ in range(frames.STEP)))
    last, _ = await off(head, world.cluster)
    async with connected(world, page) as socket:
        await follow(socket, page, lambda page: page.revision >= last)
        assert page.entries == await off(ledger, world.cluster)
        await off(happen, world.cluster, *(HOSTILE for _ in range(frames.STEP)))
        await follow(socket, page, lambda page: page.revision >= last + frames.STEP)
    assert page.told == []
    assert page.entries == await off(ledger, world.cluster)
    assert MIB / 4 < page.largest < MIB


def preempt(world: World, nodes: int, pods: int) -> None:
    """Many nodes get their notice at once, each with its table of pods."""
    drains = [
        a_drain(a_node(world.cluster, f"gpu-preemptible-dp-{number:04x}"), pods, f"train-{number}")
        for number in range(100, 100 + nodes)
    ]
    with change() as made:
        for drain in made.lock(Drain.objects.filter(pk__in=[drain.pk for drain in drains])):
            made.save(world.cluster.stream, drain)


async def test_many_large_tables_are_cut_into_frames_that_fit(world: World) -> None:
    await off(preempt, world, 40, 110)  # as many pods as a kubelet takes
    start = await off(reads.start, world.id)
    seen, epoch, revision = {**start.streams, world.id: 0}, start.epoch, 0
    drawn, steps = set[str](), 0
    while seen[world.id] < start.streams[world.id]:
        news = await off(reads.news, world.id, seen, epoch)
        frame = json.loads(news.frame)
        assert len(news.frame.encode()) < MIB
        assert frame["revision"] > revision
        assert news.more == (frame["revision"] < start.streams[world.id])
        drawn |= {row["id"] for row in frame["rows"] if row["kind"] == "drain"}
        seen, revision, steps = dict(news.streams), frame["revision"], steps + 1
    assert len(drawn) == 40
    assert steps > 1


async def test_one_row_beyond_any_frame_makes_the_page_load_again_once(world: World) -> None:
    page = await a_page(world)
    await off(happen, world.cluster, "x" * MIB)
    async with connected(world, page) as socket:
        assert (await socket.frame("reload"))["why"] == "too much has changed at once"
        await off(happen, world.cluster, "small")
        assert (await socket.frame("rows"))["rows"][0]["html"].count("small") == 1
