"""What matters of an object, what is news of a node, and which instant is believed."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.kube import marks
from console.kube.shapes import Taint
from console.sync.apply import NodeNews, NodeView, checkpoint, covered, node_news, node_view, older, pod_view, trusted, view
from tests.sync.world import NOON, event, node, not_ready, pod

views = st.builds(
    NodeView,
    name=st.just("gpu-dp-1"),
    gpus=st.integers(0, 8),
    ready=st.sampled_from([True, False, None]),
    why=st.sampled_from(["", "KubeletNotReady"]),
    unschedulable=st.booleans(),
    mark=st.sampled_from(["", marks.SYSTEM, marks.by_person("ada")]),
    startup_pending=st.booleans(),
    kubelet_version=st.just("v1.36.3"),
    internal_ip=st.just("127.1.0.1"),
    machine=st.one_of(st.none(), st.uuids()),
    preemptible=st.booleans(),
)
instants = st.integers(-(10**7), 10**7).map(lambda seconds: NOON + timedelta(seconds=seconds))


def test_a_heartbeat_is_no_news() -> None:
    """Only times and a message that counts seconds have changed (kubernetes/kubernetes#29772)."""
    sick = not_ready(node(), False, "KubeletNotReady", "PLEG was last seen active 3m0.5s ago", NOON)
    later = not_ready(node(version=11), False, "KubeletNotReady", "PLEG was last seen active 3m10.5s ago", NOON)
    assert view(sick) == view(later)
    assert view(node(version=11)) == view(node(version=12))


@pytest.mark.parametrize(
    "other",
    [
        node(ready=False),
        node(gpus=0),
        node(unschedulable=True),
        node(annotations={marks.CORDONED_BY: marks.SYSTEM}),
        node(labels={marks.CLASS_LABEL: marks.PREEMPTIBLE}),
        node(taints=(Taint(marks.STARTUP_TAINT, "pending", "NoSchedule"),)),
        node(kubelet_version="v1.37.0"),
    ],
)
def test_what_a_page_or_a_plan_reads_is_news(other: object) -> None:
    assert view(other) != view(node())  # type: ignore[arg-type]


def test_a_repeat_of_an_event_is_news_and_its_echo_is_not() -> None:
    assert view(event(count=2)) != view(event(count=1))
    assert view(event(count=2, resource_version="99")) == view(event(count=2))


def test_a_checkpoint_counts_by_the_minute() -> None:
    saved = pod(last_checkpoint=NOON + timedelta(seconds=3))
    assert pod_view(saved) == pod_view(replace(saved, last_checkpoint=NOON + timedelta(seconds=50)))
    assert pod_view(saved) != pod_view(replace(saved, last_checkpoint=NOON + timedelta(seconds=61)))


def test_deleting_since_is_when_it_was_asked_for_and_not_when_the_grace_ends() -> None:
    going = pod(deletion_at=NOON + timedelta(seconds=120), deletion_grace=120)
    assert pod_view(going).deleting_since == NOON


def test_a_strangers_lengths_fit_the_columns() -> None:
    huge = node(gpus=10**9, kubelet_version="v" * 253, internal_ip="x" * 253, annotations={marks.CORDONED_BY: "x" * 1024})
    seen = node_view(huge)
    assert (seen.gpus, len(seen.kubelet_version), len(seen.internal_ip), len(seen.mark)) == (32767, 32, 45, 200)
    assert node_view(node(labels={marks.MACHINE_LABEL: "no-uuid"})).machine is None


@given(views)
def test_equal_looks_are_no_news(seen: NodeView) -> None:
    assert node_news(seen, seen) == ()


@given(views, views)
def test_ready_and_not_ready_take_turns(before: NodeView, after: NodeView) -> None:
    """However a node changes, a row NodeReady follows only what was not Ready, and the other way round."""
    news = node_news(before, after)
    assert (NodeNews.READY in news) == (after.ready is True and before.ready is not True)
    assert (NodeNews.NOT_READY in news) == (before.ready is True and after.ready is not True)


OURS, KUBECTL, PAGE = marks.SYSTEM, "", marks.by_person("ada")


@pytest.mark.parametrize(
    ("was", "mark_before", "is_", "mark_after", "told"),
    [
        (False, "", True, OURS, ()),  # our drain closes it and says so itself
        (False, "", True, PAGE, ()),  # our page closes it and says so itself
        (False, "", True, KUBECTL, (NodeNews.CORDONED,)),
        (True, OURS, False, "", ()),  # we open it and take the mark away
        (True, PAGE, False, "", ()),
        (True, OURS, False, OURS, (NodeNews.UNCORDONED,)),  # kubectl uncordon leaves the mark
        (True, "", False, "", (NodeNews.UNCORDONED,)),
        (True, "", True, OURS, ()),  # a drain puts its mark on a person's cordon
    ],
)
def test_who_closed_and_who_opened_a_node(
    was: bool, mark_before: str, is_: bool, mark_after: str, told: tuple[NodeNews, ...]
) -> None:
    base = node_view(node())
    before = replace(base, unschedulable=was, mark=mark_before)
    assert node_news(before, replace(base, unschedulable=is_, mark=mark_after)) == told


@given(st.one_of(st.none(), instants), instants, st.floats(-30, 30))
def test_kubernetes_time_counts_only_where_it_is_earlier_by_a_minute_at_most(
    told: datetime | None, received: datetime, offset: float
) -> None:
    found = trusted(told, received, offset)
    assert received - timedelta(seconds=60) <= found <= received


def test_a_clock_that_is_known_to_be_ahead_is_corrected() -> None:
    assert trusted(NOON + timedelta(seconds=8), NOON, clock_offset=10) == NOON - timedelta(seconds=2)


@given(st.one_of(st.none(), instants), st.one_of(st.none(), instants), instants)
def test_a_checkpoint_lies_within_the_pods_life(told: datetime | None, started: datetime | None, now: datetime) -> None:
    found = checkpoint(told, started, now)
    assert (found is None) == (told is None)
    if found and started and started <= now:
        assert started <= found <= now


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_versions_that_are_integers_are_compared_as_such(one: int, other: int) -> None:
    assert older(str(one), str(other)) == (one < other)
    assert covered(str(one), str(other)) == (one <= other)


@pytest.mark.parametrize(("one", "other"), [("abc", "5"), ("5", "abc"), ("", "5"), ("5", "")])
def test_versions_that_are_no_integers_are_not_compared(one: str, other: str) -> None:
    assert not older(one, other)
    assert not covered(one, other)
