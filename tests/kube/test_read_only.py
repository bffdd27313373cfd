"""A connection for reading only sends no write, whatever is tried on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from console.kube.client import Kube
from console.kube.errors import ReadOnly
from console.kube.kubeconfig import Connection
from tests.kube.faulty import Faulty, Reply
from tests.kube.objects import NODES, listing, node

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

WRITES: dict[str, Callable[[Kube], Awaitable[object]]] = {
    "cordon": lambda kube: kube.cordon("a", "uid-a", cause="preempted", deadline=NOON),
    "mark": lambda kube: kube.mark_cordon("a", "uid-a"),
    "unmark": lambda kube: kube.unmark("a", "uid-a", "5"),
    "person": lambda kube: kube.person_cordon("a", "uid-a", True, "ada"),
    "label": lambda kube: kube.set_label("a", "uid-a", "x", "y"),
    "evict": lambda kube: kube.evict("default", "p", "uid-p", 30),
    "delete pod": lambda kube: kube.delete_pod("default", "p", "uid-p", 30),
    "delete node": lambda kube: kube.delete_node("a", "uid-a"),
    "event": lambda kube: kube.emit_event(
        name="e", node_name="a", node_uid="uid-a", reason="R", type="Normal", message="m", at=NOON
    ),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_each_write_is_refused_before_anything_is_sent(server: Faulty, verb: str) -> None:
    async with Kube(replace(Connection(server.url), read_only=True)) as kube:
        with pytest.raises(ReadOnly, match="nothing is ever sent"):
            await WRITES[verb](kube)
    assert server.requests == []


async def test_lifting_our_own_cordon_reads_and_no_more(server: Faulty) -> None:
    closed = node("a")
    closed["metadata"]["annotations"] = {"halftide.io/cordoned-by": "halftide"}
    server.on("GET", f"{NODES}/a", Reply(closed))
    async with Kube(replace(Connection(server.url), read_only=True)) as kube:
        with pytest.raises(ReadOnly):
            await kube.uncordon("a", closed["metadata"]["uid"])
    assert {request.method for request in server.requests} == {"GET"}


async def test_reading_goes_on(server: Faulty) -> None:
    server.on("GET", NODES, Reply(listing(node("a"))))
    async with Kube(replace(Connection(server.url), read_only=True)) as kube:
        assert [shape.name for shape in (await kube.list("nodes")).items] == ["a"]


def test_every_write_of_the_client_is_in_the_list() -> None:
    """A new verb has to be tried here too."""
    reads = {"ask", "ask_json", "stream", "now", "version", "list", "newest", "get", "node", "uncordon"}
    verbs = {name for name in dir(Kube) if not name.startswith("_")} - reads
    assert verbs == {
        "cordon",
        "mark_cordon",
        "unmark",
        "person_cordon",
        "set_label",
        "evict",
        "delete_pod",
        "delete_node",
        "emit_event",
    }
