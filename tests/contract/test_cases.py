"""Faults that people had with other watchers, shown again to ours on both servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from console.kube.api import MERGE_PATCH
from console.kube.client import Kube
from console.kube.errors import Unauthorized
from console.kube.kubeconfig import Connection, parse
from console.kube.resources import path
from console.kube.shapes import Change, EventShape, NodeShape
from console.kube.watch import Failed, Heard, Listed, Signal, follow
from console.sync.apply import view
from tests.controlplane.plane import Plane
from tests.simulator.conftest import Api, Simulation


@pytest.fixture
async def kube(config: str) -> AsyncIterator[Kube]:
    async with Kube(parse(config)) as client:
        yield client


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


async def opened(signals: AsyncIterator[Signal]) -> None:
    """Read on until the watch itself is heard."""
    listed = False
    async for signal in signals:
        assert not isinstance(signal, Failed)
        listed = listed or isinstance(signal, Listed)
        if listed and isinstance(signal, Heard):
            return


async def changes(signals: AsyncIterator[Signal], count: int) -> list[Change]:
    """The next so many changes."""
    found: list[Change] = []
    async with asyncio.timeout(20):
        async for signal in signals:
            if isinstance(signal, Change):
                found.append(signal)
            if len(found) == count:
                break
    return found


async def test_an_event_that_repeats_is_one_object_that_counts(kube: Kube, name: str) -> None:
    """mustafaakin/kubernetes-event-exporter#197, kubernetes/kubernetes#50510."""
    where = path("events", "default", name)
    body = {
        "metadata": {"name": name}, "involvedObject": {"kind": "Node", "name": name, "uid": name}, "reason": "Rebooted",
        "type": "Warning", "count": 1, "firstTimestamp": stamp(datetime.now(UTC)), "lastTimestamp": stamp(datetime.now(UTC)),
        "source": {"component": "kubelet"},
    }  # fmt: skip
    async with aclosing(follow(kube, "events", fields=f"involvedObject.uid={name}")) as signals:
        await opened(signals)
        await kube.ask_json("POST", path("events", "default"), body=body)
        for count in (2, 30):
            await kube.ask_json("PATCH", where, body={"count": count}, content_type=MERGE_PATCH)
        await kube.ask("DELETE", where)
        await kube.ask_json("POST", path("events", "default"), body=body)
        told = await changes(signals, 5)
    await kube.ask("DELETE", where)
    shapes = [change.shape for change in told if isinstance(change.shape, EventShape)]
    counted = [(change.type, shape.count) for change, shape in zip(told, shapes, strict=True)]
    assert counted == [("ADDED", 1), ("MODIFIED", 2), ("MODIFIED", 30), ("DELETED", 30), ("ADDED", 1)]
    assert len({shape.uid for shape in shapes[:4]}) == 1
    assert shapes[4].uid != shapes[0].uid


def watched(either: Api, simulation: Simulation, plane: Plane | None, needle: str) -> list[str]:
    """The queries of watches that have been answered, as the server's own log tells them."""
    if plane is not None:
        lines = plane.audit_log.read_text().splitlines()
        return [row["requestURI"] for row in map(json.loads, lines) if row["verb"] == "watch" and needle in row["requestURI"]]
    asked = simulation.control("GET", f"requests?cluster_id={either.key}").json()
    return [row["query"] for row in asked if row["verb"] == "watch" and needle in row["query"]]


async def test_a_bookmark_is_no_object_and_is_where_the_next_watch_goes_on(
    request: pytest.FixtureRequest, either: Api, simulation: Simulation, kube: Kube, name: str
) -> None:
    """kubernetes-client/python#1404, #1729, tomplus/kubernetes_asyncio#363."""
    plane = request.getfixturevalue("control_plane") if either.real else None
    first = int((await kube.list("nodes")).resource_version)
    marks: list[str] = []
    async with asyncio.timeout(30), aclosing(follow(kube, "nodes", labels=f"contract={name}", server_timeout=4)) as signals:
        await opened(signals)
        either.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
        either.post("/api/v1/nodes", {"metadata": {"name": name}})
        while len(watches := watched(either, simulation, plane, name)) < 2:
            signal = await anext(signals)
            assert not isinstance(signal, Failed | Change)
            if isinstance(signal, Heard):
                marks.append(signal.resource_version)
    either.delete(f"/api/v1/nodes/{name}")
    either.delete(f"/api/v1/namespaces/default/configmaps/{name}")
    again = watches[1]
    assert any(f"resourceVersion={mark}&" in again + "&" and int(mark) > first for mark in marks), (again, marks)


async def test_heartbeats_are_told_but_are_no_news(simulation: Simulation, kube: Kube, node: str) -> None:
    """kubernetes/kubernetes#29772."""
    body = await kube.ask_json("GET", path("nodes", name=node))
    conditions: list[Any] = body["status"]["conditions"]  # type: ignore[index, call-overload]
    async with aclosing(follow(kube, "nodes", fields=f"metadata.name={node}")) as signals:
        await opened(signals)
        before = await kube.node(node)
        for beat in (10, 20, 30):
            later = stamp(datetime.now(UTC) + timedelta(seconds=beat))
            fresh = {"status": {"conditions": [{**item, "lastHeartbeatTime": later} for item in conditions]}}
            await kube.ask_json("PATCH", path("nodes", name=node, sub="status"), body=fresh, content_type=MERGE_PATCH)
        told = await changes(signals, 3)
    assert [change.type for change in told] == ["MODIFIED"] * 3
    assert all(isinstance(change.shape, NodeShape) and view(change.shape) == view(before) for change in told)


async def test_a_token_that_was_replaced_is_read_anew(control_plane: Plane, tmp_path: Path) -> None:
    """kubernetes-client/python#1768, galaxyproject/galaxy#23187, nolar/kopf#926: a bound token dies with what it is bound to."""
    with control_plane.namespace("token") as space:
        account = control_plane.account(space, {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]})
        tokens = f"/api/v1/namespaces/{space}/serviceaccounts/halftide/token"
        secret = control_plane.ask("POST", f"/api/v1/namespaces/{space}/secrets", {"metadata": {"name": "bond"}})
        reference = {"kind": "Secret", "apiVersion": "v1", "name": "bond", "uid": secret["metadata"]["uid"]}
        made = control_plane.ask("POST", tokens, {"spec": {"expirationSeconds": 3600, "boundObjectRef": reference}})
        file = tmp_path / "token"
        file.write_text(made["status"]["token"])
        connection = Connection(control_plane.url, ca=control_plane.authority.read_text(), token_file=str(file))
        async with Kube(connection) as kube:
            await kube.list("nodes")
            control_plane.ask("DELETE", f"/api/v1/namespaces/{space}/secrets/bond")
            with pytest.raises(Unauthorized):
                async with asyncio.timeout(30):  # the server remembers a good token for ten seconds
                    while True:
                        await kube.list("nodes")
                        await asyncio.sleep(0.5)
            file.write_text(account.token)
            await kube.list("nodes")
