"""What a preview asks of a real Kubernetes API over HTTP, how long it waits, and how often it asks the database."""

import socket
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.capacity.models import Drain, PodVerdict
from console.capacity.reclaims import previewing
from console.capacity.reclaims.budgets import Budgets
from console.clusters.models import Cluster, Pod
from console.clusters.secrets import seal
from console.kube.kubeconfig import Connection
from tests.capacity.drain_api import add_node, begin, fleet
from tests.simulator.conftest import Api, Simulation, eventually, pod

pytestmark = pytest.mark.django_db(transaction=True)

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


def test_budgets_are_read_from_the_cluster_at_the_moment_of_asking(simulation: Simulation) -> None:
    cluster = fleet()
    made = simulation.control("POST", "clusters", {"id": str(cluster.pk), "name": "previewed", "region": "eu-north-1"})
    cluster.kubeconfig = seal(made.json()["kubeconfig"])
    cluster.save()
    api = Api(f"{simulation.url}/clusters/{cluster.pk}", key=str(cluster.pk))
    eventually(lambda: api.get("/api/v1/namespaces/monitoring").status_code == 200)
    node = add_node(cluster, "gpu-preemptible-dp-1")
    simulation.node(api, node.name, token=str(node.machine_id))
    for name, app in (("web-0", "web"), ("train-0", "train")):
        assert api.post("/api/v1/namespaces/default/pods", pod(name, node=node.name, labels={"app": app})).status_code == 201
        uid = api.get(f"/api/v1/namespaces/default/pods/{name}").json()["metadata"]["uid"]
        Pod.objects.create(cluster=cluster, uid=uid, namespace="default", name=name, node_name=node.name, phase="Running")
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    assert api.post(BUDGETS, budget).status_code == 201
    found = previewing.of_nodes(cluster, [node.name], timezone.now())
    assert found.budgets_unknown == ""
    assert [(one.namespace, one.name, one.pods, one.over) for one in found.budgets] == [("default", "web", 1, 1)]
    assert {one.name: (one.budgets, one.overridden) for one in found.pods} == {"web-0": (("web",), True), "train-0": ((), False)}
    assert found.telling is not None
    assert 0 < found.telling < 5
    assert not Drain.objects.exists()
    assert api.get(f"/api/v1/nodes/{node.name}").json()["spec"].get("unschedulable") is None


def test_an_api_that_accepts_and_never_answers_holds_a_person_up_for_seconds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "LONGEST", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        way = Connection(server=f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(previewing, "connection", lambda cluster: way)
        began = time.monotonic()
        found = previewing.read_budgets(fleet(), ["one"])
    assert time.monotonic() - began < 3
    assert "not answer" in found.unknown
    assert (found.allowed, found.covers, found.round_trip) == ({}, {}, None)


def test_a_cluster_without_a_kubeconfig_is_said_and_not_asked() -> None:
    cluster = fleet()
    cluster.kubeconfig = None
    assert "has no Kubernetes API yet" in previewing.read_budgets(cluster, ["one"]).unknown


def with_pods(count: int) -> Cluster:
    cluster = fleet(*(f"node-{number}" for number in range(count)))
    for number in range(count):
        Pod.objects.create(
            cluster=cluster, uid=f"uid-{number}", namespace="ml", name=f"train-{number}", node_name=f"node-{number}",
            phase="Running", owner_kind="Job", owner_name="train", grace_seconds=30,
        )  # fmt: skip
    return cluster


def test_it_asks_the_database_as_much_for_one_node_as_for_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "read_budgets", lambda cluster, names: Budgets())
    cluster = with_pods(20)

    def queries(nodes: int) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert len(previewing.of_gpus(cluster, nodes * 8, timezone.now()).pods) == nodes
        return len(seen)

    assert queries(1) == queries(20) <= 12


def test_how_pods_of_the_same_owner_ended_before_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "read_budgets", lambda cluster, names: Budgets())
    cluster = with_pods(2)
    drain = begin(cluster, "node-1")
    now = timezone.now()
    for uid, owner, seconds, verdict in (
        ("a", "train", 12, PodVerdict.Verdict.FINISHED),
        ("b", "train", 31, PodVerdict.Verdict.KILLED),
        ("c", "other", 500, PodVerdict.Verdict.FINISHED),
    ):
        PodVerdict.objects.create(
            drain=drain, pod_uid=uid, namespace="ml", name=uid, owner_kind="Job", owner_name=owner, asked_grace=30,
            given_grace=30, told_at=now, ended_at=now + timedelta(seconds=seconds), verdict=verdict,
        )  # fmt: skip
    [one] = previewing.of_gpus(cluster, 8, now).pods
    assert one.late == "its kind was killed before after 31 s and gets 30 s"
