"""The Workloads tab: what a person sees who is woken at three."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from console.capacity.models import PodVerdict, Pool
from console.clusters.models import Pod, Workload
from console.workloads.tasks import clear
from tests.pages import world
from tests.pages.test_constant_queries import queries
from tests.pages.world import HOSTILE
from tests.workloads.world import a_verdict, a_workload, pod_of, with_pods

WAITS = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def names(page: str) -> list[str]:
    return re.findall(r'<tr id="workload-[^>]*data-name="([^"]*)"', page)


def test_each_owner_is_one_row_and_what_needs_a_person_comes_first(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    pre, std = world.a_node(cluster, "gpu-preemptible-dp-1"), world.a_node(cluster, "gpu-dp-1", preemptible=False)
    with_pods(a_workload(cluster, "calm"), [std, std])
    with_pods(a_workload(cluster, "chat", "Deployment"), [pre, std], wish="preferred")
    with_pods(a_workload(cluster, "unsaved"), [pre, pre])
    with_pods(a_workload(cluster, "queued"), [None], why=WAITS, waits_since=timezone.now())
    with_pods(a_workload(cluster, "looping"), [pre], why="CrashLoopBackOff", last_checkpoint=timezone.now())
    a_workload(cluster, "over", gone_at=timezone.now())  # it never met a GPU of ours
    Pod.objects.create(
        cluster=cluster, uid="d", namespace="ml", name="metrics-1", node_name=pre.name, phase="Running", daemonset=True
    )
    page = vic.get(f"/clusters/{cluster.pk}/workloads").content.decode()
    assert names(page) == ["looping", "queued", "unsaved", "calm", "chat"]
    text = text_of(page)
    assert "1 pod waits: no preemptible node has 4 GPUs free" in text
    assert f'title="{WAITS}"' in page
    assert "runs 120 min, no checkpoint seen" in text or "runs 2 h, no checkpoint seen" in text
    assert "unsaved time: unknown" in text
    assert "3 of 5 need a look" in text
    assert "<title>(3) Workloads of aurora-train" in page
    assert f"kubectl --context={cluster.name} --namespace=ml logs job.batch/unsaved --all-containers --tail=100" in page


def test_filters_stand_in_the_address_and_say_so_when_nothing_matches(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    with_pods(a_workload(cluster, "calm", namespace="one"), [node], last_checkpoint=timezone.now())
    with_pods(a_workload(cluster, "queued", namespace="two"), [None], why=WAITS)

    def shown(**asked: str) -> list[str]:
        return names(vic.get(f"/clusters/{cluster.pk}/workloads", asked).content.decode())

    assert shown(namespace="one") == ["calm"]
    assert shown(q="QUEU") == ["queued"]
    assert shown(q="job") == ["queued", "calm"]
    assert shown(show="trouble") == ["queued"]
    assert shown(namespace="one", show="trouble") == []
    nothing = vic.get(f"/clusters/{cluster.pk}/workloads", {"q": "nowhere"}).content.decode()
    assert "Nothing matches this filter" in nothing
    assert 'value="nowhere"' in nothing


def test_an_empty_cluster_says_how_to_begin(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    page = vic.get(f"/clusters/{cluster.pk}/workloads").content.decode()
    assert "Nothing runs here yet" in page
    assert "operator: NotIn" in page
    assert "nvidia.com/gpu: 8" in page
    assert f"kubectl --context={cluster.name} apply -f job.yaml" in page


def test_the_page_asks_as_much_for_one_owner_as_for_a_thousand(pool: Pool, ada: Client) -> None:
    small, large = world.a_cluster(pool, "small"), world.a_cluster(pool, "large")
    for cluster, number in ((small, 1), (large, 1000)):
        node = world.a_node(cluster, "gpu-preemptible-dp-1")
        rows = [
            Workload(cluster=cluster, namespace="ml", kind="Job", name=f"j-{n:04}", first_seen_at=timezone.now())
            for n in range(number)
        ]
        Workload.objects.bulk_create(rows)
        Pod.objects.bulk_create(pod_of(row, node if n % 3 else None, n) for row in rows for n in range(2))
        a_verdict(world.a_drain(node, 0), rows[0])
    for tab in ("workloads", "planner"):
        assert queries(ada, f"/clusters/{large.pk}/{tab}") == queries(ada, f"/clusters/{small.pk}/{tab}")
    first = ada.get(f"/clusters/{large.pk}/workloads").content.decode()
    last = ada.get(f"/clusters/{large.pk}/workloads", {"page": "9"}).content.decode()
    assert len(names(first)) == len(names(last)) == 100
    assert not set(names(first)) & set(names(last))
    assert ada.get(f"/clusters/{large.pk}/workloads", {"page": "10²"}).status_code == 200


def test_a_preempted_pod_is_said_to_be_preempted_and_nobody_is_blamed(pool: Pool, vic: Client) -> None:
    """kubernetes/kubernetes#113278, flyteorg/flyteplugins PR#354: what a node's end leaves as Failed is no user's failure."""
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    job, note = a_workload(cluster, "train"), a_workload(cluster, "notebook", "Pod", gone_at=timezone.now())
    [left] = with_pods(job, [node], finished=True, phase="Failed", exit_code=143)
    drain = world.a_drain(node, 0)
    a_verdict(drain, job, left.name, exit_code=143, pod_uid=left.uid)
    a_verdict(drain, note, verdict=PodVerdict.Verdict.KILLED)
    page = text_of(vic.get(f"/clusters/{cluster.pk}/workloads").content.decode())
    assert "Ended by a preemption, not by itself. None has come back yet" in page
    assert "Taken with its node. Nothing starts it again" in page
    assert "1 killed at the deadline 1 preemption in 24 h" in page
    assert "failed, exit 143" not in page
    one = vic.get(f"/clusters/{cluster.pk}/workloads/{job.pk}").content.decode()
    assert "Failed by a preemption" in one
    assert f"delete pod/{left.name}" in one


def test_a_workload_by_itself_has_its_pods_verdicts_and_entries(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    job, other = a_workload(cluster, "train"), a_workload(cluster, "other")
    [mine] = with_pods(job, [node])
    [theirs] = with_pods(other, [node])
    drain = world.a_drain(node, 0)
    a_verdict(drain, job, mine.name, pod_uid=mine.uid, asked_grace=3600, given_grace=300)
    world.an_entry(cluster, "its own trouble", subject_kind="Pod", subject_uid=mine.uid)
    world.an_entry(cluster, "another's trouble", subject_kind="Pod", subject_uid=theirs.uid)
    world.an_entry(cluster, "the drain it was in", drain_id=drain.pk)
    world.an_entry(cluster, "long ago", subject_kind="Pod", subject_uid=mine.uid, at=timezone.now() - timedelta(days=2))
    page = text_of(vic.get(f"/clusters/{cluster.pk}/workloads/{job.pk}").content.decode())
    for said in (mine.name, "gpu-preemptible-dp-1", "its own trouble", "the drain it was in", "300 s of 3600"):
        assert said in page
    assert "another's trouble" not in page
    assert "long ago" not in page


def test_another_projects_workload_is_not_there(pool: Pool, vic: Client) -> None:
    theirs = world.a_cluster(pool, "theirs", project="borealis")
    ours = world.a_cluster(pool)
    job = a_workload(theirs, "secret")
    with_pods(job, [world.a_node(theirs, "n")])
    assert vic.get(f"/clusters/{theirs.pk}/workloads").status_code == 404
    assert vic.get(f"/clusters/{theirs.pk}/workloads/{job.pk}").status_code == 404
    assert vic.get(f"/clusters/{ours.pk}/workloads/{job.pk}").status_code == 404


def test_hostile_names_are_text_and_stay_one_argument(pool: Pool, vic: Client) -> None:
    """dkron-io/dkron#921."""
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, HOSTILE)
    job = a_workload(cluster, HOSTILE, kind=HOSTILE[:63], namespace=HOSTILE[:63])
    with_pods(job, [node], why=HOSTILE)
    for path in (
        f"/clusters/{cluster.pk}/workloads",
        f"/clusters/{cluster.pk}/workloads/{job.pk}",
        f"/clusters/{cluster.pk}/planner",
    ):
        page = vic.get(path, {"q": ""}).content.decode()
        assert "<img src=x" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.mark.parametrize("age_hours", [1, 25])
def test_what_is_gone_for_a_day_is_cleared_away_and_from_open_pages(pool: Pool, age_hours: int) -> None:
    cluster = world.a_cluster(pool)
    job = a_workload(cluster, gone_at=timezone.now() - timedelta(hours=age_hours))
    here = a_workload(cluster, "here")
    clear()
    assert Workload.objects.filter(pk=here.pk).exists()
    assert Workload.objects.filter(pk=job.pk).exists() == (age_hours < 24)
