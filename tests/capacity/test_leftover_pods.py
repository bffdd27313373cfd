"""Pods that a preemption leaves behind as Failed: whose fault that was, and that they hold up nothing.

A node's shutdown, or the collection of what was on a node that is gone, calls pods Failed though their programs did nothing
wrong, and hundreds of them stay in the list (kubernetes/kubernetes#113278, flyteorg/flyteplugins PR#354).
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from console.capacity.drains.step import step
from console.capacity.drains.verdicts import summary
from console.capacity.drains.views import Evict, NodeView, PodView, Seen
from console.capacity.models import Drain, PodVerdict
from console.capacity.reclaims import previewing
from console.capacity.reclaims.budgets import Budgets
from console.clusters.models import Machine, Pod
from tests.capacity.drain_world import START, new
from tests.capacity.rows import NOON, a_cluster, a_pool, becomes_ready

Verdict = PodVerdict.Verdict
NODE = NodeView("uid-node", True, True, True, "preempted", START + timedelta(seconds=300))


def pod(name: str, **more: object) -> PodView:
    return replace(PodView(f"uid-{name}", "training", name, "Job", "pretrain", False, False, 60), **more)  # type: ignore[arg-type]


def told(*names: str):
    """A drain that has told these pods."""
    drain = replace(new(), state=Drain.State.TERMINATING, cordoned_at=START, announced_at=START)
    going = [pod(name, deletion_at=START + timedelta(seconds=61), deletion_grace=60) for name in names]
    return step(drain, Seen(NODE, tuple(going)), START + timedelta(seconds=1)).drain


def test_a_pod_that_others_call_failed_has_not_finished_and_one_whose_end_was_seen_has() -> None:
    later = START + timedelta(seconds=20)
    shut_down = pod("shut-down", finished=True, ended_at=later, exit_code=143)
    collected = pod("collected", finished=True)
    after = step(told("shut-down", "collected"), Seen(NODE, (shut_down, collected)), later).drain
    fates = {fate.name: (fate.verdict, fate.exit_code) for fate in after.fates}
    assert fates == {"shut-down": (Verdict.FINISHED, 143), "collected": (Verdict.UNKNOWN, None)}
    assert summary(after.fates) == "2 pods: 1 stopped, 1 unknown"
    assert after.state == Drain.State.DRAINED


def test_five_hundred_leftovers_are_neither_told_nor_counted_and_hold_up_nothing() -> None:
    left = tuple(pod(f"left-{number}", finished=True) for number in range(500))
    found = step(new(), Seen(NODE, (*left, pod("train"))), START)
    found = step(replace(found.drain, cordoned_at=START, announced_at=START), Seen(NODE, (*left, pod("train"))), START)
    assert [action.fate.name for action in found.actions if isinstance(action, Evict)] == ["train"]
    later = START + timedelta(seconds=30)
    ended = step(found.drain, Seen(NODE, left), later).drain
    assert (ended.state, ended.pods_left, len(ended.fates)) == (Drain.State.DRAINED, 0, 1)


@pytest.mark.django_db
def test_a_node_with_nothing_but_leftovers_goes_first_and_its_loss_costs_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "read_budgets", lambda cluster, names: Budgets())
    cluster = a_cluster(a_pool(), preemptible=16)
    for name in ("a-busy", "b-left"):
        machine = Machine.objects.create(
            cluster=cluster, region=cluster.region, gpu_type=cluster.gpu_type, compute_class="preemptible",
            node_name=name, gpus=8, asked_at=NOON, provider_id=name,
        )  # fmt: skip
        becomes_ready(machine, NOON)
    common = {"cluster": cluster, "namespace": "ml", "owner_kind": "Job", "owner_name": "train"}
    Pod.objects.create(uid="busy", name="busy", node_name="a-busy", phase="Running", **common)
    Pod.objects.bulk_create(
        Pod(uid=f"left-{number}", name=f"left-{number}", node_name="b-left", phase="Failed", finished=True, **common)
        for number in range(500)
    )
    found = previewing.of_gpus(cluster, 8, NOON + timedelta(minutes=5))
    assert ([node.name for node in found.nodes], found.pods) == (["b-left"], [])
