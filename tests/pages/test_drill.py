"""A drill's report as a page: for everybody who may see the cluster, with strangers' text escaped."""

from datetime import timedelta
from uuid import uuid4

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.accounts.models import Role
from console.capacity.models import Drain, PodVerdict, Pool, Reclaim
from console.capacity.reclaims import drills
from console.clusters.models import Cluster, Machine
from tests.pages import world


def a_drill(cluster: Cluster, pods: int = 2, name: str = "train", nodes: int = 1) -> Reclaim:
    """Its nodes are gone after a minute and replaced after two."""
    now = timezone.now()
    row = Reclaim.objects.create(
        cluster=cluster,
        asked_at=now - timedelta(seconds=200),
        asked_by="olu",
        num_gpus=8 * nodes,
        drill=True,
        body_hash="",
        answer={"drains": [], "refused": []},
    )
    for number in range(nodes):
        drain = world.a_drain(world.a_node(cluster, f"old-{row.pk.hex[:4]}-{number}"), pods, name)
        gone = row.asked_at + timedelta(seconds=60)
        Drain.objects.filter(pk=drain.pk).update(
            reclaim=row,
            state=Drain.State.REMOVED,
            started_at=row.asked_at,
            deadline=row.asked_at + timedelta(seconds=300),
            cordoned_at=row.asked_at + timedelta(seconds=0.4),
            told_at=row.asked_at + timedelta(seconds=1),
            emptied_at=gone,
            removed_at=gone,
        )
        PodVerdict.objects.filter(drain=drain).update(
            told_at=row.asked_at + timedelta(seconds=1), ended_at=row.asked_at + timedelta(seconds=35), exit_code=0,
            verdict=PodVerdict.Verdict.FINISHED, last_checkpoint=row.asked_at - timedelta(seconds=85),
        )  # fmt: skip
        machine = world.a_node(cluster, f"new-{row.pk.hex[:4]}-{number}").machine
        Machine.objects.filter(pk=machine.pk).update(
            asked_at=row.asked_at + timedelta(seconds=2), first_ready_at=row.asked_at + timedelta(seconds=120)
        )
    return row


def address(row: Reclaim) -> str:
    return f"/clusters/{row.cluster_id}/drills/{row.pk}"


def test_a_viewer_reads_each_step_and_each_pod(pool: Pool, vic: Client) -> None:
    row = a_drill(world.a_cluster(pool))
    page = vic.get(address(row)).content.decode()
    for shown in ("started by olu", ">0.4 s<", ">1.0 s<", ">1:00<", ">2:00<", ">16<", "34 s of 5:00", "2 min", "finished"):
        assert shown in page, shown
    assert f"new-{row.pk.hex[:4]}-0" in page
    assert "This is the first drill of this cluster" in page
    assert "Goes on" in page


def test_it_stands_beside_the_drill_before(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    first = a_drill(cluster)
    Reclaim.objects.filter(pk=first.pk).update(asked_at=first.asked_at - timedelta(hours=1), finished_at=first.asked_at)
    page = vic.get(address(a_drill(cluster))).content.decode()
    assert "The drill before" in page


def test_the_entry_at_its_end_leads_to_it(pool: Pool, vic: Client) -> None:
    row = a_drill(world.a_cluster(pool, desired=8))
    drills.finish(timezone.now())
    timeline = vic.get(f"/clusters/{row.cluster_id}/timeline").content.decode()
    assert f'<a href="{address(row)}">Report</a>' in timeline
    page = vic.get(address(row)).content.decode()
    assert "over at" in page
    assert "Goes on" not in page


def test_what_is_no_drill_of_a_cluster_one_may_see_is_not_there(pool: Pool, vic: Client) -> None:
    cluster, other = world.a_cluster(pool), world.a_cluster(pool, "borealis-eval", "borealis")
    assert vic.get(address(a_drill(other))).status_code == 404
    row = a_drill(cluster)
    assert vic.get(f"/clusters/{cluster.pk}/drills/{uuid4()}").status_code == 404
    Reclaim.objects.update(drill=False)
    assert vic.get(address(row)).status_code == 404


def test_names_of_pods_are_text(pool: Pool, vic: Client) -> None:
    page = vic.get(address(a_drill(world.a_cluster(pool), name=world.HOSTILE))).content.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_the_reclaim_form_can_ask_for_a_drill(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "gpu-preemptible-dp-1")
    assert 'name="drill"' in ada.get(f"/clusters/{cluster.pk}").content.decode()
    answer = ada.post(f"/clusters/{cluster.pk}/reclaim", {"gpus": "8", "drill": "1"})
    assert answer.status_code == 302
    assert Reclaim.objects.get().drill
    assert Reclaim.objects.get().asked_by == "ada"


def test_it_asks_as_much_for_one_node_as_for_five(pool: Pool, vic: Client) -> None:
    small, large = (a_drill(world.a_cluster(pool, f"of-{nodes}"), nodes=nodes) for nodes in (1, 5))
    counts = []
    for row in (small, small, large):
        with CaptureQueriesContext(connection) as seen:
            assert vic.get(address(row)).status_code == 200
        counts.append(len(seen))
    assert counts[1] == counts[2]


def test_a_fleet_operator_of_another_project_reads_the_drill_they_may_start(pool: Pool) -> None:
    row = a_drill(world.a_cluster(pool))
    away = world.browser(world.a_person("sol", Role.VIEWER, "elsewhere", fleet=True))
    assert away.get(address(row)).status_code == 200
    assert away.get(f"/clusters/{row.cluster_id}").status_code == 404
    stranger = world.browser(world.a_person("kim", Role.VIEWER, "elsewhere"))
    assert stranger.get(address(row)).status_code == 404
