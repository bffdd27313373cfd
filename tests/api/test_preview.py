"""`GET …/drains/preview`: the nodes that a reclaim would take, what they would lose, and no word that is not known."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from console.capacity.models import Drain
from console.capacity.reclaims import previewing
from console.capacity.reclaims.budgets import Budgets
from console.clusters.models import ComputeClass, Machine, Pod
from console.kube.kubeconfig import Connection
from tests.api.world import Api, World, error, new_machine, new_node

PREEMPTIBLE = ComputeClass.PREEMPTIBLE


@pytest.fixture
def nodes(world: World) -> None:
    """One busy, one idle, one standard; one that was only asked for."""
    for name, compute_class in (("busy", PREEMPTIBLE), ("idle", PREEMPTIBLE), ("steady", ComputeClass.STANDARD)):
        new_node(world.train, name, compute_class)
    new_machine(world.train, "asked", Machine.State.ASKED)
    started = timezone.now() - timedelta(hours=2)
    for name, checkpoint in (("train-0", started + timedelta(minutes=90)), ("train-1", None)):
        Pod.objects.create(
            cluster=world.train, uid=f"uid-{name}", namespace="ml", name=name, node_name="busy", phase="Running",
            grace_seconds=600, started_at=started, last_checkpoint=checkpoint,
        )  # fmt: skip


def preview(api: Api, path: str, query: str) -> dict[str, Any]:
    answer = api.get(f"{path}/drains/preview?{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_the_cheapest_go_first_and_each_pod_says_what_is_known(operator: Api, path: str, nodes: None) -> None:
    assert [node["node_name"] for node in preview(operator, path, "num_gpus=8")["nodes"]] == ["idle"]
    found = preview(operator, path, "num_gpus=16")
    idle, busy = found["nodes"]
    assert (idle["reason"], idle["pods"]) == ("no pods but DaemonSets", [])
    first, second = busy["pods"]
    assert (first["pod"], first["asked_grace_seconds"], first["given_grace_seconds"]) == ("train-0", 600, 300)
    assert first["could_be_late"] == "asks for 10:00 of grace and gets 5:00"
    assert first["unsaved_minutes"] == pytest.approx(30, abs=0.2)
    assert second["unsaved_minutes"] is None, "nothing says it, so nobody knows"
    assert (found["pods_with_unknown_unsaved"], found["pods_that_could_be_late"]) == (1, 2)
    assert not Drain.objects.exists()


def test_named_nodes_stand_in_the_order_they_were_asked_for(operator: Api, path: str, nodes: None) -> None:
    assert [node["node_name"] for node in preview(operator, path, "nodes=busy,idle,busy")["nodes"]] == ["busy", "idle"]


def test_where_kubernetes_does_not_answer_budgets_are_unknown_and_not_none(
    operator: Api, path: str, nodes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = Connection(server="http://127.0.0.1:1")
    monkeypatch.setattr(previewing, "connection", lambda cluster: nobody)
    found = preview(operator, path, "nodes=busy")
    assert found["budgets"] is None
    assert found["budgets_unknown"] == "The Kubernetes API cannot be reached."
    assert found["telling_seconds"] is None


def test_a_budget_that_allows_too_few_is_named_with_its_pods(
    operator: Api, path: str, nodes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    covers = {f"uid-train-{number}": (("ml", "train-budget"),) for number in range(2)}
    said = Budgets({("ml", "train-budget"): 1}, covers, round_trip=0.01)
    monkeypatch.setattr(previewing, "read_budgets", lambda cluster, names: said)
    found = preview(operator, path, "nodes=busy")
    assert found["budgets"] == [{"name": "train-budget", "namespace": "ml", "pods": 2, "allowed": 1, "overridden": 1}]
    assert [pod["budgets_overridden"] for pod in found["nodes"][0]["pods"]] == [["train-budget"], ["train-budget"]]
    assert found["telling_seconds"] == 0.07


REFUSED = [
    ("", "one_of", "Say either num_gpus or nodes"),
    ("num_gpus=8&nodes=busy", "one_of", "Say either"),
    ("num_gpus=12", "not_a_multiple", "8 or 16, not 12"),
    ("num_gpus=24", "too_many", "has 16 preemptible GPUs to take back, not 24"),
    ("nodes=nowhere", "unknown", "has no node nowhere. Take the names from the cluster's Nodes page."),
    ("nodes=asked", "unknown", "asked was only asked for"),
    ("nodes=steady", "standard", "steady is a standard node: it is never taken back. Name preemptible nodes."),
    ("nodes=busy,steady", "standard", "steady is a standard node"),
    ("nodes=busy,,idle", "bad_name", "no such name"),
    ("gpus=8", "unknown_field", "Did you mean num_gpus?"),
    (f"nodes={','.join(f'n{number}' for number in range(101))}", "too_many", "1 to 100 nodes, not 101"),
]


@pytest.mark.parametrize(("query", "code", "says"), REFUSED, ids=[query[:24] for query, _, _ in REFUSED])
def test_a_question_that_makes_no_sense_is_refused_with_what_would(
    operator: Api, path: str, nodes: None, query: str, code: str, says: str
) -> None:
    refused = error(operator.get(f"{path}/drains/preview?{query}"), 422)
    assert refused["code"] == code
    assert says in refused["message"]


def test_a_cluster_of_another_project_is_not_there(world: World, operator: Api) -> None:
    error(operator.get(f"/v1/compute/clusters/{world.other.pk}/drains/preview?num_gpus=8"), 404)
