"""The kubectl lines mean what they say, whatever the names are."""

import shlex

import pytest

from console.workloads import commands
from tests.workloads.made import ended, owner, pod, waiting

AT = "kubectl --context=aurora-train --namespace=team"


def test_logs_come_from_the_owner_where_kubectl_can_and_else_from_a_pod() -> None:
    assert commands.logs("aurora-train", owner(pod())) == f"{AT} logs job.batch/train --all-containers --tail=100"
    ray = owner(pod("tune-worker-1"), kind="RayJob", name="tune")
    assert commands.logs("aurora-train", ray) == f"{AT} logs pod/tune-worker-1 --all-containers --tail=100"
    assert commands.logs("aurora-train", owner(ended("train-0"))) == f"{AT} logs pod/train-0 --all-containers --tail=100"
    assert commands.logs("aurora-train", owner()) == ""
    assert commands.logs("aurora-train", owner(waiting())) == ""


def test_describe_leads_to_where_the_reason_stands() -> None:
    assert commands.describe("aurora-train", owner(pod())) == f"{AT} describe job.batch/train"
    assert commands.describe("aurora-train", owner(pod("a"), waiting("b"))) == f"{AT} describe pod/b"
    assert commands.describe("aurora-train", owner(pod(), kind="Pod", name="note")) == f"{AT} describe pod/note"
    assert commands.describe("aurora-train", owner(pod("w-1"), kind="RayJob", name="tune")) == f"{AT} describe pod/w-1"
    assert commands.describe("aurora-train", owner(kind="RayJob", name="tune")) == f"{AT} describe rayjob/tune"


def test_only_what_a_preemption_left_is_cleared() -> None:
    """kubernetes/kubernetes#113278: a way to clean up."""
    left = [ended(f"left-{n}", 143, preempted=True) for n in range(2)]
    assert commands.clear("aurora-train", owner(*left, ended("own", 2), pod("runs"))) == f"{AT} delete pod/left-0 pod/left-1"
    assert commands.clear("aurora-train", owner(ended("own", 2))) == ""


@pytest.mark.parametrize("hostile", ["a; rm -rf /", "$(reboot)", "it's", "--kubeconfig=/etc/x", "a b", "`id`", "\n", "<img>"])
def test_a_hostile_name_stays_one_argument(hostile: str) -> None:
    found = owner(pod(hostile), kind="Pod", name=hostile)
    for text in (commands.logs(hostile, found), commands.describe(hostile, found)):
        words = shlex.split(text)
        assert words[:3] == ["kubectl", f"--context={hostile}", "--namespace=team"]
        assert words[4] == f"pod/{hostile}"
