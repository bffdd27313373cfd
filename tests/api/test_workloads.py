"""Workloads by the API: what the page knows, for programs, page by page."""

from datetime import timedelta

from django.utils import timezone

from console.capacity.models import Drain
from console.clusters.models import ComputeClass
from tests.api.world import Api, World, error, new_node
from tests.workloads.world import a_verdict, a_workload, with_pods

WAITS = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_a_workload_says_where_it_stands(world: World, operator: Api, path: str) -> None:
    node = new_node(world.train, "gpu-preemptible-dp-1", ComputeClass.PREEMPTIBLE)
    now = timezone.now()
    job = a_workload(world.train)
    with_pods(job, [node, None], why=WAITS, grace_seconds=3600)
    job.pods.exclude(node_name="").update(why="")
    drain = Drain.objects.create(
        cluster=world.train, machine=node.machine, node_name=node.name, cause="preempted", why="", started_at=now, deadline=now
    )
    a_verdict(drain, job)
    [found] = operator.get(f"{path}/workloads").json()["workloads"]
    assert (found["kind"], found["name"], found["state"], found["needs_attention"]) == ("Job", "train", "waiting", True)
    assert found["message"] == "1 of 2 pods waits: no preemptible node has 4 GPUs free"
    assert found["original_message"] == WAITS
    assert found["pods"] == {"preemptible": 1, "standard": 0, "waiting": 1}
    assert found["last_checkpoint"] is None
    assert {one["code"] for one in found["findings"]} == {"no_checkpoint", "grace_cut"}
    assert found["last_drain"]["verdicts"] == {"finished": 1}


def test_pages_follow_each_other_and_new_ones_shift_nothing(world: World, operator: Api, path: str) -> None:
    node = new_node(world.train, "gpu-dp-1")
    for number in range(5):
        seen = timezone.now() - timedelta(minutes=number)
        with_pods(a_workload(world.train, f"job-{number}", first_seen_at=seen), [node])
    first = operator.get(f"{path}/workloads?limit=2").json()
    with_pods(a_workload(world.train, "newer", first_seen_at=timezone.now()), [node])
    names, cursor = [one["name"] for one in first["workloads"]], first["next_cursor"]
    while cursor:
        page = operator.get(f"{path}/workloads?limit=2&after={cursor}").json()
        names += [one["name"] for one in page["workloads"]]
        cursor = page["next_cursor"]
    assert names == [f"job-{number}" for number in range(5)]
    assert operator.get(f"{path}/workloads?namespace=nowhere").json() == {"workloads": [], "next_cursor": None}
    assert error(operator.get(f"{path}/workloads?after=bm9uc2Vuc2U="), 400)["code"] == "bad_cursor"
    assert error(operator.get(f"{path}/workloads?kind=Job"), 422)["param"] == "kind"
