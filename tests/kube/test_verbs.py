"""What we write: single keys, with preconditions, and never over a person's hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from console.kube import marks
from console.kube.client import Kube
from console.kube.errors import Conflict, Forbidden, Refused
from console.kube.shapes import Absent, Blocked, Evicted
from tests.kube.conftest import Clock
from tests.kube.faulty import Faulty, Reply
from tests.kube.objects import node, status

NODE = "/api/v1/nodes/gpu-dp-1"
POD = "/api/v1/namespaces/team/pods/train-0"
EVICTION = f"{POD}/eviction"
BUDGET = {
    "causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2 currently"}]
}


async def test_a_cordon_is_one_write_of_our_own_keys_and_names_the_uid(server: Faulty, kube: Kube) -> None:
    """kubernetes/kubernetes#128304, kubernetes/autoscaler PR#5415: no list or map of others is written back whole."""
    server.on("PATCH", NODE, Reply(node()))
    await kube.cordon("gpu-dp-1", "uid-1", cause="preempted", deadline=datetime(2026, 11, 30, 12, 5, tzinfo=UTC))
    [request] = server.requests
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert request.sent == {
        "metadata": {
            "uid": "uid-1",
            "annotations": {
                "halftide.io/drain-cause": "preempted",
                "halftide.io/drain-deadline": "2026-11-30T12:05:00.000000Z",
                "halftide.io/cordoned-by": "halftide",
            },
        },
        "spec": {"unschedulable": True},
    }


async def test_a_drain_of_a_node_that_a_person_closed_leaves_the_cordon_theirs(server: Faulty, kube: Kube) -> None:
    server.on("PATCH", NODE, Reply(node()))
    at = datetime(2026, 11, 30, 12, 5, tzinfo=UTC)
    await kube.cordon("gpu-dp-1", "uid-1", cause="repair", deadline=at, by=None, resource_version="7")
    meta = server.requests[0].sent["metadata"]
    assert isinstance(meta, dict)
    assert meta["resourceVersion"] == "7"
    assert marks.CORDONED_BY not in meta["annotations"]


async def test_a_patch_that_names_another_uid_is_a_conflict(server: Faulty, kube: Kube) -> None:
    """Kubernetes 1.36 answers 422 "field is immutable" for it."""
    details = {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]}
    server.on("PATCH", NODE, Reply(status(422, "invalid", details=details), 422))
    with pytest.raises(Conflict):
        await kube.set_label("gpu-dp-1", "another", "k", "v")


@pytest.mark.parametrize(
    ("by", "lifted"),
    [("halftide", True), ("person:ada", False), (None, False)],
    ids=["ours", "a person's, on our page", "kubectl's"],
)
async def test_only_a_cordon_with_our_mark_is_lifted(server: Faulty, kube: Kube, by: str | None, lifted: bool) -> None:
    notes = {marks.DRAIN_CAUSE: "repair"} | ({marks.CORDONED_BY: by} if by else {})
    server.on("GET", NODE, Reply(node(annotations=notes) | {"spec": {"unschedulable": True}}))
    server.on("PATCH", NODE, Reply(node()))
    assert await kube.uncordon("gpu-dp-1", "uid-gpu-dp-1") is lifted
    sent = server.requests[-1].sent
    meta = sent["metadata"]
    assert isinstance(meta, dict)
    assert meta["resourceVersion"] == "5"
    assert ("spec" in sent) is lifted
    assert (marks.CORDONED_BY in meta["annotations"]) is lifted
    assert meta["annotations"][marks.DRAIN_CAUSE] is None


async def test_an_uncordon_touches_no_other_node_of_that_name(server: Faulty, kube: Kube) -> None:
    server.on("GET", NODE, Reply(node(annotations={marks.CORDONED_BY: "halftide"})))
    with pytest.raises(Conflict):
        await kube.uncordon("gpu-dp-1", "uid-of-the-one-before")
    assert [r.method for r in server.requests] == ["GET"]


async def test_marks_come_off_a_node_only_as_it_was_seen_and_its_cordon_stays(server: Faulty, kube: Kube) -> None:
    server.on("PATCH", NODE, Reply(node()))
    await kube.unmark("gpu-dp-1", "u", "5")
    cleared = dict.fromkeys((marks.CORDONED_BY, marks.DRAIN_CAUSE, marks.DRAIN_DEADLINE))
    assert server.requests[0].sent == {"metadata": {"uid": "u", "resourceVersion": "5", "annotations": cleared}}


async def test_a_persons_cordon_says_who_and_their_uncordon_clears_every_mark(server: Faulty, kube: Kube) -> None:
    server.on("PATCH", NODE, Reply(node()))
    await kube.person_cordon("gpu-dp-1", "u", True, "ada")
    await kube.person_cordon("gpu-dp-1", "u", False, "ada")
    closed, opened = (request.sent for request in server.requests)
    assert closed == {"metadata": {"uid": "u", "annotations": {marks.CORDONED_BY: "person:ada"}}, "spec": {"unschedulable": True}}
    assert opened["spec"] == {"unschedulable": None}
    cleared = dict.fromkeys((marks.CORDONED_BY, marks.DRAIN_CAUSE, marks.DRAIN_DEADLINE))
    assert opened["metadata"] == {"uid": "u", "annotations": cleared}
    assert not marks.is_ours(marks.by_person("ada"))


async def test_an_eviction_carries_the_grace_and_the_uid(server: Faulty, kube: Kube) -> None:
    server.on("POST", EVICTION, Reply(status(201, "ok"), 201))
    assert await kube.evict("team", "train-0", "u1", 120) == Evicted()
    assert server.requests[0].sent["deleteOptions"] == {"gracePeriodSeconds": 120, "preconditions": {"uid": "u1"}}


async def test_a_budgets_429_is_no_throttling_and_names_the_budget(server: Faulty, kube: Kube, clock: Clock) -> None:
    """kubernetes/kubernetes#106286, #34938: retried in a tight loop or given up as throttled; neither."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    server.on("POST", EVICTION, Reply(status(429, message, reason="TooManyRequests", details=BUDGET), 429))
    assert await kube.evict("team", "train-0", "u1", 30) == Blocked(("web",), message)
    assert len(server.requests) == 1
    assert not clock.pauses


async def test_a_throttled_eviction_is_waited_for(server: Faulty, kube: Kube, clock: Clock) -> None:
    """kubernetes/kubernetes#36409: the same code, and it means slow down."""
    server.on("POST", EVICTION, Reply(status(429), 429, {"Retry-After": "2"}), Reply(status(201), 201))
    assert await kube.evict("team", "train-0", "u1", 30) == Evicted()
    assert clock.pauses == [2]


async def test_two_budgets_over_one_pod_block_it_without_a_name(server: Faulty, kube: Kube) -> None:
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    server.on("POST", EVICTION, Reply(status(500, message, reason="InternalError"), 500))
    assert await kube.evict("team", "train-0", "u1", 30) == Blocked((), message)


@pytest.mark.parametrize("code", [404, 409])
async def test_a_pod_that_is_gone_or_another_is_absent(server: Faulty, kube: Kube, code: int) -> None:
    server.on("POST", EVICTION, Reply(status(code), code))
    server.on("DELETE", POD, Reply(status(code), code))
    assert await kube.evict("team", "train-0", "u1", 30) == Absent()
    assert await kube.delete_pod("team", "train-0", "u1", 30) is False


async def test_a_deletion_carries_its_preconditions(server: Faulty, kube: Kube) -> None:
    server.on("DELETE", POD, Reply({}))
    server.on("DELETE", NODE, Reply({}), Reply(status(403), 403))
    assert await kube.delete_pod("team", "train-0", "u1", 0) is True
    assert server.requests[0].sent == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 0,
    }
    assert await kube.delete_node("gpu-dp-1", "u2") is True
    assert server.requests[1].sent == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u2"}}
    with pytest.raises(Forbidden):
        await kube.delete_node("gpu-dp-1", "u2")


async def test_an_event_said_twice_is_said_once(server: Faulty, kube: Kube) -> None:
    path = "/api/v1/namespaces/default/events"
    server.on("POST", path, Reply({}, 201), Reply(status(409, reason="AlreadyExists"), 409), Reply(status(422), 422))
    said = {"name": "drain-7", "node_name": "gpu-dp-1", "node_uid": "u", "reason": "TogetherPreempted", "type": "Warning"}
    at = datetime(2026, 11, 30, 12, 0, 0, 250000, tzinfo=UTC)
    await kube.emit_event(**said, message="reclaimed", at=at)
    await kube.emit_event(**said, message="reclaimed", at=at)
    with pytest.raises(Refused):
        await kube.emit_event(**said, message="×" * 2000, at=at)
    sent = server.requests[0].sent
    assert sent["metadata"] == {"name": "drain-7", "namespace": "default"}
    assert (sent["eventTime"], sent["lastTimestamp"]) == ("2026-11-30T12:00:00.250000Z", "2026-11-30T12:00:00Z")
    assert len(str(server.requests[2].sent["message"]).encode()) <= 1024
