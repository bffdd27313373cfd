"""Nodes become rows of the machines they are, with times that are written once, and nothing stays that is gone."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from console.capacity.models import PoolWake
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.kube import marks
from console.kube.shapes import Taint
from console.sync.errands import Announce, LastProof, Relabel
from console.timeline.models import Entry, Tombstone
from tests.sync.world import NOON, Line, node, not_ready, of_machine


def test_a_machine_is_told_as_booting_and_then_once_as_arrived(line: Line, machine: Machine) -> None:
    booting = not_ready(of_machine(machine, 10), False, "KubeletNotReady", "cni", None)
    assert line.write(*line.seen(booting, type_="ADDED")) == []
    line.now += timedelta(seconds=20)
    [errand] = line.write(*line.seen(of_machine(machine, 11, ready_since=line.now)))
    assert line.reasons == ["NodeBooting", "TogetherScaledUp"]
    arrived = Entry.objects.get(reason="TogetherScaledUp")
    assert arrived.message == "gpu-preemptible-dp-a Ready 4:08 after it was asked for"
    assert (arrived.subject_name, arrived.subject_uid) == ("gpu-preemptible-dp-a", "uid-gpu-preemptible-dp-a")
    assert isinstance(errand, Announce)
    assert errand.name == arrived.own_event
    machine.refresh_from_db()
    assert (machine.state, machine.first_ready_at) == (Machine.State.JOINED, line.now)
    assert machine.joined_at == NOON - timedelta(seconds=30)
    assert line.fresh().allocated_preemptible_gpus == 8


def test_a_machine_arrives_once_however_often_it_is_looked_at(line: Line, machine: Machine) -> None:
    for _ in range(3):
        line.write(*line.listed("nodes", [of_machine(machine)]))
        line.restart()
    assert line.reasons == ["TogetherScaledUp"]
    assert Node.objects.get().machine == machine


def test_the_class_is_the_machines_and_a_label_changed_by_hand_changes_nothing(line: Line, machine: Machine) -> None:
    line.write(*line.seen(of_machine(machine, 10), type_="ADDED"))
    stripped = replace(of_machine(machine, 11), labels={marks.MACHINE_LABEL: str(machine.pk)})
    assert line.write(*line.seen(stripped)) == [Relabel(machine.node_name, f"uid-{machine.node_name}", True)]
    assert line.nodes[machine.node_name].compute_class == ComputeClass.PREEMPTIBLE
    assert line.fresh().allocated_preemptible_gpus == 8
    assert line.reasons[-1] == "ClassLabelRestored"


def test_where_we_only_observe_nothing_is_to_be_written_to_the_cluster(line: Line, machine: Machine, cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(mode=Cluster.Mode.OBSERVE)
    assert line.write(*line.seen(of_machine(machine, 10), type_="ADDED")) == []
    assert line.write(*line.seen(replace(of_machine(machine, 11), labels={marks.MACHINE_LABEL: str(machine.pk)}))) == []
    assert line.reasons == ["TogetherScaledUp"]


def test_a_machine_label_on_another_name_makes_no_machine(line: Line, machine: Machine) -> None:
    line.write(*line.seen(replace(of_machine(machine), name="stranger", uid="uid-stranger"), type_="ADDED"))
    assert line.nodes["stranger"].machine is None
    machine.refresh_from_db()
    assert machine.joined_at is None


def test_a_foreign_node_counts_by_its_label_and_makes_no_noise(line: Line) -> None:
    foreign = node("bare-metal-1", labels={marks.CLASS_LABEL: marks.PREEMPTIBLE})
    line.write(*line.listed("nodes", [foreign, node("bare-metal-2"), node("control-plane", gpus=0)]))
    assert {name: row.compute_class for name, row in line.nodes.items()} == {
        "bare-metal-1": "preemptible",
        "bare-metal-2": "standard",
    }
    assert (line.fresh().allocated_preemptible_gpus, line.cluster.allocated_standard_gpus) == (8, 8)
    assert line.reasons == []


def test_a_startup_taint_holds_a_node_back_from_allocated(line: Line) -> None:
    line.write(*line.seen(node(taints=(Taint(marks.STARTUP_TAINT, "pending", "NoSchedule"),)), type_="ADDED"))
    assert line.fresh().allocated_standard_gpus == 0
    line.write(*line.seen(node(version=11)))
    assert line.fresh().allocated_standard_gpus == 8


def test_a_node_that_went_while_nobody_looked_is_removed_by_the_list(line: Line, machine: Machine) -> None:
    """No ghost, allocated right, the machine's proof of life ends with the last complete picture (lensapp/lens#2375)."""
    line.write(*line.listed("nodes", [of_machine(machine), node("gpu-dp-1")]))
    proved = line.now
    line.restart()
    line.now += timedelta(minutes=3)
    line.write(*line.listed("nodes", [node("gpu-dp-1")], version=200))
    assert list(line.nodes) == ["gpu-dp-1"]
    assert line.fresh().allocated_preemptible_gpus == 0
    assert Tombstone.objects.get().kind == "node"
    machine.refresh_from_db()
    assert machine.last_proof_at == proved
    lost = Entry.objects.get(reason="NodeLost")
    assert (lost.severity, lost.subject_name) == ("critical", machine.node_name)


def test_a_node_that_was_seen_to_go_was_alive_until_then(line: Line, machine: Machine) -> None:
    line.write(*line.listed("nodes", [of_machine(machine)]))
    line.now += timedelta(seconds=7)
    line.write(*line.seen(of_machine(machine, 200), type_="DELETED"))
    machine.refresh_from_db()
    assert machine.last_proof_at == line.now


def test_nobody_is_told_of_a_loss_that_was_asked_for(line: Line, machine: Machine) -> None:
    line.write(*line.seen(of_machine(machine), type_="ADDED"))
    Machine.objects.filter(pk=machine.pk).update(state=Machine.State.LEAVING)
    line.write(*line.seen(of_machine(machine, 12), type_="DELETED"))
    assert line.nodes == {}
    assert "NodeLost" not in line.reasons


def test_a_list_with_an_unreadable_object_removes_nothing_and_says_so(line: Line) -> None:
    line.write(*line.listed("nodes", [node("gpu-dp-1"), node("gpu-dp-2")]))
    line.write(*line.listed("nodes", [node("gpu-dp-1")], version=200, broken=("One of the nodes has no name or no uid.",)))
    assert set(line.nodes) == {"gpu-dp-1", "gpu-dp-2"}
    line.tick(11)
    assert line.fresh().unreachable_why.startswith("1 of the nodes cannot be read")


def test_a_new_watcher_refuses_a_picture_that_is_older_than_the_stored_one(line: Line) -> None:
    line.write(*line.listed("nodes", [node("gpu-dp-1"), node("gpu-dp-2")], version=100))
    line.restart()
    line.write(*line.listed("nodes", [node("gpu-dp-1")], version=90))
    assert set(line.nodes) == {"gpu-dp-1", "gpu-dp-2"}
    line.tick(11)
    assert "version 90 of nodes, but 100 was seen before" in line.fresh().unreachable_why


def test_a_person_may_say_that_the_older_picture_is_true(line: Line) -> None:
    line.write(*line.listed("nodes", [node("gpu-dp-1"), node("gpu-dp-2")], version=100))
    call_command("accept_older", line.cluster.name, skip_checks=True, stdout=StringIO())
    line.restart()
    line.write(*line.listed("nodes", [node("gpu-dp-1")], version=90))
    assert set(line.nodes) == {"gpu-dp-1"}
    with pytest.raises(CommandError, match="0 clusters are called nobody"):
        call_command("accept_older", "nobody", skip_checks=True)


def test_a_list_that_another_writer_overtook_changes_nothing(line: Line) -> None:
    """The relist lists at 100, the watch writes a deletion at 105, then the relist's list arrives: no ghost, no trouble."""
    late = line.listed("nodes", [node("gpu-dp-1"), node("gpu-dp-2", version=50)], version=100)
    line.write(*line.listed("nodes", [node("gpu-dp-1"), node("gpu-dp-2", version=50)], version=99))
    line.write(*line.seen(node("gpu-dp-2", version=105), type_="DELETED"))
    line.restart()
    line.write(*late)
    assert list(line.nodes) == ["gpu-dp-1"]


def test_a_change_that_a_written_list_covers_is_not_applied_again(line: Line) -> None:
    line.write(*line.listed("nodes", [node("gpu-dp-1", version=100)], version=120))
    line.restart()
    line.write(*line.seen(node("gpu-dp-1", version=110, ready=False)))
    assert line.nodes["gpu-dp-1"].ready is True


def test_a_name_that_returns_with_another_uid_is_another_node(line: Line) -> None:
    line.write(*line.seen(node("gpu-dp-1", version=10), type_="ADDED"))
    line.write(
        *line.seen(node("gpu-dp-1", version=11), type_="DELETED"),
        *line.seen(node("gpu-dp-1", version=12, uid="other"), type_="ADDED"),
    )
    assert Node.objects.get().uid == "other"


def test_a_node_that_came_and_went_within_one_batch_leaves_its_story_and_no_row(line: Line, machine: Machine) -> None:
    line.write(
        *line.seen(of_machine(machine, 10), type_="ADDED"),
        *line.seen(of_machine(machine, 11), type_="DELETED"),
    )
    assert not Node.objects.exists()
    assert line.reasons == ["TogetherScaledUp", "NodeLost"]
    assert line.fresh().allocated_preemptible_gpus == 0


@pytest.mark.parametrize("together", [True, False])
def test_a_flap_is_told_whole_whether_it_comes_in_one_batch_or_in_two(line: Line, together: bool) -> None:
    line.write(*line.seen(node(version=10), type_="ADDED"))
    sick = line.seen(not_ready(node(version=11), False, "KubeletNotReady", "pleg", NOON))
    line.now += timedelta(seconds=50)
    well = line.seen(node(version=12, ready_since=line.now))
    for batch in [[*sick, *well]] if together else [sick, well]:
        line.write(*batch)
    assert line.reasons == ["NodeNotReady", "NodeReady"]
    assert Entry.objects.get(reason="NodeNotReady").message == "Not Ready any more: gpu-preemptible-dp-a (KubeletNotReady: pleg)"
    assert Entry.objects.get(reason="NodeReady").message == "gpu-preemptible-dp-a is Ready again after 50 s"


def test_a_machine_that_falls_silent_is_asked_for_its_last_proof_of_life(line: Line, machine: Machine) -> None:
    line.write(*line.seen(of_machine(machine, 10), type_="ADDED"))
    line.now += timedelta(seconds=60)
    silent = not_ready(of_machine(machine, 11), None, "NodeStatusUnknown", "Kubelet stopped posting node status.", line.now)
    assert line.write(*line.seen(silent)) == [LastProof(machine.node_name, machine.pk)]
    machine.refresh_from_db()
    assert machine.last_proof_at == line.now
    line.now += timedelta(seconds=60)
    line.write(*line.seen(of_machine(machine, 12, ready_since=line.now)))
    machine.refresh_from_db()
    assert machine.last_proof_at is None


def test_somebodys_cordon_is_told_and_ours_is_not(line: Line) -> None:
    line.write(*line.seen(node("gpu-dp-1"), node("gpu-dp-2"), type_="ADDED"))
    ours = {marks.CORDONED_BY: marks.SYSTEM}
    line.write(
        *line.seen(
            node("gpu-dp-1", version=11, unschedulable=True),
            node("gpu-dp-2", version=11, unschedulable=True, annotations=ours),
        )
    )
    line.write(*line.seen(node("gpu-dp-1", version=12), node("gpu-dp-2", version=12)))
    told = Entry.objects.filter(reason__startswith="Node").order_by("revision").values_list("reason", "subject_name")
    assert list(told) == [("NodeCordoned", "gpu-dp-1"), ("NodeUncordoned", "gpu-dp-1")]


def test_an_uncordon_that_our_page_has_told_is_not_told_again(line: Line) -> None:
    line.write(*line.seen(node(unschedulable=True), type_="ADDED"))
    Entry.objects.create(
        stream_id=line.cluster.stream,
        at=NOON,
        recorded_at=NOON,
        first_at=NOON,
        last_at=NOON,
        reason="NodeUncordoned",
        actor_kind="person",
        subject_uid="uid-gpu-preemptible-dp-a",
    )
    line.write(*line.seen(node(version=11)))
    assert line.reasons == ["NodeUncordoned"]
    assert not line.nodes["gpu-preemptible-dp-a"].unschedulable


def test_a_node_that_changes_wakes_its_pool_and_a_list_without_news_does_not(line: Line) -> None:
    line.write(*line.listed("nodes", [node()]))
    line.write(*line.heard("pods"), *line.listed("pods", []))
    woken = PoolWake.objects.count()
    assert woken
    line.write(*line.listed("nodes", [node(version=11)], version=101))
    assert PoolWake.objects.count() == woken
    line.write(*line.seen(node(version=112, ready=False)))
    assert PoolWake.objects.count() == woken + 1
