"""What clouds write on a node before they take it away starts a drain, once, and never of a node that is not ours to give."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from console.capacity.drains.changes import start_drain
from console.capacity.models import Automation, Drain, RefusedNotices
from console.capacity.reclaims import notices
from console.capacity.reclaims.notices import heed_waiting, notice_of, table
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.kube import marks
from console.kube.shapes import Condition, NodeShape, Taint
from console.timeline.changes import Change, change
from console.timeline.models import Entry
from tests.sync.world import NOON, Line, node, of_machine

SPOT = Taint("aws-node-termination-handler/spot-itn", "1234567890", "NoSchedule")
GKE = Taint("cloud.google.com/impending-node-termination", "", "NoSchedule")


def event_scheduled(message: str, status: str = "True") -> Condition:
    return Condition("VMEventScheduled", status, "VMEventScheduled", message, NOON)


@pytest.mark.parametrize(
    ("carries", "name"),
    [
        ({"taints": (SPOT,)}, "aws-spot"),
        ({"taints": (Taint("aws-node-termination-handler/asg-lifecycle-termination", "", "NoSchedule"),)}, "aws-asg"),
        ({"taints": (GKE,)}, "gke"),
        ({"conditions": (event_scheduled("Preempt Scheduled: Mon, 02 Nov 2026 19:01:45 GMT"),)}, "azure-event-preempt"),
        ({"conditions": (event_scheduled("Terminate Scheduled: Mon, 02 Nov 2026 19:01:45 GMT"),)}, "azure-event-terminate"),
        ({"conditions": (Condition("PreemptScheduled", "True", "", "", NOON),)}, "azure-preempt"),
        ({"conditions": (Condition("TerminateScheduled", "True", "", "", NOON),)}, "azure-terminate"),
        ({"taints": (Taint("cloudprovider.azure.microsoft.com/draining", "spot-eviction", "NoSchedule"),)}, "azure-draining"),
        ({"taints": (Taint("karpenter.sh/disrupted", "", "NoSchedule"),)}, "karpenter"),
        ({"taints": (Taint("karpenter.sh/disruption", "disrupting", "NoSchedule"),)}, "karpenter-beta"),
        ({"taints": (Taint("karpenter.sh/disrupted", "", "NoSchedule"), SPOT)}, "aws-spot"),  # the one that leaves less time
        # Machines that stay:
        ({"conditions": (event_scheduled("Freeze Scheduled: Mon, 02 Nov 2026 19:01:45 GMT"),)}, ""),
        ({"conditions": (event_scheduled("Reboot Scheduled: Mon, 02 Nov 2026 19:01:45 GMT"),)}, ""),
        ({"conditions": (event_scheduled("VM has no scheduled event", "False"),)}, ""),
        ({"conditions": (event_scheduled("Preempt Scheduled", "Unknown"),)}, ""),
        ({"taints": (Taint("aws-node-termination-handler/rebalance-recommendation", "", "NoSchedule"),)}, ""),
        ({"taints": (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)}, ""),
        ({"taints": (Taint(marks.STARTUP_TAINT, "pending", "NoSchedule"),)}, ""),
        ({"taints": (Taint("cloudprovider.azure.microsoft.com/draining", "other", "NoSchedule"),)}, ""),
    ],
)
def test_the_table_knows_what_ends_a_machine_from_what_only_warns(carries: dict[str, Any], name: str) -> None:
    assert notice_of(node(**carries)) == name


def test_each_line_of_the_table_has_a_name_of_its_own_and_one_sign() -> None:
    assert len({notice.name for notice in table()}) == len(table())
    for notice in table():
        assert bool(notice.taint) != bool(notice.condition)
        assert len(notice.name) <= 64


@pytest.fixture
def ours(line: Line, machine: Machine) -> Callable[..., NodeShape]:
    """The node of our machine, Ready and known; called with a version it is what Kubernetes shows next."""
    line.write(*line.seen(of_machine(machine, 10), type_="ADDED"))
    return lambda version, *taints: replace(of_machine(machine, version), taints=taints)


def test_a_notice_starts_a_drain_that_names_the_cloud_and_keeps_its_time(line: Line, ours: Callable[..., NodeShape]) -> None:
    line.now += timedelta(seconds=5)
    line.write(*line.seen(ours(11, SPOT)))
    drain = Drain.objects.get()
    assert (drain.cause, drain.why) == (Drain.Cause.PREEMPTED, "AWS takes this Spot instance back")
    assert drain.deadline == line.now + timedelta(seconds=120)
    assert drain.due_at == line.now
    entry = Entry.objects.get(reason="TogetherPreempted")
    assert entry.message.startswith("gpu-preemptible-dp-a goes back: AWS takes this Spot instance back, gone by ")
    assert line.nodes["gpu-preemptible-dp-a"].draining
    assert line.fresh().allocated_preemptible_gpus == 0


def test_a_notice_is_heeded_once_however_often_it_is_seen(line: Line, ours: Callable[..., NodeShape]) -> None:
    for version in (11, 12, 13):
        line.write(*line.seen(ours(version, SPOT)))
    line.restart()
    line.write(*line.listed("nodes", [ours(14, SPOT)], version=200))
    heed_waiting(line.now)
    assert Drain.objects.count() == 1
    assert line.reasons.count("TogetherPreempted") == 1
    assert not RefusedNotices.objects.exists()


def test_a_second_notice_only_moves_the_deadline_earlier(line: Line, ours: Callable[..., NodeShape]) -> None:
    line.write(*line.seen(ours(11, SPOT)))
    line.now += timedelta(seconds=10)
    line.write(*line.seen(ours(12, SPOT, GKE)))
    drain = Drain.objects.get()
    assert drain.deadline == line.now + timedelta(seconds=30)
    line.now += timedelta(seconds=10)
    line.write(*line.seen(ours(13, Taint("karpenter.sh/disrupted", "", "NoSchedule"))))
    drain.refresh_from_db()
    assert drain.deadline == line.now + timedelta(seconds=20)


def test_a_node_that_joins_with_a_notice_is_drained(line: Line, machine: Machine) -> None:
    line.write(*line.seen(replace(of_machine(machine, 10), taints=(GKE,)), type_="ADDED"))
    assert Drain.objects.get().node_uid == f"uid-{machine.node_name}"
    assert line.fresh().allocated_preemptible_gpus == 0


def standard(cluster: Cluster, machine: Machine) -> NodeShape:
    Machine.objects.update(compute_class=ComputeClass.STANDARD)
    machine.refresh_from_db()
    return of_machine(machine, 11, taints=(SPOT,))


def foreign(cluster: Cluster, machine: Machine) -> NodeShape:
    return node("somebody-elses", 11, taints=(SPOT,))


def observed(cluster: Cluster, machine: Machine) -> NodeShape:
    Cluster.objects.update(mode=Cluster.Mode.OBSERVE)
    return of_machine(machine, 11, taints=(SPOT,))


@pytest.mark.parametrize("kind", [standard, foreign, observed])
def test_a_node_that_is_not_ours_to_give_back_is_refused_once_and_counted(
    line: Line, machine: Machine, cluster: Cluster, kind: Callable[[Cluster, Machine], NodeShape]
) -> None:
    """aws/aws-node-termination-handler#272"""
    shape = kind(cluster, machine)
    line.write(*line.seen(shape, type_="ADDED"))
    line.write(*line.seen(replace(shape, resource_version="12")))
    heed_waiting(line.now)
    assert not Drain.objects.exists()
    assert line.reasons.count("NoticeRefused") == 1
    refused = Entry.objects.get(reason="NoticeRefused")
    assert f"{shape.name} has notice (AWS takes this Spot instance back), but " in refused.message
    counter = RefusedNotices.objects.get()
    assert (counter.source, counter.reason, counter.count) == ("node", kind.__name__, 1)


def test_a_refused_notice_holds_up_none_of_the_same_batch(line: Line, ours: Callable[..., NodeShape], cluster: Cluster) -> None:
    """aws/aws-node-termination-handler#272"""
    line.write(*line.seen(foreign(cluster, Machine.objects.get()), ours(12, SPOT)))
    assert Drain.objects.get().node_name == "gpu-preemptible-dp-a"
    assert {"NoticeRefused", "TogetherPreempted"} <= set(line.reasons)


def test_while_automation_is_stopped_a_notice_waits_and_is_heeded_when_it_runs(
    line: Line, ours: Callable[..., NodeShape]
) -> None:
    Automation.objects.update_or_create(pk=1, defaults={"on": False})
    line.write(*line.seen(ours(11, SPOT)))
    heed_waiting(line.now)
    assert not Drain.objects.exists()
    assert line.reasons[-1] == "NoticeWaits"
    Automation.objects.update(on=True)
    line.now += timedelta(seconds=60)
    heed_waiting(line.now)
    heed_waiting(line.now)
    assert Drain.objects.get().started_at == line.now
    assert line.nodes["gpu-preemptible-dp-a"].draining


def test_while_automation_is_stopped_a_preemption_that_runs_hears_that_its_machine_goes_sooner(
    line: Line, ours: Callable[..., NodeShape]
) -> None:
    """Its pods would else be given time that the cloud does not leave them."""
    line.write(*line.seen(ours(11, SPOT)))
    Automation.objects.update_or_create(pk=1, defaults={"on": False})
    line.now += timedelta(seconds=10)
    line.write(*line.seen(ours(12, SPOT, GKE)))
    drain = Drain.objects.get()
    assert (drain.deadline, drain.due_at) == (line.now + timedelta(seconds=30), line.now)
    assert "NoticeWaits" not in line.reasons


def test_a_notice_that_waited_makes_a_scale_down_a_preemption(line: Line, ours: Callable[..., NodeShape]) -> None:
    """A budget may hold a scale-down for as long as it likes; the cloud does not ask it."""
    with change(line.now) as made:
        [cluster] = made.lock(Cluster.objects.all())
        [machine] = made.lock(Machine.objects.all())
        [row] = made.lock(Node.objects.all())
        start_drain(made, cluster, machine, row, Drain.Cause.SCALED_DOWN, "target from 8 to 0", "", line.now)
    Automation.objects.update_or_create(pk=1, defaults={"on": False})
    line.now += timedelta(seconds=20)
    line.write(*line.seen(ours(11, SPOT)))
    assert Drain.objects.get().cause == Drain.Cause.SCALED_DOWN
    Automation.objects.update(on=True)
    line.now += timedelta(seconds=20)
    heed_waiting(line.now)
    drain = Drain.objects.get()
    assert (drain.cause, drain.deadline) == (Drain.Cause.PREEMPTED, line.now + timedelta(seconds=120))
    heed_waiting(line.now + timedelta(seconds=1))
    assert line.reasons.count("TogetherPreempted") == 1


@pytest.mark.parametrize("forbid", [{"mode": Cluster.Mode.OBSERVE}, {"on": False}], ids=["observed", "stopped"])
def test_what_is_forbidden_between_the_look_and_the_lock_is_not_begun(
    line: Line, ours: Callable[..., NodeShape], monkeypatch: pytest.MonkeyPatch, forbid: dict[str, object]
) -> None:
    Automation.objects.update_or_create(pk=1, defaults={"on": False})
    line.write(*line.seen(ours(11, SPOT)))
    Automation.objects.update(on=True)

    def forbidden_meanwhile(now: datetime) -> Change:
        (Automation if "on" in forbid else Cluster).objects.update(**forbid)
        return change(now)

    monkeypatch.setattr(notices, "change", forbidden_meanwhile)
    heed_waiting(line.now)
    assert not Drain.objects.exists()


def test_a_notice_that_was_taken_back_before_it_could_be_heeded_starts_nothing(
    line: Line, ours: Callable[..., NodeShape]
) -> None:
    Automation.objects.update_or_create(pk=1, defaults={"on": False})
    line.write(*line.seen(ours(11, SPOT)))
    line.write(*line.seen(ours(12)))
    Automation.objects.update(on=True)
    heed_waiting(line.now)
    assert not Drain.objects.exists()
