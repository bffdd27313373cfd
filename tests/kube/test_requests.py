"""One request and its answer: what we wait for, what we do not, and which error an answer is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from console.kube.client import Kube
from console.kube.errors import (
    Broken,
    Conflict,
    Expired,
    Forbidden,
    Garbage,
    KubeError,
    NotFound,
    Refused,
    Throttled,
    Unauthorized,
    Unreachable,
)
from console.kube.kubeconfig import Connection
from console.kube.watch import Failed, Heard, follow
from tests.kube.conftest import Clock
from tests.kube.faulty import Faulty, Reply, Request, Stream
from tests.kube.objects import NODES, bookmark, listing, node, status


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, Refused),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, Refused),
        (409, Conflict),
        (410, Expired),
        (422, Refused),
        (500, Broken),
        (503, Broken),
    ],
)
async def test_each_refusal_is_the_error_of_its_code_with_the_servers_words(
    server: Faulty, kube: Kube, code: int, error: type[KubeError]
) -> None:
    server.on("GET", NODES, Reply(status(code, "nodes: no\x00t now"), code))
    with pytest.raises(error, match="no␀t now") as caught:
        await kube.list("nodes")
    assert type(caught.value) is error
    assert "\x00" not in caught.value.sentence


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Sign in</html>",
        b"[1, 2]",
        b'{"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[',
        b'{"kind":"Node"}',
        b"",
    ],
    ids=["a page", "an array", "cut off", "no list", "nothing"],
)
async def test_what_is_no_list_is_garbage_and_never_an_empty_list(server: Faulty, kube: Kube, body: bytes) -> None:
    server.on("GET", NODES, Reply(body))
    with pytest.raises(Garbage):
        await kube.list("nodes")


async def test_nobody_there_is_unreachable(server: Faulty, kube: Kube) -> None:
    async with Kube(Connection("http://127.0.0.1:9"), timeout=1) as nobody:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await nobody.version()


async def test_a_server_that_does_not_answer_is_given_up_in_time(server: Faulty) -> None:
    server.hold = asyncio.Event()
    async with Kube(Connection(server.url), timeout=0.1) as kube:
        with pytest.raises(Unreachable, match="in time"):
            await kube.version()


async def test_a_list_is_read_page_by_page_to_the_end(server: Faulty, kube: Kube) -> None:
    server.on("GET", NODES, Reply(listing(node("a"), more="t1")), Reply(listing(node("b"), more="t2")), Reply(listing(node("c"))))
    found = await kube.list("nodes", page=1, labels="x=y")
    assert [shape.name for shape in found.items] == ["a", "b", "c"]
    assert [r.query.get("continue") for r in server.requests] == [None, "t1", "t2"]
    assert {(r.query["limit"], r.query["labelSelector"]) for r in server.requests} == {("1", "x=y")}


@pytest.mark.parametrize(("reply", "error"), [(Reply(status(410), 410), Expired), (Reply(b"{", 200), Garbage)])
async def test_a_list_that_fails_on_a_later_page_is_no_list(
    server: Faulty, kube: Kube, reply: Reply, error: type[KubeError]
) -> None:
    """skypilot-org/skypilot PR#7469: the error path must not return half as if it were all."""
    server.on("GET", NODES, Reply(listing(node("a"), more="t1")), reply)
    with pytest.raises(error):
        await kube.list("nodes")


@pytest.mark.parametrize(("told", "waited"), [("3", 3), ("0", 1), ("0.01", 1), ("soon", 1)])
async def test_a_throttling_server_is_asked_again_after_what_it_says(
    server: Faulty, kube: Kube, clock: Clock, told: str, waited: int
) -> None:
    """kubernetes/client-go#222, stellar/supercluster PR#428: at least the header, and in no case at once."""
    busy = Reply(status(429, "slow down", reason="TooManyRequests"), 429, {"Retry-After": told})
    server.on("GET", NODES, busy, busy, Reply(listing()))
    await kube.list("nodes")
    assert [r.tick for r in server.requests] == [0, waited, 2 * waited]


async def test_a_wait_beyond_the_time_out_is_told_instead_of_waited(server: Faulty, kube: Kube, clock: Clock) -> None:
    server.on("GET", NODES, Reply(status(429), 429, {"Retry-After": "60"}))
    with pytest.raises(Throttled) as caught:
        await kube.list("nodes")
    assert caught.value.retry_after == 60
    assert not clock.pauses
    assert len(server.requests) == 1


async def test_no_more_requests_are_under_way_than_allowed(server: Faulty) -> None:
    server.on("GET", "/version", Reply({"gitVersion": "v1.36.3"}))
    server.hold = asyncio.Barrier(4)  # answers only where four have come
    async with Kube(Connection(server.url), max_in_flight=4, timeout=5) as kube:
        assert await asyncio.gather(*(kube.version() for _ in range(12))) == ["v1.36.3"] * 12
    assert server.most_under_way == 4


async def test_the_servers_clock_is_compared_with_ours_on_each_answer(server: Faulty, kube: Kube) -> None:
    server.on(
        "GET", "/version", Reply({}, headers={"Date": "Mon, 30 Nov 2026 12:01:30 GMT"}), Reply({}, headers={"Date": "soon"})
    )
    await kube.version()
    assert kube.clock_offset == 90.5
    await kube.version()
    assert kube.clock_offset == 90.5


async def test_a_path_in_the_server_address_stands_before_every_request(server: Faulty) -> None:
    server.on("GET", "/clusters/c1/version", Reply({"gitVersion": "v1"}))
    async with Kube(Connection(server.url + "/clusters/c1")) as kube:
        assert await kube.version() == "v1"


async def test_no_name_leads_to_another_path(server: Faulty, kube: Kube) -> None:
    with pytest.raises(NotFound):
        await kube.get("pods", "../../nodes/a?x=y", "default")
    assert server.requests[0].path == "/api/v1/namespaces/default/pods/../../nodes/a?x=y"
    assert not server.requests[0].query


def only(token: Callable[[], str], good: Reply | Stream) -> Callable[[Request], Reply | Stream]:
    """A server that answers well where the request carries the token of the moment."""
    return lambda request: good if request.headers.get("authorization") == f"Bearer {token()}" else Reply(status(401), 401)


async def test_a_rotated_token_file_is_read_anew(server: Faulty, tmp_path: Path) -> None:
    """kubernetes-client/python#1768, nolar/kopf#926: the old token is refused an hour later; no restart is needed."""
    file = tmp_path / "token"
    file.write_text("first\n")
    server.on("GET", "/version", only(lambda: file.read_text().strip(), Reply({"gitVersion": "v1"})))
    async with Kube(Connection(server.url, token_file=str(file))) as kube:
        await kube.version()
        file.write_text("second\n")
        assert await kube.version() == "v1"
    assert [r.headers["authorization"] for r in server.requests] == ["Bearer first", "Bearer second"]


async def test_a_token_that_rotates_under_a_request_is_used_for_a_second_try(server: Faulty, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    def rotate(_: Request) -> Reply:
        file.write_text("new")
        return Reply(status(401), 401)

    server.on("GET", "/version", rotate, only(lambda: "new", Reply({"gitVersion": "v1"})))
    async with Kube(Connection(server.url, token_file=str(file))) as kube:
        assert await kube.version() == "v1"
    assert len(server.requests) == 2


async def test_a_running_watch_survives_the_rotation_of_its_token(server: Faulty, clock: Clock, tmp_path: Path) -> None:
    """galaxyproject/galaxy#23187: the watch is open and idle while the token ends."""
    file = tmp_path / "token"
    file.write_text("first")
    valid = "first"

    def end_of_token(_: Request) -> Stream:
        nonlocal valid
        valid = "second"
        file.write_text("second")
        return Stream((bookmark(150),))

    server.on("WATCH", NODES, end_of_token, only(lambda: valid, Stream((bookmark(160),), "silence")))
    connection = Connection(server.url, token_file=str(file))
    async with Kube(connection, clock=clock, pause=clock.pause) as kube, asyncio.timeout(5):
        async for signal in follow(kube, "nodes", since="100", clock=clock, pause=clock.pause):
            assert not isinstance(signal, Failed)
            if isinstance(signal, Heard) and signal.resource_version == "160":
                break


async def test_a_missing_token_file_is_an_error_with_a_sentence_and_sends_nothing(server: Faulty) -> None:
    async with Kube(Connection(server.url, token_file="/nowhere/token")) as kube:
        with pytest.raises(Unauthorized, match="token file token cannot be read"):
            await kube.version()
    assert not server.requests


async def test_one_body_with_a_lone_surrogate_does_not_hide_the_list(server: Faulty, kube: Kube) -> None:
    labels = b'"labels":{"x":"\\ud800"}'
    body = b'{"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","uid":"u",%s}}]}' % labels
    server.on("GET", NODES, Reply(body))
    [found] = (await kube.list("nodes")).items
    assert found.labels == {"x": "�"}  # type: ignore[union-attr]
