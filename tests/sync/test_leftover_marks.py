"""Only a cordon that carries our mark is ours, and kubectl leaves the mark behind: what it is worth then.

Tools that cordon and uncordon for themselves end up lifting what a person closed, or leave nodes closed for ever, because a bare
`unschedulable` does not say whose it is (NVIDIA/NVSentinel#1424, awesomenix/drainsafe#1)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from console.capacity.drains.changes import start_drain
from console.capacity.models import Drain
from console.clusters.models import Cluster, Machine
from console.kube import marks
from console.kube.shapes import NodeShape
from console.sync.errands import Unmark
from console.timeline.changes import change
from tests.sync.world import NOON, Line, of_machine

OURS = {marks.CORDONED_BY: marks.SYSTEM, marks.DRAIN_CAUSE: "scaled_down", marks.DRAIN_DEADLINE: "2026-11-12T12:05:00Z"}
ADAS = {marks.CORDONED_BY: marks.by_person("ada")}


def closed(machine: Machine, version: int, **notes: str) -> NodeShape:
    return of_machine(machine, version, unschedulable=True, annotations=notes)


def opened(machine: Machine, version: int, **notes: str) -> NodeShape:
    return of_machine(machine, version, annotations=notes)


def off(machine: Machine, version: int) -> Unmark:
    return Unmark(machine.node_name, f"uid-{machine.node_name}", str(version))


@pytest.fixture
def ready(line: Line, machine: Machine) -> Line:
    """Its node is there, open and without marks."""
    line.write(*line.seen(of_machine(machine, 10), type_="ADDED"))
    return line


@pytest.mark.parametrize("notes", [OURS, ADAS, {marks.DRAIN_CAUSE: "scaled_down"}], ids=["ours", "a person's", "a drain's only"])
def test_marks_on_a_node_that_a_person_has_opened_come_off(ready: Line, machine: Machine, notes: dict[str, str]) -> None:
    assert ready.write(*ready.seen(closed(machine, 11, **notes))) == []
    assert ready.write(*ready.seen(opened(machine, 12, **notes))) == [off(machine, 12)]
    assert ready.reasons[-1] == "NodeUncordoned"


def test_marks_that_could_not_be_taken_off_are_found_again_with_every_list(ready: Line, machine: Machine) -> None:
    ready.write(*ready.seen(closed(machine, 11, **OURS)), *ready.seen(opened(machine, 12, **OURS)))
    for version in (100, 200):
        ready.restart()  # as a relist does, which remembers nothing
        assert ready.write(*ready.listed("nodes", [opened(machine, version, **OURS)], version)) == [off(machine, version)]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_persons_cordon_under_a_mark_that_was_left_behind_is_a_persons(ready: Line, machine: Machine, at_once: bool) -> None:
    """However quick they are, and whether or not the mark was taken off before."""
    changes = [opened(machine, 12, **OURS), closed(machine, 13, **OURS)]
    ready.write(*ready.seen(closed(machine, 11, **OURS)))
    batches = [ready.seen(*changes)] if at_once else [ready.seen(one) for one in changes]
    todo = [errand for batch in batches for errand in ready.write(*batch)]
    assert todo[-1] == off(machine, 13)
    assert ready.nodes[machine.node_name].cordoned_by == ""
    assert ready.reasons[-2:] == ["NodeUncordoned", "NodeCordoned"]
    again = replace(closed(machine, 14, **OURS), gpus=7)  # before the mark is off
    assert ready.write(*ready.seen(again)) == [off(machine, 14)]
    assert ready.nodes[machine.node_name].cordoned_by == ""
    assert ready.write(*ready.seen(closed(machine, 15))) == []
    assert ready.nodes[machine.node_name].unschedulable


def test_the_cordon_of_a_drain_is_ours_whatever_was_left_on_the_node(ready: Line, machine: Machine, cluster: Cluster) -> None:
    ready.write(*ready.seen(closed(machine, 11, **OURS)), *ready.seen(opened(machine, 12, **OURS)))
    with change(NOON + timedelta(seconds=1)) as made:
        mine = made.lock(Cluster.objects.filter(pk=cluster.pk))[0]
        row = made.lock(Machine.objects.filter(pk=machine.pk))[0]
        start_drain(made, mine, row, ready.nodes[machine.node_name], Drain.Cause.SCALED_DOWN, "less is asked for", "", made.now)
    assert ready.write(*ready.seen(closed(machine, 13, **OURS))) == []
    assert ready.nodes[machine.node_name].cordoned_by == marks.SYSTEM


def test_where_we_only_observe_no_mark_is_taken_off(ready: Line, machine: Machine, cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(mode=Cluster.Mode.OBSERVE)
    assert ready.write(*ready.seen(closed(machine, 11, **OURS)), *ready.seen(opened(machine, 12, **OURS))) == []
