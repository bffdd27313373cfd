"""What a reclaim would cost a workload, in sentences."""

from datetime import timedelta

import pytest

from console.workloads.facts import Owner
from console.workloads.fit import fit
from tests.workloads.made import NOON, STANDARD, ended, owner, pod, waiting


def says(found: Owner, window: int = 300) -> list[str]:
    return [finding.sentence for finding in fit(found, window, NOON)]


def ran(hours: float, **more: object) -> Owner:
    return owner(pod(started_at=NOON - timedelta(hours=hours), **more))


def test_work_that_never_saved_says_how_long_it_runs() -> None:
    assert says(ran(26)) == ["runs 26 h, no checkpoint seen"]
    assert says(ran(0.2)) == []


def test_a_save_is_believed_until_it_is_old() -> None:
    assert says(ran(26, last_checkpoint=NOON - timedelta(minutes=5))) == []
    assert says(ran(26, last_checkpoint=NOON - timedelta(hours=3))) == ["last checkpoint 3 h ago"]


def test_work_on_standard_nodes_and_work_that_serves_have_nothing_to_save() -> None:
    day = NOON - timedelta(hours=26)
    assert says(owner(pod(on=STANDARD, started_at=day))) == []
    assert says(owner(pod("a", started_at=day), pod("b", STANDARD, started_at=day), kind="Deployment")) == []


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_replicas_that_a_reclaim_could_take_all_at_once_are_said(kind: str) -> None:
    six = [pod(f"chat-{n}") for n in range(6)]
    assert says(owner(*six, kind=kind)) == ["all 6 replicas on preemptible nodes, none on standard"]
    assert says(owner(*six, pod("safe", STANDARD), kind=kind)) == []
    assert says(owner(six[0], kind=kind)) == ["its only replica is on a preemptible node"]


def test_a_grace_beyond_the_window_is_said_with_both_numbers() -> None:
    """aws/karpenter-provider-aws and others let people believe in an hour that a reclaim does not give."""
    assert says(ran(0.1, grace_seconds=3600)) == ["asks for 3,600 s, will get 300"]
    assert says(ran(0.1, grace_seconds=300)) == []
    assert says(ran(0.1, grace_seconds=60), window=30) == ["asks for 60 s, will get 30"]
    assert says(owner(pod(on=STANDARD, grace_seconds=3600))) == []
    assert says(owner(waiting(grace_seconds=3600))) == ["asks for 3,600 s, will get 300"]
    assert says(owner(waiting(grace_seconds=3600, wish="refused"))) == []


def test_who_never_asked_for_preemptible_is_told_to_be_there() -> None:
    """Preemptible nodes have no taint, so whoever says nothing may land there."""
    fresh = {"started_at": NOON}
    assert says(owner(pod(wish="", **fresh))) == ["not asked for preemptible, but is there"]
    assert says(owner(pod("a", wish="", **fresh), pod("b", STANDARD, wish=""))) == [
        "1 pod of 2: not asked for preemptible, but is there"
    ]
    assert says(owner(pod(wish="preferred", **fresh))) == []


def test_a_selector_for_a_class_that_no_node_carries_is_said_to_find_nothing() -> None:
    [sentence] = says(owner(waiting(wish="misaimed")))
    assert sentence == "its nodeSelector names a class that no node carries: standard nodes have no label"


def test_a_bare_pod_is_told_that_nothing_starts_it_again() -> None:
    assert says(owner(pod(started_at=NOON), kind="Pod")) == ["a bare pod: nothing starts it again after a reclaim"]


def test_what_a_preemption_left_as_failed_is_not_blamed_on_the_user() -> None:
    """kubernetes/kubernetes#113278, flyteorg/flyteplugins PR#354: leftovers of a node that went."""
    runs = pod("train-9", started_at=NOON)
    left = [ended("train-0", 143, preempted=True), ended("train-1", 137, disrupted="NodeShutdown")]
    [finding] = fit(owner(*left, runs), 300, NOON)
    assert finding.sentence == "2 pods are left as Failed by a preemption, not by their own fault"
    assert not finding.warns
    assert says(owner(ended("train-0", 2), runs)) == ["1 pod failed before, exit 2"]
