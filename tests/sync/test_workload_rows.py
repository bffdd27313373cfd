"""Workloads as rows: one for each owner, numbered with its pods, and said to be gone when the last one is."""

from datetime import timedelta

from console.clusters.models import Pod, Workload
from tests.sync.world import NOON, Line, pod


def names(line: Line) -> set[tuple[str, str, str]]:
    return set(Workload.objects.filter(cluster=line.cluster).values_list("namespace", "kind", "name"))


def test_one_row_for_each_owner_and_none_for_what_belongs_to_the_node(line: Line) -> None:
    line.write(
        *line.listed(
            "pods",
            [
                pod("train-0"),
                pod("train-1"),
                pod("chat-x", owner_kind="Deployment", owner_name="chat"),
                pod("notebook", owner_kind="", owner_name=""),
                pod("metrics", owner_kind="DaemonSet", owner_name="metrics", daemonset=True),
                pod("kube-proxy", owner_kind="Node", owner_name="gpu", mirror=True),
            ],
        )
    )
    assert names(line) == {("team", "Job", "train"), ("team", "Deployment", "chat"), ("team", "Pod", "notebook")}
    assert set(Pod.objects.filter(workload=None).values_list("name", flat=True)) == {"metrics", "kube-proxy"}


def test_each_change_of_a_pod_numbers_its_workload_and_no_other(line: Line) -> None:
    line.write(*line.listed("pods", [pod("train-0"), pod("other-0", owner_name="other")]))
    before = dict(Workload.objects.values_list("name", "revision"))
    line.write(*line.seen(pod("train-0", version=101, last_checkpoint=NOON)))
    after = dict(Workload.objects.values_list("name", "revision"))
    assert after["train"] > before["train"]
    assert after["other"] == before["other"]
    line.write(*line.seen(pod("train-0", version=102, last_checkpoint=NOON)))  # a heartbeat
    assert dict(Workload.objects.values_list("name", "revision")) == after


def test_a_workload_is_gone_with_its_last_pod_and_back_with_the_next(line: Line) -> None:
    line.write(*line.listed("pods", [pod("train-0"), pod("train-1")]))
    first = Workload.objects.get()
    line.now += timedelta(minutes=1)
    line.write(*line.seen(pod("train-0", version=101), type_="DELETED"))
    assert Workload.objects.get().gone_at is None
    line.now += timedelta(minutes=1)
    line.write(*line.listed("pods", [], version=200))
    gone = Workload.objects.get()
    assert gone.gone_at == line.now
    assert gone.revision > first.revision
    line.write(*line.seen(pod("train-2", version=201), type_="ADDED"))
    back = Workload.objects.get()
    assert (back.pk, back.gone_at, back.first_seen_at) == (first.pk, None, NOON)


def test_a_pod_that_goes_while_its_replacement_comes_leaves_the_workload_here(line: Line) -> None:
    line.write(*line.listed("pods", [pod("train-0")]))
    line.write(*line.seen(pod("train-0", version=101), type_="DELETED"), *line.seen(pod("train-1", version=102), type_="ADDED"))
    assert Workload.objects.get().gone_at is None


def test_a_whole_life_in_one_batch_leaves_no_workload_behind(line: Line) -> None:
    line.write(*line.seen(pod(version=20), type_="ADDED"), *line.seen(pod(version=21), type_="DELETED"))
    assert not Workload.objects.exists()
