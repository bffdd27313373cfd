"""Nudges may be lost, doubled or late: they only make the line faster."""

import asyncio
import json
from collections.abc import Iterator
from statistics import median
from time import monotonic

import pytest
from pytest_django import Settings

from console import live
from console.clusters.models import Cluster
from console.feed import hub as feed_hub
from console.feed import listener
from console.feed.hub import hub
from console.timeline.changes import change
from tests.feed.line import KUBERNETES, World, a_page, connected, follow, happen, ledger, off
from tests.feed.servers import Redis
from tests.feed.test_rights import sign_out


@pytest.fixture
def redis(settings: Settings) -> Iterator[Redis]:
    """Not started: what publishes and what listens is told its address."""
    server = Redis()
    settings.REDIS_URL = server.url
    live._client.cache_clear()
    yield server
    server.kill()
    server.folder.cleanup()
    live._client.cache_clear()


@pytest.fixture
def slow_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only nudges bring news."""
    monkeypatch.setattr(feed_hub, "LOOK_EVERY", 60.0)


async def subscribed(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set each time the hub has subscribed."""
    event, missed = asyncio.Event(), hub()._missed
    monkeypatch.setattr(hub(), "_missed", lambda: (missed(), event.set()))
    return event


async def test_a_nudge_needs_no_look(world: World, slow_looks: None) -> None:
    page = await a_page(world)
    async with connected(world, page) as socket:
        page.take(await socket.text())
        await off(happen, world.cluster, "pulled")
        await follow(socket, page, lambda page: len(page.added) == 1, seconds=5)


async def test_a_lost_nudge_costs_about_two_looks(world: World, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is down before anybody comes, and stays down."""
    assert feed_hub.LOOK_EVERY == 2
    monkeypatch.setattr(feed_hub, "LOOK_EVERY", 0.5)
    page, waits = await a_page(world), []
    async with connected(world, page) as socket:
        page.take(await socket.text())
        for number in range(1, 5):
            await off(happen, world.cluster, "pulled")
            began = monotonic()
            await follow(socket, page, lambda page, number=number: len(page.added) == number)
            waits.append(monotonic() - began)
    assert median(waits) < 2 * feed_hub.LOOK_EVERY, waits
    assert page.entries == await off(ledger, world.cluster)


async def test_a_killed_subscription_comes_back_and_misses_nothing(
    world: World, redis: Redis, slow_looks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """redis/redis-py#1261, mullvad/message-queue#11: the browser shows "connected" and nothing comes any more."""
    monkeypatch.setattr(listener, "PAUSE", 0.3)
    await off(redis.start)
    back = await subscribed(monkeypatch)
    page = await a_page(world)
    async with connected(world, page) as socket:
        page.take(await socket.text())
        await asyncio.wait_for(back.wait(), 10)
        back.clear()
        assert await off(redis.cut_subscribers) == 1
        await off(happen, world.cluster, "while nobody listened")
        await follow(socket, page, lambda page: len(page.added) == 1)
        await asyncio.wait_for(back.wait(), 10)
        await off(happen, world.cluster, "afterwards")
        await follow(socket, page, lambda page: len(page.added) == 2)


async def test_a_redis_that_dies_and_returns_is_heard_again(
    world: World, redis: Redis, slow_looks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """django/channels_redis#256: only restarting the program helped. Here nobody restarts anything."""
    monkeypatch.setattr(listener, "PAUSE", 0.1)
    await off(redis.start)
    back = await subscribed(monkeypatch)
    page = await a_page(world)
    async with connected(world, page) as socket:
        page.take(await socket.text())
        await asyncio.wait_for(back.wait(), 10)
        await off(redis.kill)
        back.clear()
        await off(happen, world.cluster, "while Redis was dead")
        await off(redis.start)
        await follow(socket, page, lambda page: len(page.added) == 1)
        await asyncio.wait_for(back.wait(), 10)
        await off(happen, world.cluster, "afterwards")
        await follow(socket, page, lambda page: len(page.added) == 2)


async def test_a_right_lost_while_redis_was_dead_is_checked_when_it_returns(
    world: World, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "PAUSE", 0.1)
    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await off(sign_out, world)
        await off(redis.start)
        assert await socket.code(8) == 4401


async def test_nonsense_on_the_channel_is_ignored(
    world: World, redis: Redis, slow_looks: None, caplog: pytest.LogCaptureFixture
) -> None:
    await off(redis.start)
    page = await a_page(world)
    async with connected(world, page) as socket:
        page.take(await socket.text())
        for nudge in (b"\xff\xfe", b"", b"no uuid", b"00000000-0000-4000-8000-00000000dead"):
            await off(live._client().publish, live.CHANNEL, nudge)
        await off(happen, world.cluster, "pulled")
        await follow(socket, page, lambda page: len(page.added) == 1, seconds=5)
    assert [record for record in caplog.records if record.name.startswith("console.feed")] == []


async def test_a_frame_leaves_only_after_its_commit(world: World) -> None:
    """django/channels#362, OpenSlides/OpenSlides#2248: told too early, a reader finds the old state, or one that never was."""

    def refused() -> None:
        with change() as made:
            made.entry(world.cluster.stream, "TargetChanged", "never was", actor=KUBERNETES)
            live.nudge_on_commit(world.id)
            raise ValueError("Kubernetes refuses it at the end")

    def target(gpus: int) -> None:
        with change() as made:
            [cluster] = made.lock(Cluster.objects.filter(pk=world.id))
            cluster.desired_preemptible_gpus = gpus
            made.save(cluster.stream, cluster, "desired_preemptible_gpus")
            made.entry(cluster.stream, "TargetChanged", f"Preemptible target to {gpus}")

    page = await a_page(world)
    async with connected(world, page) as socket:
        page.take(await socket.text())
        for gpus in (24, 32, 40):
            with pytest.raises(ValueError, match="refuses"):
                await off(refused)
            await off(target, gpus)
            frame = await socket.frame("rows")
            assert "never was" not in json.dumps(frame)
            assert f"target to {gpus}" in json.dumps(frame)
            now = await off(lambda: Cluster.objects.get(pk=world.id))
            assert now.desired_preemptible_gpus == gpus
            assert now.revision <= frame["revision"]
