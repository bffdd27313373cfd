"""Pods: rows only where something matters changed, and each end told once, with what was seen of it."""

from datetime import timedelta

import pytest

from console.capacity.services import PodEnd
from console.clusters.models import Pod
from console.sync import pods, writer
from tests.sync.world import NOON, Line, pod


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[PodEnd]:
    """What the drains are told."""
    told: list[PodEnd] = []
    monkeypatch.setattr(writer.capacity, "pod_ended", lambda made, cluster, ended: told.extend(ended))
    return told


def test_an_end_is_told_once_with_its_exit_code(line: Line, ends: list[PodEnd]) -> None:
    """Terminating, then finished and still in the list, then deleted: what a watch of a real eviction sees."""
    line.write(*line.seen(pod(version=20), type_="ADDED"))
    going = {"deletion_at": NOON + timedelta(seconds=120), "deletion_grace": 120}
    line.write(*line.seen(pod(version=21, **going)))
    assert Pod.objects.get().deleting_since == NOON
    line.now += timedelta(seconds=19)
    over = {"phase": "Failed", "finished": True, "ended_at": NOON + timedelta(seconds=18), "exit_code": 3, "ready": False}
    line.write(*line.seen(pod(version=22, **going, **over)))
    assert Pod.objects.get().finished
    line.write(*line.seen(pod(version=23, **going, **over), type_="DELETED"))
    assert ends == [PodEnd("uid-train-0", NOON + timedelta(seconds=18), 3, True, NOON, 120)]
    assert not Pod.objects.exists()


def test_a_pod_that_vanished_unseen_ended_unobserved(line: Line, ends: list[PodEnd]) -> None:
    """Two of three went while the watch was cut: the list removes them, and nothing is made up (lensapp/lens#2375)."""
    line.write(*line.listed("pods", [pod("one"), pod("two"), pod("done", finished=True, exit_code=0, ended_at=NOON)]))
    assert ends == [PodEnd("uid-done", NOON, 0, True)]
    line.restart()
    line.now += timedelta(minutes=1)
    line.write(*line.listed("pods", [pod("one")], version=200))
    assert ends[1:] == [PodEnd("uid-two", line.now, None, False)]
    assert list(Pod.objects.values_list("name", flat=True)) == ["one"]


def test_a_deletion_whose_last_state_has_no_exit_is_unobserved(line: Line, ends: list[PodEnd]) -> None:
    line.write(*line.seen(pod(version=20), type_="ADDED"))
    line.write(*line.seen(pod(version=21), type_="DELETED"))
    line.write(*line.seen(pod(version=21), type_="DELETED"))
    assert ends == [PodEnd("uid-train-0", NOON, None, False)]


def test_a_whole_life_in_one_batch_is_one_end_and_no_row(line: Line, ends: list[PodEnd]) -> None:
    over = {"finished": True, "phase": "Succeeded", "exit_code": 0, "ended_at": NOON}
    line.write(
        *line.seen(pod(version=20), type_="ADDED"),
        *line.seen(pod(version=21, **over)),
        *line.seen(pod(version=22, **over), type_="DELETED"),
    )
    assert ends == [PodEnd("uid-train-0", NOON, 0, True)]
    assert not Pod.objects.exists()


def test_a_pod_without_a_node_is_kept_where_it_waits_for_gpus(line: Line, ends: list[PodEnd]) -> None:
    """With the scheduler's words. One without GPUs is somebody else's. One that is deleted while it waits never ran."""
    line.write(*line.seen(pod("web", node_name="", phase="Pending", gpus=0), type_="ADDED"))
    assert not Pod.objects.exists()
    why = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    waiting = pod(node_name="", phase="Pending", started_at=None, why=why, waits_since=NOON, version=21)
    aimed = pod("aimed", node_name="", phase="Pending", gpus=0, wish="required", version=22)
    line.write(*line.seen(waiting, aimed, type_="ADDED"))
    assert set(Pod.objects.values_list("name", "why")) == {("train-0", why), ("aimed", "")}
    line.write(*line.seen(pod("aimed", node_name="", version=23), type_="DELETED"))
    line.write(*line.seen(pod(version=24)))
    assert list(Pod.objects.values_list("node_name", "why")) == [("gpu-preemptible-dp-a", "")]
    assert ends == []


def test_a_long_queue_is_kept_up_to_a_bound_and_who_gets_a_node_is_kept_all_the_same(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "MOST_WAITING", 3)
    queue = [pod(f"job-{n}", node_name="", phase="Pending") for n in range(5)]
    line.write(*line.listed("pods", queue[:2]))
    line.write(*line.listed("pods", queue, version=101))
    assert Pod.objects.count() == 3
    line.write(*line.seen(pod("job-4", version=102)))
    assert Pod.objects.count() == 4


def test_a_checkpoint_from_the_future_is_held_to_now(line: Line) -> None:
    line.write(*line.seen(pod(last_checkpoint=NOON + timedelta(days=1), started_at=NOON - timedelta(hours=1)), type_="ADDED"))
    assert Pod.objects.get().last_checkpoint == NOON


def test_the_row_keeps_its_id_through_every_change(line: Line) -> None:
    line.write(*line.seen(pod(version=20), type_="ADDED"))
    first = Pod.objects.get().pk
    line.restart()
    line.write(*line.listed("pods", [pod(version=25, phase="Failed")]))
    assert (Pod.objects.get().pk, Pod.objects.get().phase) == (first, "Failed")


def test_thirty_thousand_pods_are_written_in_pieces(line: Line) -> None:
    """A list is cut to fit transactions, and only its end removes anything."""
    many = line.listed("pods", [pod(f"pod-{n}") for n in range(3000)])
    for first in range(0, len(many), writer.MOST):
        line.write(*many[first : first + writer.MOST])
    assert Pod.objects.count() == 3000
    line.write(*line.listed("pods", [pod("pod-7")], version=300)[-1:])
    assert list(Pod.objects.values_list("name", flat=True)) == ["pod-7"]
