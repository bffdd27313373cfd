"""Following a kind: what comes, what is said when nothing does, and that it never ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from itertools import pairwise
from typing import TypeVar

import pytest

from console.kube.client import Kube
from console.kube.errors import Expired, Forbidden, Garbage, Stale, Unreachable
from console.kube.place import Place
from console.kube.shapes import Change, Kind, Listing
from console.kube.watch import Failed, Heard, Listed, Signal, follow
from tests.kube.conftest import Clock
from tests.kube.faulty import Faulty, Reply, Stream
from tests.kube.objects import EVENTS, GONE, NODES, bookmark, change, listing, node, status

SILENT = Stream(then="silence")

T = TypeVar("T")


async def until(
    kube: Kube, clock: Clock, enough: Callable[[list[Signal]], object], kind: Kind = "nodes", **how: object
) -> list[Signal]:
    """Follow until `enough` says so of what came (five seconds at most); what came."""
    came: list[Signal] = []
    async with asyncio.timeout(5), aclosing(follow(kube, kind, clock=clock, pause=clock.pause, **how)) as signals:  # type: ignore[arg-type]
        async for signal in signals:
            came.append(signal)
            if enough(came):
                break
    return came


def of(kind: type[T], came: list[Signal]) -> list[T]:
    return [signal for signal in came if isinstance(signal, kind)]


def names(came: list[Signal]) -> list[tuple[str, str]]:
    return [(change.type, change.shape.name) for change in of(Change, came)]


def standing(clock: Clock, seconds: int, enough: Callable[[list[Signal]], object]) -> Callable[[list[Signal]], object]:
    """For `until`: a watch that was answered stands for so long before anything else comes of it."""

    def and_enough(came: list[Signal]) -> object:
        if isinstance(came[-1], Heard):
            clock.now += timedelta(seconds=seconds)
        return enough(came)

    return and_enough


async def test_a_list_comes_first_and_the_watch_continues_from_its_version(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("GET", NODES, Reply(listing(node("a"), version=100)))
    server.on("WATCH", NODES, Stream((change("ADDED", node("b", 101)), change("DELETED", node("a", 102))), "silence"))
    came = await until(kube, clock, lambda came: len(of(Change, came)) == 2)
    assert [shape.name for shape in of(Listed, came)[0].listing.items] == ["a"]
    assert names(came) == [("ADDED", "b"), ("DELETED", "a")]
    watch = server.asked("WATCH", NODES)[0]
    assert watch.query["resourceVersion"] == "100"
    assert watch.query["allowWatchBookmarks"] == "true"


async def test_an_orderly_end_resumes_after_the_last_change_without_a_list(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("GET", NODES, Reply(listing(version=100)))
    server.on("WATCH", NODES, Stream((change("ADDED", node("a", 140)),)), Stream((change("ADDED", node("b", 150)),), "silence"))
    came = await until(kube, clock, lambda came: len(of(Change, came)) == 2)
    assert not of(Failed, came)
    assert [r.query["resourceVersion"] for r in server.asked("WATCH", NODES)] == ["100", "140"]
    assert len(server.asked("GET", NODES)) == 1


@pytest.mark.parametrize("gone", [Stream((GONE,)), Reply(status(410, "too old"), 410)], ids=["in the stream", "as HTTP"])
async def test_an_expired_version_is_answered_by_a_new_list_each_time(
    server: Faulty, kube: Kube, clock: Clock, gone: Stream | Reply
) -> None:
    """apache/airflow#21087, kr8s-org/kr8s#476: three 410s in a row, a node added meanwhile; no busy loop, no version "None"."""
    lists = [Reply(listing(version=100 + n)) for n in range(3)] + [Reply(listing(node("new"), version=200))]
    server.on("GET", NODES, *lists)
    server.on("WATCH", NODES, gone, gone, gone, Stream((bookmark(201),), "silence"))
    came = await until(kube, clock, lambda came: of(Heard, came) and of(Heard, came)[-1].resource_version == "201")
    assert [shape.name for shape in of(Listed, came)[-1].listing.items] == ["new"]
    assert [r.query["resourceVersion"] for r in server.asked("WATCH", NODES)] == ["100", "101", "102", "200"]
    assert all(isinstance(failed.error, Expired) for failed in of(Failed, came))
    listed_at = [r.tick for r in server.asked("GET", NODES)]
    assert all(later - earlier >= 1 for earlier, later in pairwise(listed_at))


async def test_a_silent_stream_is_given_up_and_resumed(server: Faulty, kube: Kube, clock: Clock) -> None:
    """kubernetes-client/python#1148, nolar/kopf#810: a half-open connection hangs for ever without a read time-out."""
    server.on("GET", NODES, Reply(listing(version=100)))
    server.on("WATCH", NODES, Stream((bookmark(120),), "silence"), Stream((change("DELETED", node("a", 121)),), "silence"))
    came = await until(kube, clock, lambda came: of(Change, came), read_timeout=0.1)
    [failed] = of(Failed, came)
    assert isinstance(failed.error, Unreachable)
    assert failed.error.sentence == "The Kubernetes API has said nothing for 0.1 s."
    assert server.asked("WATCH", NODES)[1].query["resourceVersion"] == "120"


async def test_a_bookmark_moves_the_version_and_is_no_object(server: Faulty, kube: Kube, clock: Clock) -> None:
    """kubernetes-client/python#1404, tomplus/kubernetes_asyncio#363: v900 after v100, then the stream ends."""
    server.on("GET", NODES, Reply(listing(version=100)))
    server.on("WATCH", NODES, Stream((bookmark(900),)), SILENT)
    came = await until(kube, clock, lambda _: len(server.asked("WATCH", NODES)) == 2)
    assert not of(Change, came)
    assert not of(Failed, came)
    assert server.asked("WATCH", NODES)[1].query["resourceVersion"] == "900"


async def test_what_vanished_while_we_were_away_is_absent_from_the_next_list(server: Faulty, kube: Kube, clock: Clock) -> None:
    """lensapp/lens#2375: the DELETED was never seen, so the list is given whole."""
    server.on("GET", NODES, Reply(listing(node("a"), node("b"), version=100)), Reply(listing(node("b"), version=300)))
    server.on("WATCH", NODES, Stream((GONE,)), SILENT)
    came = await until(kube, clock, lambda came: len(of(Listed, came)) == 2)
    assert [[s.name for s in listed.listing.items] for listed in of(Listed, came)] == [["a", "b"], ["b"]]


async def test_a_repeating_event_is_one_uid_with_a_rising_count(server: Faulty, kube: Kube, clock: Clock) -> None:
    """mustafaakin/kubernetes-event-exporter#197, kubernetes/kubernetes#50510: count 1, 2, 30 as MODIFIED, then its TTL."""

    def event(count: int) -> dict[str, object]:
        meta = {"name": "e.1", "namespace": "default", "uid": "u1", "resourceVersion": str(100 + count)}
        return {"metadata": meta, "count": count, "lastTimestamp": "2026-11-30T11:59:00Z", "reason": "BackOff"}

    story = (("ADDED", 1), ("MODIFIED", 2), ("MODIFIED", 30), ("DELETED", 30))
    server.on("GET", EVENTS, Reply(listing(kind="EventList")))
    server.on("WATCH", EVENTS, Stream(tuple(change(type_, event(count)) for type_, count in story), "silence"))
    came = await until(kube, clock, lambda came: len(of(Change, came)) == 4, "events")
    told = [(c.type, c.shape.uid, c.shape.count) for c in of(Change, came)]  # type: ignore[union-attr]
    assert told == [(type_, "u1", count) for type_, count in story]


async def test_a_stream_cut_in_mid_object_fails_and_resumes_without_loss(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("GET", NODES, Reply(listing(version=100)))
    half = b'{"type":"ADDED","object":{"metadata":{"na'
    server.on(
        "WATCH",
        NODES,
        Stream((change("ADDED", node("a", 101)), half), "end"),
        Stream((change("ADDED", node("b", 102)), half), "cut"),
        Stream((change("ADDED", node("c", 103)),), "silence"),
    )
    came = await until(kube, clock, lambda came: len(of(Change, came)) == 3)
    assert names(came) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert [type(failed.error) for failed in of(Failed, came)] == [Garbage, Unreachable]
    assert [r.query["resourceVersion"] for r in server.asked("WATCH", NODES)] == ["100", "101", "102"]


async def test_a_change_may_arrive_in_any_pieces(server: Faulty, kube: Kube, clock: Clock) -> None:
    line = Stream((change("ADDED", node("a", 101)),)).encoded()[0] * 2
    server.on("GET", NODES, Reply(listing(version=100)))
    server.on("WATCH", NODES, Stream((*(line[n : n + 7] for n in range(0, len(line), 7)),), "silence"))
    came = await until(kube, clock, lambda came: len(of(Change, came)) == 2)
    assert names(came) == [("ADDED", "a"), ("ADDED", "a")]


async def test_a_page_of_a_proxy_in_the_stream_is_told_and_then_listed_over(server: Faulty, kube: Kube, clock: Clock) -> None:
    """The same version fails again and again, so after three tries it is given up for a list."""
    server.on("GET", NODES, Reply(listing(version=100)))
    server.on("WATCH", NODES, Stream((b"<html>Sign in</html>\n",)))
    came = await until(kube, clock, lambda came: len(of(Listed, came)) == 2)
    assert [type(failed.error) for failed in of(Failed, came)] == [Garbage] * 3


async def test_an_unreadable_object_is_told_and_left_out_and_the_stream_goes_on(server: Faulty, kube: Kube, clock: Clock) -> None:
    nameless = change("ADDED", {"metadata": {"resourceVersion": "101"}})
    unknown = change("RENAMED", node("x", 102))
    server.on("GET", NODES, Reply(listing(node("a"), {"metadata": None}, "text", version=100)))
    server.on("WATCH", NODES, Stream((nameless, unknown, change("ADDED", node("b", 103))), "silence"))
    came = await until(kube, clock, lambda came: of(Change, came))
    assert of(Listed, came)[0].listing.broken == (
        "One of the nodes has no name or no uid.",
        "One of the nodes is no JSON object.",
    )
    assert len(of(Failed, came)) == 4
    assert {failed.next_try for failed in of(Failed, came)} == {clock.start}
    assert len(server.asked("WATCH", NODES)) == 1


async def test_after_a_list_with_an_unreadable_object_each_watch_is_followed_by_another_until_one_is_whole(
    server: Faulty, kube: Kube, clock: Clock
) -> None:
    """Else a cluster whose object was mended, or went, would be called unreadable for as long as its watch is well."""
    server.on("GET", NODES, Reply(listing(node("a"), "text", version=100)), Reply(listing(node("a"), version=120)))
    server.on("WATCH", NODES, Stream((bookmark(110),)), Stream((bookmark(130),)), SILENT)
    came = await until(kube, clock, lambda _: len(server.asked("WATCH", NODES)) == 3)
    assert [len(listed.listing.broken) for listed in of(Listed, came)] == [1, 0]
    assert [request.query["resourceVersion"] for request in server.asked("WATCH", NODES)] == ["100", "120", "130"]


async def test_a_list_older_than_what_was_seen_is_refused(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("GET", NODES, Reply(listing(node("a"), version=500)), Reply(listing(version=80)))
    server.on("WATCH", NODES, Stream((GONE,)))
    came = await until(kube, clock, lambda came: len(of(Failed, came)) == 3)
    assert [type(failed.error) for failed in of(Failed, came)] == [Expired, Stale, Stale]
    assert len(of(Listed, came)) == 1


async def test_a_whole_watch_without_even_a_bookmark_is_doubted(server: Faulty, kube: Kube, clock: Clock) -> None:
    """After a restore Kubernetes waits in silence for a version that it has not reached yet; only a list shows that."""
    server.on("GET", NODES, Reply(listing(version=500)), Reply(listing(version=80)))
    server.on("WATCH", NODES, Stream())
    came = await until(kube, clock, standing(clock, 25, lambda came: of(Failed, came)))
    assert isinstance(of(Failed, came)[0].error, Stale)


async def test_a_doubt_costs_one_object_and_no_list_where_history_is_still_ours(server: Faulty, kube: Kube, clock: Clock) -> None:
    """HolmesGPT/holmesgpt#2438: a busy server sends its bookmark too late, and 15,000 quiet pods were listed twice a minute."""
    server.on("GET", NODES, Reply(listing(node("a"), version=500)), Reply(listing(node("a"), more="t1", version=900)))
    server.on("WATCH", NODES, Stream(), Stream(), Stream((change("MODIFIED", node("a", 901)),), "silence"))
    came = await until(kube, clock, standing(clock, 25, lambda came: of(Change, came)))
    assert (len(of(Listed, came)), of(Failed, came)) == (1, [])
    asked = [(request.query.get("limit"), request.query.get("resourceVersion")) for request in server.requests]
    assert asked == [("500", None), (None, "500"), ("1", None), (None, "500"), ("1", None), (None, "500")]


async def test_trouble_is_told_with_its_beginning_and_ends_with_the_first_sign_of_life(
    server: Faulty, kube: Kube, clock: Clock
) -> None:
    server.on("GET", NODES, Reply(status(403, "nodes is forbidden"), 403), Reply(status(403), 403), Reply(listing(version=9)))
    server.on("WATCH", NODES, Stream((bookmark(10),)), Reply(b"gone away", 503), SILENT)
    came = await until(kube, clock, lambda came: len(of(Failed, came)) == 3)
    first, second, third = of(Failed, came)
    assert isinstance(first.error, Forbidden)
    assert first.error.sentence == "Kubernetes says: nodes is forbidden"
    assert first.since == second.since == clock.start
    assert second.next_try > first.next_try
    assert third.since > second.next_try


async def test_trouble_after_a_quiet_watch_is_new_trouble_and_waits_no_longer_than_the_first(
    server: Faulty, kube: Kube, clock: Clock
) -> None:
    """A cut, then twenty quiet and well seconds, then another: the second is no continuation of the first."""
    server.on("GET", NODES, Reply(listing(version=9)))
    server.on("WATCH", NODES, Reply(b"gone away", 503), Reply(b"gone away", 503), Stream(then="cut"), SILENT)
    came = await until(kube, clock, standing(clock, 20, lambda came: len(of(Failed, came)) == 3))
    _, second, third = of(Failed, came)
    assert third.since >= second.since + timedelta(seconds=20)
    assert third.next_try - third.since < timedelta(seconds=1.3)


async def test_failures_after_a_quiet_watch_wait_longer_each_and_end_in_a_list(server: Faulty, kube: Kube, clock: Clock) -> None:
    """The watch that stood is long ago for the second failure: with no other watch since, that is no first one again."""
    away = Reply(b"gone away", 503)
    server.on("GET", NODES, Reply(listing(version=9)), away, away, away, away, away, Reply(listing(version=30)))
    server.on("WATCH", NODES, Stream(), SILENT)
    came = await until(kube, clock, standing(clock, 20, lambda came: len(of(Listed, came)) == 2))
    waits = [pause for pause in clock.pauses if pause >= 1]
    assert all(wait >= least for wait, least in zip(waits, [1, 2, 4, 8, 16], strict=True))
    assert [request.query.get("limit") for request in server.asked("GET", NODES)] == ["500", "1", "1", "1", "500", "500", "500"]
    assert len({failed.since for failed in of(Failed, came)}) == 1


async def test_watches_that_are_not_answered_for_a_long_time_are_failures_in_a_row(
    server: Faulty, kube: Kube, clock: Clock
) -> None:
    """A connection that takes its time and is then refused has stood nowhere: it waits longer each time, and ends in a list."""

    def hangs(_: object) -> Reply:
        clock.now += timedelta(seconds=40)
        return Reply(b"gone away", 503)

    server.on("GET", NODES, Reply(listing(version=9)), Reply(listing(version=30)))
    server.on("WATCH", NODES, hangs, hangs, hangs, SILENT)
    came = await until(kube, clock, lambda came: len(of(Listed, came)) == 2)
    assert len(server.asked("WATCH", NODES)) == 3
    assert len({failed.since for failed in of(Failed, came)}) == 1
    waits = [pause for pause in clock.pauses if pause >= 1]
    assert all(wait >= least for wait, least in zip(waits, [1, 2, 4], strict=True))


async def test_a_watch_that_is_asked_to_wait_waits(server: Faulty, kube: Kube, clock: Clock) -> None:
    """kubernetes/client-go#222, kubernetes/kubernetes#36409; and a server that says a day has five minutes."""
    busy = [Reply(status(429, "too many requests"), 429, {"Retry-After": str(seconds)}) for seconds in (7, 86400)]
    server.on("GET", NODES, Reply(listing(version=9)))
    server.on("WATCH", NODES, *busy, SILENT)
    await until(kube, clock, lambda _: len(server.asked("WATCH", NODES)) == 3)
    first, second = (later.tick - earlier.tick for earlier, later in pairwise(server.asked("WATCH", NODES)))
    assert 7 <= first < 9
    assert 300 <= second < 361


async def test_following_from_a_version_does_not_list(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("WATCH", NODES, Stream((change("ADDED", node("a", 78)),), "silence"))
    await until(kube, clock, lambda came: of(Change, came), since="77", labels="together.ai/compute-class")
    [watch] = server.requests
    assert (watch.query["resourceVersion"], watch.query["labelSelector"]) == ("77", "together.ai/compute-class")


async def test_a_flood_of_changes_is_not_doubled_by_signs_of_life(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("GET", NODES, Reply(listing(version=100)))
    server.on("WATCH", NODES, Stream(tuple(change("MODIFIED", node("a", 101 + n)) for n in range(200)), "silence"))
    came = await until(kube, clock, lambda came: len(of(Change, came)) == 200)
    assert len(of(Heard, came)) == 1


def test_the_wait_doubles_to_half_a_minute_and_never_falls_below_a_second(clock: Clock) -> None:
    place = Place(version="5", highest="5")
    waits = [place.failed(Unreachable("no"), clock()) for _ in range(12)]
    assert all(wait >= least for wait, least in zip(waits, [1, 2, 4, 8, 16, *[30] * 7], strict=True))
    assert max(waits) <= 36


def test_the_version_never_moves_backwards_within_a_stream() -> None:
    place = Place(version="50", highest="50")
    place.moved("49")
    place.moved("")
    assert place.version == "50"
    place.moved("51")
    assert place.version == "51"


def test_versions_that_are_no_numbers_are_not_compared() -> None:
    place = Place(version=None, highest="zz")
    place.listed(Listing("nodes", "aa", ()))
    assert place.version == "aa"
