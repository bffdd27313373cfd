"""A cluster that tells more than anybody reads: Normal Events of pods are counted into one row a minute, each once."""

from datetime import timedelta

import pytest
from django.db.models import Sum

from console.kube.shapes import EventShape
from console.sync import folding
from console.timeline.models import Entry
from tests.sync.world import NOON, Line, event, node, pod


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST", 10)


def of_pod(number: int, type_: str = "Normal") -> EventShape:
    return event(f"event-{number}", "Pulled", pod("train", "gpu-dp-1"), type=type_)


def told() -> int:
    """Events that the timeline accounts for."""
    counted = Entry.objects.filter(reason=folding.REASON).aggregate(sum=Sum("count"))["sum"] or 0
    return int(counted) + Entry.objects.filter(subject_kind="Pod").count()


@pytest.fixture
def busy(line: Line) -> Line:
    line.write(*line.seen(node("gpu-dp-1"), type_="ADDED"), *line.seen(pod("train", "gpu-dp-1"), type_="ADDED"))
    return line


def test_beyond_the_limit_normal_events_are_one_counted_row_a_minute_and_it_is_said(busy: Line) -> None:
    for number in range(30):
        busy.write(*busy.seen(of_pod(number), type_="ADDED"))
    row = Entry.objects.get(reason=folding.REASON)
    assert row.message.startswith(f"{row.count} Normal Events of pods, received from 12:00 to 12:01 UTC")
    assert "more than 10 entries" in row.message
    assert told() == 30
    busy.now = NOON + timedelta(minutes=1)
    busy.write(*busy.seen(of_pod(99), type_="ADDED"))
    assert Entry.objects.filter(source_uid="event-99").exists()


def test_warnings_and_what_nodes_tell_always_get_rows_of_their_own(busy: Line) -> None:
    busy.write(*busy.seen(*(of_pod(number) for number in range(30)), type_="ADDED"))
    busy.write(*busy.seen(of_pod(50, "Warning"), event("event-51", involved=node("gpu-dp-1"), type="Normal"), type_="ADDED"))
    assert set(Entry.objects.filter(source_uid__in=("event-50", "event-51")).values_list("count", flat=True)) == {1}
    assert Entry.objects.filter(source_uid="event-50").exists()


def test_a_list_that_brings_counted_events_again_counts_nothing_twice(busy: Line) -> None:
    """mustafaakin/kubernetes-event-exporter#197: after a restart everything that Kubernetes still lists comes once more."""
    everything = [of_pod(number) for number in range(30)]
    busy.write(*busy.seen(*everything, type_="ADDED"))
    before = told()
    busy.restart()
    busy.now = NOON + timedelta(minutes=5)
    busy.write(*busy.listed("events", everything))
    assert (before, told()) == (30, 30)
