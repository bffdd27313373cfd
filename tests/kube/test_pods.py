"""What a pod tells of itself: whose it is, which class it asks for, why it does not run, for whose sake it ended."""

from datetime import UTC, datetime

import pytest

from console.kube.parse import shape
from console.kube.pods import owner, wish
from console.kube.shapes import PodShape

NOW = datetime(2026, 11, 12, 12, tzinfo=UTC)
CLASS = "together.ai/compute-class"


def pod(spec: dict | None = None, status: dict | None = None, **meta: object) -> PodShape:
    found = shape("pods", {"metadata": {"name": "p", "uid": "u", **meta}, "spec": spec or {}, "status": status or {}}, NOW)
    assert isinstance(found, PodShape)
    return found


def owned(kind: str, name: str, **labels: str) -> dict[str, object]:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}], "labels": labels}


OF_RAY_JOB = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "tune"}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (owned("Job", "train"), ("Job", "train")),
        (owned("ReplicaSet", "chat-7f9c", **{"pod-template-hash": "7f9c"}), ("Deployment", "chat")),
        (owned("ReplicaSet", "own-7f9c"), ("ReplicaSet", "own-7f9c")),  # nobody's Deployment: no hash
        (owned("ReplicaSet", "-7f9c", **{"pod-template-hash": "7f9c"}), ("ReplicaSet", "-7f9c")),
        (owned("RayCluster", "tune-x2b9d"), ("RayCluster", "tune-x2b9d")),
        (
            owned(
                "RayCluster", "tune-x2b9d", **{"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "tune"}
            ),
            ("RayJob", "tune"),
        ),
        ({"ownerReferences": [{"kind": "Job", "name": "not-its-controller"}]}, ("", "")),
        ({}, ("", "")),
    ],
)
def test_the_owner_is_what_a_person_started(meta: dict[str, object], expected: tuple[str, str]) -> None:
    assert owner(meta) == expected


def required(*rules: dict[str, object]) -> dict[str, object]:
    terms = [{"matchExpressions": [rule]} for rule in rules]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


def rule(operator: str, *values: str, key: str = CLASS) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


LIKES = {"weight": 1, "preference": {"matchExpressions": [rule("In", "preemptible")]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ""),
        ({"nodeSelector": {CLASS: "preemptible"}}, "required"),
        ({"nodeSelector": {CLASS: "standard"}}, "misaimed"),
        ({"nodeSelector": {"zone": "a"}}, ""),
        (required(rule("NotIn", "preemptible")), "refused"),
        (required(rule("DoesNotExist")), "refused"),
        (required(rule("NotIn", "something")), ""),
        (required(rule("In", "preemptible")), "required"),
        (required(rule("Exists")), "required"),
        (required(rule("In", "preemptible"), rule("In", "a", key="zone")), "preferred"),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [LIKES]}}}, "preferred"),
        ({"tolerations": [{"key": CLASS, "operator": "Exists"}]}, "preferred"),
        ({"affinity": "nonsense", "nodeSelector": 7}, ""),
    ],
)
def test_a_wish_is_read_from_selector_affinity_and_tolerations(spec: dict[str, object], expected: str) -> None:
    assert wish(spec) == expected


def test_a_pod_without_a_node_says_why_in_the_schedulers_words_and_since_when() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "lastTransitionTime": "2026-11-12T11:00:00Z",
    }
    found = pod(status={"phase": "Pending", "conditions": [condition]})
    assert (found.why, found.waits_since) == (condition["message"], datetime(2026, 11, 12, 11, tzinfo=UTC))
    gated = pod(status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]})
    assert gated.why == "SchedulingGated"


def test_a_crash_loop_is_said_without_its_back_off_that_counts_up() -> None:
    def looping(message: str) -> PodShape:
        waiting = {"reason": "CrashLoopBackOff", "message": message}
        return pod({"nodeName": "n"}, {"phase": "Running", "containerStatuses": [{"state": {"waiting": waiting}}]})

    assert looping("back-off 10s").why == looping("back-off 5m0s").why == "CrashLoopBackOff"
    creating = {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}
    assert pod({"nodeName": "n"}, creating).why == ""


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Failed", "reason": "NodeShutdown"}, "NodeShutdown"),
        ({"phase": "Failed", "reason": "Evicted"}, ""),  # over its own memory or disk
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
            "EvictionByEvictionAPI",
        ),
        ({"phase": "Failed"}, ""),
    ],
)
def test_an_end_for_the_nodes_sake_is_told_from_the_users_own(status: dict[str, object], expected: str) -> None:
    """kubernetes/kubernetes#113278: pods that a node's shutdown ended stay as Failed."""
    assert pod(status=status).disrupted == expected


@pytest.mark.parametrize(
    ("seconds", "size", "expected"),
    [
        ("22.04", "3500000000000", (22.0, 3_500_000_000_000)),
        ("-1", "0", (None, None)),
        ("nan", "inf", (None, None)),
        ("soon", "3.5 TB", (None, None)),
        ("1e9", "1e30", (86400.0, 10**15)),
        ("0.001", "0.5", (0.1, 1)),
        ("", "", (None, None)),
    ],
)
def test_a_tenants_word_on_its_saves_is_held_to_what_can_be(
    seconds: str, size: str, expected: tuple[float | None, int | None]
) -> None:
    notes = {"halftide.io/checkpoint-seconds": seconds, "halftide.io/checkpoint-bytes": size}
    found = pod(annotations=notes)
    assert (found.checkpoint_seconds, found.checkpoint_bytes) == expected
