"""The planner's page: a form in the address, nothing lost, and the truth where history is short."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from console.capacity.models import Drain, Pool, Reclaim
from console.clusters.models import Cluster, Machine
from tests.pages import world
from tests.workloads.test_page import text_of
from tests.workloads.world import a_workload, with_pods

GOLDEN = {"size": "3.5", "unit": "TB", "bandwidth": "159", "slower": "10.89", "step": "0", "window": "300", "nodes": "8"}


def ask(client: Client, cluster: object, **asked: str) -> tuple[int, str, str]:
    answer = client.get(f"/clusters/{cluster.pk}/planner", asked)  # type: ignore[attr-defined]
    page = answer.content.decode()
    return answer.status_code, page, text_of(page)


def test_the_golden_save_at_full_speed_and_on_a_bad_day(pool: Pool, vic: Client) -> None:
    status, page, text = ask(vic, world.a_cluster(pool), **GOLDEN)
    assert status == 200
    assert "22 s Fits At full speed" in text
    assert "240 s Tight 10.89 times slower" in text
    assert 'value="159"' in page
    _, _, late = ask(vic, world.a_cluster(pool, "other"), **{**GOLDEN, "step": "100"})
    assert "240 s Does not fit" in late
    assert "of the 200 s that a step of 100 s leaves of 300 s" in late


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"size": "3,5"}, "The size has a comma in it."),
        ({"size": "much"}, "The size is a number, such as 3.5."),
        ({"size": "-1"}, "The size is a number, such as 3.5."),
        ({"bandwidth": "0"}, "The bandwidth is between 0.001 and 1,000,000."),
        ({"window": "3600"}, "A reclaim gives at most 300 s, whatever the pod asks for."),
        ({"slower": "0.5"}, "How much slower is between 1 and 10,000."),
        ({"nodes": "1.5"}, "Nodes are whole."),
        ({"step": "1e3"}, "The step is a number, such as 3.5."),
    ],
)
def test_bad_input_gets_a_sentence_and_nothing_is_lost(pool: Pool, vic: Client, asked: dict[str, str], sentence: str) -> None:
    typed = {**GOLDEN, **asked}
    status, page, text = ask(vic, world.a_cluster(pool), **typed)
    assert status == 400
    assert sentence in text
    for value in typed.values():
        assert f'value="{value}"' in page or f"<option selected>{value}</option>" in page
    assert "What you typed is kept" in text


def taken(cluster: object, times: int, days: float, drill: bool = False) -> None:
    """One preemptible machine, there for so long and still, taken so many times."""
    now = timezone.now()
    node = world.a_node(cluster, f"n-{times}-{drill}")  # type: ignore[arg-type]
    Machine.objects.filter(pk=node.machine_id).update(first_ready_at=now - timedelta(days=days))
    reclaim = None
    if drill:
        reclaim = Reclaim.objects.create(cluster=cluster, asked_at=now, asked_by="ada", drill=True, body_hash="", answer={})
    for number in range(times):
        drain = world.a_drain(node, 0)
        Drain.objects.filter(pk=drain.pk).update(
            state=Drain.State.REMOVED, started_at=now - timedelta(hours=number + 1), reclaim=reclaim
        )


def test_an_interval_comes_from_the_clusters_own_history(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    Cluster.objects.filter(pk=cluster.pk).update(created_at=timezone.now() - timedelta(days=60))
    taken(cluster, times=10, days=80)  # of which 30 are looked back
    _, _, text = ask(vic, cluster, **{**GOLDEN, "size": "4.77", "slower": "1", "nodes": "3"})
    assert "10 preemptions of nodes in 720 node-hours" in text
    assert "One node is taken each 3 d on average, and any of 3 each 24 h" in text
    assert re.search(r"every 37 min", text)  # √(2 × 30 s × 24 h) = 2,277 s
    assert "J. W. Young" in text


def test_a_history_that_is_too_short_is_said_and_drills_do_not_count(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)  # two days old
    taken(cluster, times=5, days=1, drill=True)
    _, _, none = ask(vic, cluster, **GOLDEN)
    assert "No preemption yet to suggest an interval from" in none
    taken(cluster, times=2, days=1)
    _, page, few = ask(vic, cluster, **GOLDEN)
    assert "2 preemptions: too few to suggest an interval from" in few
    assert "every" not in re.sub(r"looks|everybody", "", few.split("How often to save")[1].split("At least")[0])
    assert "Young" not in page
    Cluster.objects.filter(pk=cluster.pk).update(created_at=timezone.now() - timedelta(hours=2))
    taken(cluster, times=3, days=1)
    assert "The history is too short to suggest an interval from" in ask(vic, cluster, **GOLDEN)[2]


def test_a_workload_fills_in_what_its_pods_say_and_the_address_wins(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    nodes = [world.a_node(cluster, f"gpu-preemptible-dp-{number}") for number in range(2)]
    job = a_workload(cluster)
    with_pods(job, nodes * 2, checkpoint_bytes=875_000_000_000, checkpoint_seconds=22.0, grace_seconds=120)
    _, page, text = ask(vic, cluster, workload=str(job.pk))
    for value in ("3.5", "159.091", "120", "2"):
        assert f'value="{value}"' in page
    assert "22 s Fits" in text
    _, page, _ = ask(vic, cluster, workload=str(job.pk), window="60", size="1")
    assert 'name="window" inputmode="decimal" autocomplete="off" value="60"' in page
    assert f'name="workload" value="{job.pk}"' in page
    silent = a_workload(cluster, "silent")
    with_pods(silent, nodes[:1])
    assert "silent does not say them" in ask(vic, cluster, workload=str(silent.pk))[2]
    assert ask(vic, cluster, workload="nonsense")[0] == 200
