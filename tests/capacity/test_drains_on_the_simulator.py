"""A reclaim from end to end: a real Kubernetes API over HTTP, machines that run pods, and every fate a pod can have."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from console.capacity.drains.run import drive
from console.capacity.models import Drain, PodVerdict
from console.clusters.models import Cluster, Node
from console.clusters.secrets import seal
from console.timeline.models import Entry, Stream
from tests.capacity.drain_api import add_node, fleet
from tests.capacity.driving import finish, take_back
from tests.simulator.conftest import Api, Simulation, eventually, pod

pytestmark = pytest.mark.django_db(transaction=True)

Cause, State, Verdict = Drain.Cause, Drain.State, PodVerdict.Verdict
PROGRAM = "simulator.halftide.io/"


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


@pytest.fixture
def cluster(simulation, settings) -> Cluster:
    settings.SIM_URL, settings.STATE_DIR = simulation.url, simulation.state
    row = fleet()
    made = simulation.control("POST", "clusters", {"id": str(row.pk), "name": f"c-{row.pk.hex[:6]}", "region": "eu-north-1"})
    row.kubeconfig = seal(made.json()["kubeconfig"])
    row.save()
    return row


@pytest.fixture
def api(simulation, cluster) -> Api:
    found = Api(f"{simulation.url}/clusters/{cluster.pk}", key=str(cluster.pk))
    eventually(lambda: found.get("/api/v1/namespaces/monitoring").status_code == 200)
    return found


def machine(simulation: Simulation, api: Api, cluster: Cluster, name: str) -> Node:
    """A machine at the provider whose node is Ready, and its rows as the watch would have written them."""
    row = add_node(cluster, name)
    simulation.node(api, name, token=str(row.machine_id))
    row.uid = api.get(f"/api/v1/nodes/{name}").json()["metadata"]["uid"]
    row.save()
    return row


def run(api: Api, name: str, node: str, grace: int, *, labels: dict[str, str] | None = None, **program: str) -> None:
    body = pod(name, node=node, labels=labels, terminationGracePeriodSeconds=grace)
    body["metadata"]["annotations"] = {PROGRAM + key.replace("_", "-"): value for key, value in program.items()}
    assert api.post("/api/v1/namespaces/default/pods", body).status_code == 201
    eventually(lambda: phase(api, name) == "Running")


def phase(api: Api, name: str) -> str:
    return str(api.get(f"/api/v1/namespaces/default/pods/{name}").json().get("status", {}).get("phase"))


def test_a_reclaim_tells_every_pod_and_the_node_is_gone_in_time(simulation, cluster, api):
    """aws/aws-node-termination-handler#433: among them a budget that refuses, an hour of grace, and one that never obeys."""
    node = machine(simulation, api, cluster, "gpu-preemptible-dp-1")
    run(api, "saver", node.name, 60, exit_seconds="1-1.5", exit_code="0")
    run(api, "failing", node.name, 60, exit_seconds="1-1.5", exit_code="3")
    run(api, "deaf", node.name, 3, ignore_sigterm="true")
    run(api, "served", node.name, 60, labels={"app": "web"}, exit_seconds="2-3", exit_code="143")
    run(api, "notebook", node.name, 3600, exit_seconds="1-2", exit_code="0")
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    assert api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget).status_code == 201
    [drain] = take_back([node], 20)
    drive(cluster.pk)
    drain.refresh_from_db()
    assert drain.told_at is not None
    assert drain.told_at - drain.started_at < timedelta(seconds=5)
    finish(cluster, 60)
    drain.refresh_from_db()
    assert drain.state == State.REMOVED
    assert drain.removed_at <= drain.deadline + timedelta(seconds=15)
    assert api.get(f"/api/v1/nodes/{node.name}").status_code == 404
    assert simulation.control("GET", f"machines/{node.machine_id}").json()["state"] == "terminated"
    found = {row.name: row for row in PodVerdict.objects.filter(drain=drain)}
    assert found.keys() == {"saver", "failing", "deaf", "served", "notebook"}
    assert found["served"].verdict == Verdict.BUDGET_OVERRIDDEN
    assert found["served"].budget == "web"
    assert found["notebook"].given_grace <= 18
    events = [one for one in api.get("/api/v1/namespaces/default/events").json()["items"] if one["reason"] == "TogetherPreempted"]
    entry = Entry.objects.get(stream=Stream.objects.get(pk=cluster.pk), reason="TogetherPreempted")
    assert [(one["metadata"]["name"], one["message"], one["reportingComponent"]) for one in events] == [
        (entry.own_event, entry.message, "halftide")
    ]


def test_a_pod_that_tolerates_the_cordon_is_told_as_soon_as_it_is_met_and_has_its_verdict(simulation, cluster, api):
    node = machine(simulation, api, cluster, "gpu-preemptible-dp-4")
    run(api, "first", node.name, 60, exit_seconds="8-8", exit_code="0")
    [drain] = take_back([node], 60)
    drive(cluster.pk)
    closed = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    body = pod("late", nodeSelector={"kubernetes.io/hostname": node.name}, tolerations=closed, terminationGracePeriodSeconds=30)
    body["metadata"]["annotations"] = {PROGRAM + "exit-seconds": "1-1", PROGRAM + "exit-code": "3"}
    assert api.post("/api/v1/namespaces/default/pods", body).status_code == 201
    eventually(lambda: phase(api, "late") == "Running")
    finish(cluster, 60)
    drain.refresh_from_db()
    found = PodVerdict.objects.get(drain=drain, name="late")
    assert (drain.state, found.given_grace) == (State.REMOVED, 30)
    assert drain.cordoned_at < found.told_at <= found.ended_at <= drain.emptied_at
    assert Entry.objects.filter(reason="PodsCameLate", message__startswith=f"late came to {node.name} after").count() == 1


def test_a_machine_that_died_is_removed_at_the_deadline_and_its_pods_only_then(simulation, cluster, api):
    """kubernetes/kubernetes#72226, rancher/rke2#3913: no kubelet finishes them, and nobody forces them before."""
    node = machine(simulation, api, cluster, "gpu-preemptible-dp-2")
    run(api, "orphan", node.name, 5, exit_seconds="1-1.5", exit_code="0")
    assert simulation.control("POST", f"machines/{node.machine_id}/lose").status_code == 202
    [drain] = take_back([node], 6)
    drive(cluster.pk)
    assert api.get("/api/v1/namespaces/default/pods/orphan").status_code == 200
    finish(cluster, 40)
    drain.refresh_from_db()
    assert drain.state == State.REMOVED
    assert api.get("/api/v1/namespaces/default/pods/orphan").status_code == 404
    assert api.get(f"/api/v1/nodes/{node.name}").status_code == 404


def test_a_person_who_opens_the_node_keeps_it_when_the_cluster_only_shrinks(simulation, cluster, api):
    """planetlabs/draino#17."""
    node = machine(simulation, api, cluster, "gpu-preemptible-dp-3")
    run(api, "held", node.name, 30, labels={"app": "web"})
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    [drain] = take_back([node], 120, Cause.SCALED_DOWN)
    drive(cluster.pk)
    drain.refresh_from_db()
    assert drain.note == "held by budget web"
    assert api.get(f"/api/v1/nodes/{node.name}").json()["spec"]["unschedulable"] is True
    api.patch(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": None}})
    finish(cluster, 30)
    drain.refresh_from_db()
    assert (drain.state, drain.note) == (State.STOPPED, "taken back by a person")
    left = api.get(f"/api/v1/nodes/{node.name}").json()["metadata"].get("annotations", {})
    assert not [key for key in left if key.startswith("halftide.io/")]
    assert phase(api, "held") == "Running"
