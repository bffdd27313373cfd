"""Trouble is told once, after a while, and taken back once; meanwhile everything stays as it was."""

from datetime import timedelta

from console.capacity.models import PoolWake
from console.clusters.models import KindState
from console.timeline.models import Entry
from tests.sync.world import Line, node, pod


def well(line: Line) -> None:
    for kind, shapes in (("nodes", [node("gpu-dp-1")]), ("pods", [pod(node_name="gpu-dp-1")]), ("events", [])):
        line.write(*line.listed(kind, shapes))  # type: ignore[arg-type]


def down(line: Line, seconds: int, why: str = "No connection.") -> None:
    since = line.now
    for _ in range(seconds):
        line.now += timedelta(seconds=1)
        line.write(*line.failed("nodes", why, since), *line.failed("pods", why, since))


def test_a_cut_of_a_few_seconds_is_daily_life(line: Line) -> None:
    well(line)
    down(line, 8)
    line.write(*line.heard("nodes"), *line.heard("pods"))
    line.tick(30)
    assert line.reasons == []
    assert line.fresh().unreachable_since is None


def test_an_outage_is_one_row_and_its_end_another(line: Line) -> None:
    well(line)
    began = line.now
    down(line, 300)
    assert line.reasons == ["KubernetesUnreachable"]
    assert (line.fresh().unreachable_since, line.cluster.unreachable_why) == (began, "No connection.")
    line.write(*line.heard("nodes"), *line.heard("pods"))
    assert line.reasons == ["KubernetesUnreachable", "KubernetesBack"]
    assert (line.fresh().unreachable_since, line.cluster.unreachable_why) == (None, "")
    assert "after 5:00" in Entry.objects.get(reason="KubernetesBack").message


def test_an_outage_over_several_watchers_is_still_one_row(line: Line) -> None:
    well(line)
    began = line.now
    for _ in range(3):
        down(line, 60)
        line.restart()
    well(line)
    assert line.reasons == ["KubernetesUnreachable", "KubernetesBack"]
    assert line.fresh().unreachable_since is None
    assert Entry.objects.get(reason="KubernetesUnreachable").data == {}
    assert began < line.now


def test_another_reason_moves_the_panel_and_adds_no_row(line: Line) -> None:
    well(line)
    down(line, 20)
    down(line, 20, "The API says no (403).")
    assert line.reasons == ["KubernetesUnreachable"]
    assert line.fresh().unreachable_why == "The API says no (403)."


def test_what_fails_removes_nothing_and_proves_nothing(line: Line) -> None:
    well(line)
    proved = line.now
    line.write(*line.heard("nodes"))
    down(line, 120, "nodes is forbidden")
    assert list(line.nodes) == ["gpu-dp-1"]
    assert (line.fresh().proved_to, line.cluster.allocated_standard_gpus) == (proved, 8)


def test_a_kind_that_decides_nothing_is_stale_by_itself(line: Line) -> None:
    """Events may be forbidden; capacity goes on, and the page can say what is missing."""
    well(line)
    since = line.now
    for _ in range(20):
        line.now += timedelta(seconds=1)
        line.write(*line.failed("events", "events is forbidden", since), *line.heard("nodes"), *line.heard("pods"))
    state = KindState.objects.get(kind="events")
    assert (state.error, state.error_since) == ("events is forbidden", since)
    assert line.fresh().unreachable_since is None
    assert line.reasons == ["EventsUnread"]
    assert "its nodes and pods are. events is forbidden" in Entry.objects.get().message
    line.write(*line.heard("events"))
    assert line.reasons == ["EventsUnread", "EventsBack"]


def test_in_an_outage_the_events_are_not_news_of_their_own(line: Line) -> None:
    well(line)
    since = line.now
    for _ in range(20):
        line.now += timedelta(seconds=1)
        line.write(*(item for kind in ("events", "nodes", "pods") for item in line.failed(kind, "No connection.", since)))  # type: ignore[arg-type]
    assert line.reasons == ["KubernetesUnreachable"]


def test_where_lists_are_answered_and_watches_refused_it_is_told_once(line: Line) -> None:
    well(line)
    since = line.now
    for _ in range(6):
        for _ in range(15):
            line.now += timedelta(seconds=1)
            line.write(*line.failed("nodes", "watch is forbidden", since))
        line.write(*line.listed("nodes", [node("gpu-dp-1")]))
    assert line.reasons == ["KubernetesUnreachable"]
    line.write(*line.heard("nodes"))
    assert line.reasons == ["KubernetesUnreachable", "KubernetesBack"]


def test_a_connection_that_is_answered_and_cut_again_and_again_is_not_two_rows_each_time(line: Line) -> None:
    well(line)
    for _ in range(12):
        down(line, 30)
        line.write(*line.heard("nodes"), *line.heard("pods"))
    assert line.reasons == ["KubernetesUnreachable", "KubernetesBack", "KubernetesUnreachable"]
    for _ in range(14):
        line.tick(1)
        line.write(*line.heard("nodes"), *line.heard("pods"))
    assert line.fresh().unreachable_since is not None
    line.tick(1)
    assert line.reasons[3:] == ["KubernetesBack"]
    assert line.fresh().unreachable_since is None


def test_a_cluster_that_never_answered_says_since_when(line: Line) -> None:
    began = line.now
    down(line, 30, "Name not known.")
    assert line.fresh().unreachable_since == began
    assert line.fresh().proved_to is None


def test_losing_and_finding_a_cluster_wakes_its_pool(line: Line) -> None:
    well(line)
    before = PoolWake.objects.count()
    down(line, 30)
    assert PoolWake.objects.count() == before + 1
    line.write(*line.heard("nodes"), *line.heard("pods"))
    assert PoolWake.objects.count() == before + 2
