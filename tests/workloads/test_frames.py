"""A workload's row comes through the socket whenever what it says may differ, as the page would draw it."""

from django.test import Client
from django.utils import timezone

from console.capacity.models import Pool
from console.clusters.models import Cluster, Workload
from console.timeline.changes import change
from console.timeline.models import Stream
from console.workloads import frames
from console.workloads.tasks import clear
from tests.pages import world
from tests.workloads.world import a_verdict, a_workload, with_pods


def head(cluster: Cluster) -> int:
    return Stream.objects.get(pk=cluster.stream).revision


def rows(cluster: Cluster, after: int) -> dict[str, str]:
    epoch = str(Stream.objects.get(pk=cluster.stream).epoch)
    frame = frames.compose(cluster.pk, after, head(cluster), epoch)
    assert frame is not None
    return {row.id: row.html for row in frame.rows if row.kind == "workload"}


def touch(cluster: Cluster, row: object) -> None:
    with change() as made:
        found = made.lock(type(row)._default_manager.filter(pk=row.pk))[0]  # type: ignore[attr-defined]
        made.save(cluster.stream, found)


def test_a_pods_change_sends_its_workload_and_no_other(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    mine, other = a_workload(cluster, "mine"), a_workload(cluster, "other")
    with_pods(mine, [node])
    with_pods(other, [node])
    before = head(cluster)
    touch(cluster, mine)
    sent = rows(cluster, before)
    assert set(sent) == {mine.pk.hex}
    assert sent[mine.pk.hex] in vic.get(f"/clusters/{cluster.pk}/workloads").content.decode()


def test_a_change_of_a_node_sends_what_runs_on_it(pool: Pool) -> None:
    cluster = world.a_cluster(pool)
    node, far = world.a_node(cluster, "a"), world.a_node(cluster, "b")
    mine, other = a_workload(cluster, "mine"), a_workload(cluster, "other")
    with_pods(mine, [node])
    with_pods(other, [far])
    before = head(cluster)
    touch(cluster, node)
    assert set(rows(cluster, before)) == {mine.pk.hex}


def test_a_verdict_sends_whom_it_is_about_also_a_bare_pod_that_is_gone(pool: Pool) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "a")
    note = a_workload(cluster, "notebook", "Pod", gone_at=timezone.now())
    drain = world.a_drain(node, 0)
    a_verdict(drain, note)
    before = head(cluster)
    touch(cluster, drain)
    assert "Nothing starts it again" in rows(cluster, before)[note.pk.hex]


def test_a_cleared_workload_leaves_open_pages(pool: Pool) -> None:
    cluster = world.a_cluster(pool)
    gone = a_workload(cluster, gone_at=timezone.now() - 2 * frames.queries.DAY)
    before = head(cluster)
    clear()
    frame = frames.compose(cluster.pk, before, head(cluster), "")
    assert frame is not None
    assert {"kind": "workload", "id": gone.pk.hex} in frame.gone
    assert not Workload.objects.exists()


def test_a_burst_over_many_workloads_stays_one_bounded_frame(pool: Pool) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "a")
    for number in range(frames.MOST + 20):
        with_pods(a_workload(cluster, f"job-{number}"), [node])
    before = head(cluster)
    touch(cluster, node)
    assert len(rows(cluster, before)) == frames.MOST
