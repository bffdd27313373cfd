"""Kubernetes' Events as rows: one a uid, counted, never doubled, never lost."""

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from console.clusters.models import Machine
from console.kube.marks import REPORTING_COMPONENT
from console.kube.shapes import EventShape
from console.sync.ingest import MOST_ORPHANS, wanted
from console.timeline.models import Entry
from tests.sync.world import NOON, Line, event, node, not_ready, of_machine, pod


def rows() -> list[tuple[str, int]]:
    return list(Entry.objects.order_by("revision").values_list("reason", "count"))


def test_a_repeating_event_is_one_row_that_counts(line: Line) -> None:
    """Count 1 → 2 → 30 as MODIFIED, a restart, a relist, the end of its life (mustafaakin/kubernetes-event-exporter#197)."""
    line.write(*line.seen(event(count=1), type_="ADDED"))
    for count, seconds in ((2, 10), (30, 300)):
        line.now = NOON + timedelta(seconds=seconds)
        line.write(*line.seen(event(count=count, last_at=line.now, at=line.now)))
    line.restart()
    latest = event(count=30, last_at=line.now, at=line.now)
    line.write(*line.listed("events", [latest]))
    line.write(*line.seen(latest, type_="DELETED"))
    entry = Entry.objects.get()
    assert (entry.count, entry.first_at, entry.last_at, entry.at) == (30, NOON, NOON + timedelta(seconds=300), NOON)


def test_the_same_reason_with_a_new_uid_is_a_new_row(line: Line) -> None:
    line.write(*line.seen(event("event-1"), event("event-2"), type_="ADDED"))
    line.write(*line.seen(event("event-3"), type_="ADDED"))
    assert rows() == [("Rebooted", 1), ("Rebooted", 1), ("Rebooted", 1)]


def test_a_count_never_goes_back(line: Line) -> None:
    """A relist may be older than what the watch has told."""
    line.write(*line.seen(event(count=5), type_="ADDED"))
    line.restart()
    line.write(*line.listed("events", [event(count=3)]))
    assert rows() == [("Rebooted", 5)]


def test_one_batch_may_hold_several_tellings_of_one_event(line: Line) -> None:
    line.write(*line.listed("events", [event(count=1)]), *line.seen(event(count=2), event(count=7)))
    assert rows() == [("Rebooted", 7)]


def test_old_events_are_taken_in_once_at_the_first_connect(line: Line) -> None:
    old = [event(f"event-{n}", at=NOON - timedelta(minutes=n), last_at=NOON - timedelta(minutes=n)) for n in range(50)]
    for _ in range(2):
        line.write(*line.listed("events", old))
        line.restart()
    assert Entry.objects.count() == 50
    assert Entry.objects.get(source_uid="event-30").at == NOON - timedelta(minutes=30)


def test_an_event_of_a_node_names_the_node_by_its_real_uid(line: Line) -> None:
    """Kubelets write the node's name where the uid belongs."""
    line.write(*line.seen(node(), type_="ADDED"), *line.seen(event(), type_="ADDED"))
    entry = Entry.objects.get()
    assert (entry.subject_kind, entry.subject_name, entry.subject_uid) == ("Node", node().name, node().uid)
    assert (entry.severity, entry.actor_kind, entry.actor_name) == ("warning", "kubernetes", "kubelet")


def test_an_event_from_the_future_is_marked_and_held_to_now(line: Line) -> None:
    future = NOON + timedelta(hours=2)
    line.write(*line.seen(event(at=future, last_at=future, from_future=True), type_="ADDED"))
    entry = Entry.objects.get()
    assert (entry.at, entry.last_at, entry.data["future"]) == (NOON, NOON, future.isoformat())


@pytest.mark.parametrize(
    ("setting", "kind", "type_", "taken"),
    [
        ("none", "Node", "Normal", True),
        ("none", "Pod", "Warning", False),
        ("warnings", "Pod", "Warning", True),
        ("warnings", "Pod", "Normal", False),
        ("all", "Pod", "Normal", True),
        ("all", "Job", "Warning", False),
    ],
)
def test_which_events_are_taken(setting: str, kind: str, type_: str, taken: bool) -> None:
    assert wanted(event(involved_kind=kind, type=type_), setting) is taken


def of_pod(name: str, uid: str) -> EventShape:
    return event(uid, "BackOff", pod(name))


def test_warnings_of_pods_on_gpu_nodes_are_rows_and_others_are_not(line: Line) -> None:
    line.write(
        *line.seen(node("gpu-dp-1"), type_="ADDED"),
        *line.seen(pod("train", "gpu-dp-1"), pod("web", "cpu-1"), type_="ADDED"),
        *line.seen(of_pod("train", "event-1"), of_pod("web", "event-2"), of_pod("nobody", "event-3"), type_="ADDED"),
    )
    entry = Entry.objects.get()
    assert (entry.subject_name, entry.data["node"]) == ("team/train", "gpu-dp-1")


def test_an_event_that_comes_before_its_pod_waits_for_it(line: Line) -> None:
    line.write(*line.seen(node("gpu-dp-1"), type_="ADDED"))
    line.write(*line.seen(of_pod("train", "event-1"), type_="ADDED"))
    assert rows() == []
    line.now += timedelta(seconds=2)
    line.write(*line.seen(pod("train", "gpu-dp-1"), type_="ADDED"))
    assert rows() == [("BackOff", 1)]


def test_an_event_of_a_pod_that_goes_in_the_same_batch_is_kept(line: Line) -> None:
    line.write(*line.seen(node("gpu-dp-1"), type_="ADDED"), *line.seen(pod("train", "gpu-dp-1"), type_="ADDED"))
    line.write(*line.seen(pod("train", "gpu-dp-1", 21), type_="DELETED"), *line.seen(of_pod("train", "event-1"), type_="ADDED"))
    assert rows() == [("BackOff", 1)]


def test_that_a_pod_found_no_room_is_not_told_once_it_has_found_some(line: Line) -> None:
    line.write(*line.seen(node("gpu-dp-1"), type_="ADDED"), *line.seen(of_pod("train", "event-1"), type_="ADDED"))
    line.now += timedelta(seconds=9)
    line.write(*line.seen(pod("train", "gpu-dp-1", started_at=None, phase="Pending"), type_="ADDED"))
    line.write(*line.seen(pod("train", "gpu-dp-1", 21, started_at=line.now)))
    assert rows() == []
    assert line.room.orphans == {}
    line.write(*line.seen(event("event-2", "FailedMount", pod("train"), at=line.now, last_at=line.now), type_="ADDED"))
    assert rows() == [("FailedMount", 1)]


def test_events_that_wait_for_pods_do_not_pile_up(line: Line) -> None:
    for first in range(0, 2 * MOST_ORPHANS, 500):
        line.write(*line.seen(*(of_pod(f"pod-{n}", f"event-{n}") for n in range(first, first + 500)), type_="ADDED"))
    assert len(line.room.orphans) == MOST_ORPHANS
    line.now += timedelta(seconds=31)
    line.write(*line.seen(pod("other", "gpu-dp-1"), type_="ADDED"))
    assert line.room.orphans == {}


def test_our_own_event_is_no_row_but_proof_that_it_arrived(line: Line, machine: Machine) -> None:
    [announce] = line.write(*line.seen(of_machine(machine), type_="ADDED"))
    ours = event("event-9", "TogetherScaledUp", name=announce.name, reporting_component=REPORTING_COMPONENT)  # type: ignore[union-attr]
    line.now += timedelta(seconds=1)
    for _ in range(2):
        line.write(*line.seen(ours, type_="ADDED"))
        line.restart()
    entry = Entry.objects.get()
    assert (entry.source_uid, entry.seen_at) == ("event-9", line.now)


def test_an_event_that_only_claims_to_be_ours_is_no_row(line: Line) -> None:
    line.write(*line.seen(event(name="forged", reporting_component=REPORTING_COMPONENT), type_="ADDED"))
    assert rows() == []


@pytest.mark.parametrize("event_first", [True, False])
@pytest.mark.parametrize("batches", [1, 2])
def test_what_the_node_and_its_event_both_tell_is_one_row(line: Line, event_first: bool, batches: int) -> None:
    line.write(*line.seen(node(), type_="ADDED"))
    line.now += timedelta(seconds=60)
    sick = line.seen(not_ready(node(version=11), None, "NodeStatusUnknown", "stopped posting", line.now))
    told = line.seen(event("event-1", "NodeNotReady", type="Normal", at=line.now, last_at=line.now), type_="ADDED")
    first, second = (told, sick) if event_first else (sick, told)
    for batch in [[*first, *second]] if batches == 1 else [first, second]:
        line.write(*batch)
    entry = Entry.objects.get()
    assert (entry.reason, entry.source_uid, entry.data["condition"]) == ("NodeNotReady", "event-1", True)


def test_two_falls_of_a_node_are_two_rows(line: Line) -> None:
    line.write(*line.seen(node(), type_="ADDED"))
    for fall in (1, 2):
        line.now += timedelta(seconds=300)
        line.write(*line.seen(not_ready(node(version=10 + 2 * fall), False, "KubeletNotReady", "", line.now)))
        line.write(*line.seen(event(f"event-{fall}", "NodeNotReady", at=line.now, last_at=line.now), type_="ADDED"))
        line.now += timedelta(seconds=5)
        line.write(*line.seen(node(version=11 + 2 * fall, ready_since=line.now)))
    assert [reason for reason, _ in rows()] == ["NodeNotReady", "NodeReady"] * 2


def test_text_and_lengths_of_strangers_do_not_stop_the_line(line: Line) -> None:
    wild = event(
        str(uuid.uuid4()),
        "R" * 253,
        message="<script>alert(1)</script>",
        involved_kind="Node",
        involved_name="n" * 253,
        reporting_component="c" * 253,
    )
    line.write(*line.seen(wild, replace(wild, uid="event-2", reason=""), type_="ADDED"))
    assert [len(entry.reason) for entry in Entry.objects.order_by("revision")] == [128, len("Event")]
