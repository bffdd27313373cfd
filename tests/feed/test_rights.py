"""A socket is open exactly as long as the right to look (django/channels#1324, django/channels#718)."""

import asyncio
import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from console.accounts import sessions
from console.accounts.changes import grant
from console.accounts.models import Grant, Role
from console.feed import hub as feed_hub
from console.feed import reads
from console.feed.hub import Listener, hub
from console.live import access_changed_on_commit
from tests.feed.line import Closed, World, a_page, connected, happen, off, session_of
from tests.pages.world import a_person, a_project

SOON = 5.0  # seconds within which a lost right closes an open socket


async def refused(world: World, session: str) -> int:
    async with connected(world, await a_page(world), session) as socket:
        return await socket.code()


async def test_nobody_signed_in_is_told_so(world: World) -> None:
    assert await refused(world, "") == 4401
    assert await refused(world, "no-such-session") == 4401


async def test_what_one_may_not_see_is_not_there(world: World) -> None:
    stranger = await off(a_person, "bea", Role.ADMIN, "borealis")
    assert await refused(world, await off(session_of, stranger)) == 4404


async def test_another_site_cannot_open_a_socket_with_the_browsers_cookie(world: World) -> None:
    with pytest.raises(Closed):
        async with connected(world, await a_page(world), origin="https://elsewhere.example"):
            pass


def sign_out(world: World) -> None:
    sessions.end(world.session, "signed out")


def lose_role(world: World) -> None:
    Grant.objects.filter(user=world.user).delete()
    access_changed_on_commit()


def move_to_another_project(world: World) -> None:
    Grant.objects.filter(user=world.user).update(project=a_project("borealis"))
    access_changed_on_commit()


@pytest.mark.parametrize(
    ("act", "code"),
    [(sign_out, 4401), (lose_role, 4403), (move_to_another_project, 4403)],
    ids=["signed out", "no role", "other project"],
)
async def test_a_lost_right_closes_the_socket_at_once(world: World, act: object, code: int) -> None:
    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await off(act, world)
        assert await socket.code(SOON) == code
        await off(happen, world.cluster, "nobody's business any more")
        await asyncio.sleep(0.3)
        assert socket.waiting() == 0


def disable(world: World) -> None:
    world.user.is_active = False
    world.user.save()


def expire(world: World) -> None:
    Session.objects.filter(pk=world.session).update(expire_date=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(("act", "code"), [(disable, 4403), (expire, 4401)], ids=["disabled", "expired"])
async def test_what_nobody_tells_is_found_by_the_regular_check(
    world: World, monkeypatch: pytest.MonkeyPatch, act: object, code: int
) -> None:
    """NilCoalescing/djangochannelsrestframework#127: rights that are checked once, at connect, outlive the person."""
    assert feed_hub.RIGHTS_EVERY <= 30
    monkeypatch.setattr(feed_hub, "RIGHTS_EVERY", 0.2)
    monkeypatch.setattr(feed_hub, "PAUSE", 0.1)
    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await off(act, world)
        assert await socket.code(SOON) == code


async def test_the_others_stay(world: World) -> None:
    other = await off(a_person, "olu", Role.OPERATOR, "aurora")
    session = await off(session_of, other)
    page = await a_page(world)
    async with connected(world, page) as leaving, connected(world, page, session) as staying:
        await staying.frame("rows")
        await off(sign_out, world)
        assert await leaving.code(SOON) == 4401
        await off(happen, world.cluster, "for who may")
        assert "for who may" in (await staying.frame("rows"))["rows"][0]["html"]


async def test_a_right_that_goes_between_the_door_and_the_hub_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check that its nudge starts is over before the socket is there to be checked."""
    real_door, real_lost = reads.door, reads.lost
    inside, go_on, checked = threading.Event(), threading.Event(), threading.Event()

    def slow_door(*args: object) -> object:
        found = real_door(*args)  # type: ignore[arg-type]
        inside.set()
        assert go_on.wait(10)
        return found

    def lost(asked: object) -> object:
        found = real_lost(asked)  # type: ignore[arg-type]
        checked.set()
        return found

    monkeypatch.setattr(feed_hub, "PAUSE", 0.1)
    other = await off(a_person, "olu", Role.OPERATOR, "aurora")
    page = await a_page(world)
    async with connected(world, page, await off(session_of, other)) as first:
        await first.frame("rows")
        monkeypatch.setattr(reads, "door", slow_door)
        async with connected(world, page) as late:
            assert await asyncio.to_thread(inside.wait, 10)
            monkeypatch.setattr(reads, "lost", lost)
            await off(lose_role, world)
            assert await asyncio.to_thread(checked.wait, 10)
            go_on.set()
            assert await late.code(SOON) == 4403


async def test_what_waited_for_a_slow_browser_is_dropped_when_its_right_goes() -> None:
    slow = Listener(1, "key", uuid4(), 0.0)
    slow.hand("secret")
    slow.end(reads.FORBIDDEN)
    slow.hand("more")
    assert [slow.queue.get_nowait() for _ in range(slow.queue.qsize())] == [4403]


async def test_a_check_that_fails_is_tried_again_soon(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = reads.lost, [reads.Error("the database is away")]

    def sometimes(asked: object) -> object:
        if failures:
            raise failures.pop()
        return real(asked)  # type: ignore[arg-type]

    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        monkeypatch.setattr(reads, "lost", sometimes)
        await off(lose_role, world)
        assert await socket.code(SOON) == 4403
    assert failures == []


async def test_many_access_changes_are_one_check_of_everybody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, checks = reads.lost, list[int]()

    def counted(asked: set[object]) -> object:
        checks.append(len(asked))
        return real(asked)  # type: ignore[arg-type]

    async with connected(world, await a_page(world)) as socket:
        await socket.frame("rows")
        await asyncio.sleep(1.5 * feed_hub.PAUSE)  # the check at the hub's own start is over
        monkeypatch.setattr(reads, "lost", counted)
        for _ in range(50):
            hub()._heard("access")
        await off(grant, None, world.user, None, Role.ADMIN, timezone.now())
        await asyncio.sleep(1.5 * feed_hub.PAUSE)
    assert 1 <= len(checks) <= 3
