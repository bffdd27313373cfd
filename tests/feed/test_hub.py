"""One read for all, and a hub that nothing ends."""

import asyncio
import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test.utils import CaptureQueriesContext

from console.capacity import frames, panels
from console.feed import hub as feed_hub
from console.feed import reads
from console.feed.hub import hub
from console.timeline.models import Stream
from tests.feed.line import Socket, World, a_page, connected, follow, happen, off


class Counted:
    """Passes calls on, and counts them and their queries."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.real = real
        self.queries: list[int] = []

    def __call__(self, *args: Any) -> Any:
        with CaptureQueriesContext(connection) as captured:
            found = self.real(*args)
        self.queries.append(len(captured))
        return found


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[dict[str, Counted]]:
    with monkeypatch.context() as patch:
        counters = {name: Counted(getattr(reads, name)) for name in names}
        for name, counter in counters.items():
            patch.setattr(reads, name, counter)
        yield counters


async def audience(stack: AsyncExitStack, world: World, size: int) -> list[Socket]:
    page = await a_page(world)
    sockets = [await stack.enter_async_context(connected(world, page)) for _ in range(size)]
    for socket in sockets:
        await socket.frame("rows")
    return sockets


async def one_change(world: World, sockets: list[Socket], monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """What one entry, one beat, one look and one check cost the database; everybody got the same text."""
    with counted(monkeypatch, "news", "catch_up", "door") as counters:
        await off(happen, world.cluster, "pulled")
        texts = set()
        for socket in sockets:
            while '"type":"rows"' not in (text := await socket.text()) or "pulled" not in text:
                pass
            texts.add(text)
        await asyncio.sleep(0.2)
    assert len(texts) == 1
    with counted(monkeypatch, "beats", "heads", "lost") as more:
        for turn in (hub()._beat, hub()._look):
            await turn()
        hub()._doubt.set()
        await hub()._check()
    return {name: counter.queries for name, counter in (counters | more).items()}


async def test_fifty_sockets_cost_the_database_what_one_costs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_hub, "BEAT_EVERY", 60.0)
    monkeypatch.setattr(feed_hub, "LOOK_EVERY", 60.0)
    monkeypatch.setattr(feed_hub, "PAUSE", 60.0)
    costs = []
    for size in (1, 50):
        async with AsyncExitStack() as stack:
            costs.append(await one_change(world, await audience(stack, world, size), monkeypatch))
    assert costs[0] == costs[1]
    assert costs[0]["door"] == costs[0]["catch_up"] == []
    assert len(costs[0]["news"]) == 1


async def test_a_thousand_nudges_are_one_read_running_and_one_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, go_on, calls = reads.news, threading.Event(), []

    def slow(*args: Any) -> Any:
        calls.append(args)
        assert go_on.wait(10)
        return real(*args)

    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await asyncio.sleep(0.3)  # the look after the subscription is over
        monkeypatch.setattr(reads, "news", slow)
        for _ in range(1000):
            hub()._heard(str(world.id))
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.sleep(0.3)
    assert len(calls) == 2


async def test_beats_come_within_ten_seconds_and_say_when_kubernetes_was_heard(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert feed_hub.BEAT_EVERY * 2 <= 10
    monkeypatch.setattr(feed_hub, "BEAT_EVERY", 0.1)
    async with connected(world, await a_page(world)) as socket:
        beats = [await socket.frame("beat") for _ in range(3)]
    assert {beat["heard_at"] for beat in beats} == {world.cluster.proved_to.isoformat()}
    assert len({beat["at"] for beat in beats}) == 3


@pytest.mark.parametrize("fault", [RuntimeError("a fault of ours"), InterfaceError("closed"), OperationalError("away")], ids=repr)
async def test_a_turn_that_fails_is_told_and_followed_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    """A task that ends leaves sockets open and deaf, which looks like quiet (mullvad/message-queue#11)."""
    monkeypatch.setattr(feed_hub, "BEAT_EVERY", 0.1)
    monkeypatch.setattr(feed_hub, "LOOK_EVERY", 0.1)
    page, turns = await a_page(world), ("beats", "heads", "news")
    async with connected(world, page) as socket:
        page.take(await socket.text())
        for number, turn in enumerate(turns, 1):
            once = Once(getattr(reads, turn), fault)
            monkeypatch.setattr(reads, turn, once)
            await off(happen, world.cluster, "pulled")
            await follow(socket, page, lambda page, once=once, number=number: len(page.added) == number and once.failed)
            await socket.frame("beat")
    assert sum(record.message.startswith("feed_") for record in caplog.records) == len(turns)


class Once:
    """Fails at the first call."""

    def __init__(self, real: Callable[..., Any], fault: Exception) -> None:
        self.real, self.fault, self.failed = real, fault, False

    def __call__(self, *args: Any) -> Any:
        if not self.failed:
            self.failed = True
            raise self.fault
        return self.real(*args)


async def test_a_row_that_cannot_be_drawn_is_told_and_the_page_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would otherwise be tried for ever: by the hub, and by each browser that comes back for it."""
    real = frames.render_entry

    def picky(entry: Any) -> str:
        if entry.message == "poison":
            raise ValueError("what is this")
        return real(entry)

    monkeypatch.setattr(frames, "render_entry", picky)
    before = await a_page(world)
    async with connected(world, before) as socket:
        await socket.frame("rows")
        await off(happen, world.cluster, "poison")
        assert (await socket.frame("reload"))["why"] == "something could not be drawn"
        await off(happen, world.cluster, "pulled")
        assert "pulled" in (await socket.frame("rows"))["rows"][0]["html"]
    async with connected(world, before) as socket:
        await socket.frame("reload")
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == ["frame_not_drawn"] * 2


async def test_a_panel_that_cannot_be_drawn_leaves_the_hub_alive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    page = await a_page(world)
    with monkeypatch.context() as patch:
        patch.setattr(panels, "render_panel", lambda _picture: 1 / 0)
        async with connected(world, page) as socket:
            await socket.frame("reload")
    async with connected(world, page) as socket:
        await socket.frame("rows")


async def test_a_browser_that_goes_while_it_is_caught_up_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """django/channels#1466: where connecting takes long, its disconnect may never be told."""
    real, inside, go_on = reads.catch_up, threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        inside.set()
        assert go_on.wait(10)
        return real(*args)

    monkeypatch.setattr(reads, "catch_up", slow)
    async with connected(world, await a_page(world)):
        assert await asyncio.to_thread(inside.wait, 10)
        assert len(hub()._channels[world.id].listeners) == 1
    go_on.set()
    await asyncio.sleep(0.1)
    assert hub()._channels == hub()._by_stream == {}


async def test_a_socket_whose_read_fails_is_closed_to_come_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, fault in (("catch_up", OperationalError("away")), ("door", RuntimeError("a fault of ours"))):
        with monkeypatch.context() as patch:
            patch.setattr(reads, name, Mock(side_effect=fault))
            async with connected(world, await a_page(world)) as socket:
                assert await socket.code() == 1013
    assert hub()._channels == {}


def restore(world: World) -> None:
    """As after a restore: the counter is lower, the epoch another. Nobody nudges."""
    Stream.objects.filter(pk=world.id).update(epoch=uuid.uuid4(), revision=0)


async def test_a_restored_console_makes_every_page_load_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_hub, "LOOK_EVERY", 0.1)
    await off(happen, world.cluster, "before")
    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await off(restore, world)
        assert (await socket.frame("reload"))["why"] == "the console was restored"
        await off(happen, world.cluster, "afterwards")
        assert "afterwards" in json.dumps(await socket.frame("rows"))


async def test_a_deleted_cluster_closes_its_sockets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_hub, "LOOK_EVERY", 0.1)
    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await off(lambda: Stream.objects.filter(pk=world.id).delete())
        assert await socket.code() == 4404
