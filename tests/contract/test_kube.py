"""What `console.kube` counts on, asked through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from console.kube import marks
from console.kube.api import MERGE_PATCH
from console.kube.client import Kube
from console.kube.errors import Conflict, NotFound, Refused
from console.kube.kubeconfig import Connection, parse
from console.kube.resources import path
from console.kube.shapes import Absent, Blocked, BudgetShape, Change, EventShape, Evicted, NodeShape, PodShape
from console.kube.watch import Failed, Heard, Listed, Signal, follow


@pytest.fixture
def connection(config: str) -> Connection:
    return parse(config)


@pytest.fixture
async def kube(connection: Connection) -> AsyncIterator[Kube]:
    async with Kube(connection) as client:
        yield client


@pytest.fixture
async def node(kube: Kube, name: str) -> AsyncIterator[NodeShape]:
    """A Ready node with eight GPUs that no workload of others tolerates."""
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"contract": name}},
        "spec": {"taints": [{"key": "contract", "value": "mine", "effect": "NoSchedule"}]},
    }
    made = await kube.ask_json("POST", path("nodes"), body=body)
    try:
        status = {
            "status": {
                "capacity": {marks.GPU_RESOURCE: "8", "pods": "110"},
                "allocatable": {marks.GPU_RESOURCE: "8", "pods": "110"},
                "addresses": [{"type": "InternalIP", "address": "127.9.9.9"}],
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now_text()}],
            }
        }
        await kube.ask_json("PATCH", path("nodes", name=name, sub="status"), body=status, content_type=MERGE_PATCH)
        yield await kube.node(name)
    finally:
        uid = made["metadata"]["uid"]  # type: ignore[index]
        await kube.delete_node(name, uid)


@pytest.fixture
async def pod(kube: Kube, node: NodeShape) -> AsyncIterator[PodShape]:
    """A running pod on that node."""
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": node.name, "namespace": "default", "labels": {"app": node.name}},
        "spec": {
            "nodeName": node.name,
            "terminationGracePeriodSeconds": 60,
            "containers": [
                {"name": "c", "image": "none", "resources": {"limits": {marks.GPU_RESOURCE: "2"}}},
            ],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    await kube.ask_json("POST", path("pods", "default"), body=body)
    ready = {
        "status": {
            "phase": "Running",
            "startTime": now_text(),
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now_text()}],
        }
    }
    await kube.ask_json("PATCH", path("pods", "default", node.name, "status"), body=ready, content_type=MERGE_PATCH)
    shape = await kube.get("pods", node.name, "default")
    assert isinstance(shape, PodShape)
    yield shape
    await kube.delete_pod("default", node.name, shape.uid, 0)


def now_text() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_a_node_reads_as_it_was_made(kube: Kube, node: NodeShape) -> None:
    assert (node.gpus, node.ready, node.internal_ip, node.unschedulable) == (8, True, "127.9.9.9", False)
    assert node.created_at
    assert abs(node.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert "contract" in {taint.key for taint in node.taints}
    assert (await kube.version()).startswith("v1.")
    assert abs(kube.clock_offset) < 30


async def test_a_list_in_pages_of_one_is_the_whole_list(kube: Kube, node: NodeShape) -> None:
    whole = await kube.list("nodes")
    paged = await kube.list("nodes", page=1)
    assert {n.name for n in paged.items} == {n.name for n in whole.items} >= {node.name}
    mine = await kube.list("nodes", labels=f"contract={node.name}")
    assert [n.name for n in mine.items] == [node.name]
    assert (await kube.list("pods", fields=f"spec.nodeName={node.name}")).items == ()


async def test_what_is_not_there_is_not_found(kube: Kube, name: str) -> None:
    with pytest.raises(NotFound):
        await kube.node(name)
    with pytest.raises(NotFound):
        await kube.cordon(name, "uid", cause="repair", deadline=datetime.now(UTC))
    assert await kube.delete_node(name, "uid") is False
    assert await kube.evict("default", name, "uid", 1) == Absent()
    assert await kube.delete_pod("default", name, "uid", 1) is False


async def test_a_write_with_another_uid_or_an_old_version_is_a_conflict(kube: Kube, node: NodeShape) -> None:
    deadline = datetime.now(UTC)
    with pytest.raises(Conflict):
        await kube.set_label(node.name, "another-uid", "x", "y")
    with pytest.raises(Conflict):
        await kube.cordon(node.name, node.uid, cause="repair", deadline=deadline, resource_version="1")
    assert await kube.delete_node(node.name, "another-uid") is False
    assert not (await kube.node(node.name)).unschedulable


async def test_what_others_write_beside_us_survives(kube: Kube, node: NodeShape) -> None:
    """kubernetes/kubernetes#128304, NVIDIA/nodewright#447: a taint, a label and an annotation set between read and write."""
    theirs = {
        "metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}},
        "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
    }
    await kube.ask_json("PATCH", path("nodes", name=node.name), body=theirs, content_type=MERGE_PATCH)
    await kube.cordon(node.name, node.uid, cause="preempted", deadline=datetime(2030, 1, 1, tzinfo=UTC))
    closed = await kube.set_label(node.name, node.uid, marks.CLASS_LABEL, marks.PREEMPTIBLE)
    assert closed.unschedulable
    assert (closed.labels["theirs"], closed.annotations["theirs"]) == ("1", "1")
    assert closed.labels[marks.CLASS_LABEL] == marks.PREEMPTIBLE
    assert "theirs" in {taint.key for taint in closed.taints}
    assert closed.annotations[marks.DRAIN_DEADLINE] == "2030-01-01T00:00:00.000000Z"
    assert await kube.uncordon(node.name, node.uid) is True
    opened = await kube.set_label(node.name, node.uid, marks.CLASS_LABEL, None)
    assert not opened.unschedulable
    assert marks.CLASS_LABEL not in opened.labels
    assert not [key for key in opened.annotations if key.startswith(marks.PREFIX)]
    assert opened.annotations["theirs"] == "1"


async def test_a_persons_cordon_stays_until_a_person_lifts_it(kube: Kube, node: NodeShape) -> None:
    await kube.person_cordon(node.name, node.uid, True, "ada")
    assert await kube.uncordon(node.name, node.uid) is False
    assert (await kube.node(node.name)).unschedulable
    opened = await kube.person_cordon(node.name, node.uid, False, "ada")
    assert not opened.unschedulable
    assert marks.CORDONED_BY not in opened.annotations


async def test_an_event_of_ours_is_kept_once_and_reads_as_it_was_said(kube: Kube, node: NodeShape) -> None:
    at = datetime.now(UTC).replace(microsecond=250000)
    said = {"node_name": node.name, "node_uid": node.uid, "reason": "TogetherPreempted", "type": "Warning"}
    for _ in range(2):
        await kube.emit_event(name=f"{node.name}.drain", message="×" * 2000, at=at, **said)
    found = await kube.list("events", fields=f"involvedObject.name={node.name},reason=TogetherPreempted")
    [event] = found.items
    assert isinstance(event, EventShape)
    assert (event.at, event.count, event.type, event.involved_uid) == (at, 1, "Warning", node.uid)
    assert event.reporting_component == marks.REPORTING_COMPONENT
    await kube.ask("DELETE", path("events", "default", event.name))


async def test_an_eviction_tells_the_pod_with_the_grace_we_say(kube: Kube, pod: PodShape) -> None:
    assert (pod.gpus, pod.grace_seconds, pod.ready, pod.owner_kind) == (2, 60, True, "")
    assert await kube.evict("default", pod.name, "another-uid", 20) == Absent()
    assert await kube.evict("default", pod.name, pod.uid, 20) == Evicted()
    going = await kube.get("pods", pod.name, "default")
    assert isinstance(going, PodShape)
    assert going.deletion_at
    assert going.deletion_grace == 20
    assert await kube.evict("default", pod.name, pod.uid, 20) == Evicted()
    assert await kube.delete_pod("default", pod.name, "another-uid", 0) is False
    assert await kube.delete_pod("default", pod.name, pod.uid, 0) is True
    with pytest.raises(NotFound):
        await kube.get("pods", pod.name, "default")


async def test_a_budget_that_refuses_is_named(kube: Kube, pod: PodShape) -> None:
    """kubernetes/kubernetes#34938, #106286."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": pod.name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": pod.name}}},
    }
    await kube.ask_json("POST", path("poddisruptionbudgets", "default"), body=budget)
    try:
        found = await kube.get("poddisruptionbudgets", pod.name, "default")
        assert isinstance(found, BudgetShape)
        assert (found.match_labels, found.disruptions_allowed) == ({"app": pod.name}, 0)
        blocked = await kube.evict("default", pod.name, pod.uid, 20)
        assert isinstance(blocked, Blocked)
        assert blocked.budgets == (pod.name,)
        still = await kube.get("pods", pod.name, "default")
        assert isinstance(still, PodShape)
        assert still.deletion_at is None
        assert await kube.delete_pod("default", pod.name, pod.uid, 20) is True
    finally:
        await kube.ask("DELETE", path("poddisruptionbudgets", "default", pod.name))


async def test_a_watch_tells_every_step_of_an_ending_pod(kube: Kube, pod: PodShape) -> None:
    ended = {
        "status": {
            "phase": "Failed",
            "containerStatuses": [
                {
                    "name": "c",
                    "image": "none",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": {"exitCode": 143, "finishedAt": now_text(), "startedAt": now_text()}},
                }
            ],
        }
    }
    seen: list[tuple[str, bool, bool, int | None]] = []
    async with asyncio.timeout(15), aclosing(follow(kube, "pods", fields=f"spec.nodeName={pod.node_name}")) as signals:
        async for signal in signals:
            assert not isinstance(signal, Failed)
            if isinstance(signal, Heard) and not seen:
                seen.append(("opened", False, False, None))
                await kube.evict("default", pod.name, pod.uid, 30)
                await kube.ask_json("PATCH", path("pods", "default", pod.name, "status"), body=ended, content_type=MERGE_PATCH)
                await kube.delete_pod("default", pod.name, pod.uid, 0)
            if isinstance(signal, Change) and isinstance(signal.shape, PodShape):
                shape = signal.shape
                seen.append((signal.type, shape.deletion_at is not None, shape.finished, shape.exit_code))
                if signal.type == "DELETED":
                    break
    # An eviction first writes its DisruptionTarget condition, and controllers may touch the pod too: only new steps count.
    assert [step for step in dict.fromkeys(seen) if step[1]] == [
        ("MODIFIED", True, False, None),
        ("MODIFIED", True, True, 143),
        ("DELETED", True, True, 143),
    ]


async def _until_failed(signals: AsyncIterator[Signal]) -> AsyncIterator[Signal]:
    async for signal in signals:
        yield signal
        if isinstance(signal, Failed):
            return


async def test_a_version_that_the_api_has_not_reached_is_noticed_and_refused(kube: Kube, node: NodeShape) -> None:
    future = str(int((await kube.list("nodes")).resource_version) + 10**9)
    async with asyncio.timeout(15), aclosing(follow(kube, "nodes", since=future, server_timeout=3)) as signals:
        told = [signal async for signal in _until_failed(signals)]
    assert not any(isinstance(signal, Listed | Change) for signal in told)
    assert "was seen before" in str(told[-1].error)  # type: ignore[union-attr]


async def test_a_quiet_watch_of_nodes_is_heard_before_it_ends(kube: Kube, node: NodeShape) -> None:
    """kubernetes-client/python#1729: a bookmark, two seconds before the server's own end, moves the version."""
    latest = int((await kube.list("nodes")).resource_version)
    await kube.set_label(node.name, node.uid, "contract-step", "1")
    heard = 0
    async with asyncio.timeout(20), aclosing(follow(kube, "nodes", fields="metadata.name=none", server_timeout=5)) as signals:
        async for signal in signals:
            assert not isinstance(signal, Failed)
            if isinstance(signal, Heard):
                heard += 1
                if heard >= 2 and int(signal.resource_version) > latest:
                    break


async def test_nonsense_is_refused_with_a_sentence(kube: Kube, node: NodeShape) -> None:
    with pytest.raises(Refused, match="Kubernetes says: "):
        await kube.set_label(node.name, node.uid, "no label at all!", "x")
    with pytest.raises(Refused):
        await kube.list("nodes", labels="a in (")
