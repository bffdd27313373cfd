"""What a person does to nodes: GPUs taken back at once, a node closed, a node opened."""

from datetime import timedelta

import pytest

from console.accounts.access import Actor
from console.accounts.models import AuditRow, Role, User
from console.capacity import cordons
from console.capacity.cordons import cordon
from console.capacity.models import Drain
from console.capacity.reclaims import reclaim
from console.clusters.models import Cluster, ComputeClass, Machine, Node, Pod
from console.http import Conflict, Forbidden, Unavailable, Unprocessable
from console.kube import errors
from console.timeline.models import Entry
from tests.capacity.drain_api import add_node, begin, fleet
from tests.capacity.drain_world import START

pytestmark = pytest.mark.django_db(transaction=True)


def person(name: str, *, role: Role | None = None, operates: bool = False) -> Actor:
    return Actor(user=User.objects.create(username=name), everywhere=role, fleet_operator=operates)


@pytest.fixture
def olu() -> Actor:
    return person("olu", role=Role.OPERATOR, operates=True)


def work(cluster: Cluster, node: str, minutes: int) -> None:
    Pod.objects.create(
        cluster=cluster, uid=f"pod-on-{node}", namespace="team", name=node, node_name=node, phase="Running",
        started_at=START - timedelta(minutes=minutes),
    )  # fmt: skip


def test_those_go_first_whose_loss_costs_least(olu):
    cluster = fleet("busy", "fresh", "idle", "booting")
    work(cluster, "busy", 60)
    work(cluster, "fresh", 2)
    Node.objects.filter(name="booting").update(ready=False)
    reclaim(olu, cluster, 24)
    drains = Drain.objects.all()
    assert {drain.node_name for drain in drains} == {"booting", "idle", "fresh"}
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 8
    entries = Entry.objects.filter(reason="TogetherPreempted")
    assert {(entry.actor_kind, entry.actor_name) for entry in entries} == {("person", "olu")}
    assert all(": olu takes 24 GPUs back, gone by " in entry.message for entry in entries)
    row = AuditRow.objects.get(action="cluster.reclaim")
    assert (row.actor, row.after["gpus"], len(row.after["nodes"])) == ("olu", 24, 3)


def test_standard_nodes_and_those_that_go_already_are_never_taken(olu):
    cluster = fleet("node-1", "node-2")
    add_node(cluster, "standard-1", ComputeClass.STANDARD)
    begin(cluster, "node-1")
    assert [drain["node_name"] for drain in reclaim(olu, cluster, 8).answer["drains"]] == ["node-2"]
    with pytest.raises(Unprocessable, match="has 0 preemptible GPUs"):
        reclaim(olu, cluster, 8)
    assert not Drain.objects.filter(node_name="standard-1").exists()


@pytest.mark.parametrize(
    ("gpus", "words"), [(12, "8 or 16"), (0, "At least one node"), (-8, "negative"), (80, "has 8 preemptible")]
)
def test_a_number_that_cannot_be_is_refused_with_one_that_can(olu, gpus, words):
    cluster = fleet("node-1")
    with pytest.raises(Unprocessable, match=words):
        reclaim(olu, cluster, gpus)
    assert not Drain.objects.exists()


def test_only_a_fleet_operator_takes_gpus_back():
    cluster = fleet("node-1")
    with pytest.raises(Forbidden):
        reclaim(person("ada", role=Role.ADMIN), cluster, 8)


class Asked:
    """The cluster's API, asked to close or open nodes."""

    def __init__(self, error: errors.KubeError | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, bool, str]] = []

    def __call__(self, connection: object, timeout: float) -> "Asked":
        return self

    async def __aenter__(self) -> "Asked":
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def person_cordon(self, name: str, uid: str, unschedulable: bool, by: str) -> None:
        if self.error:
            raise self.error
        self.asked.append((name, unschedulable, by))


@pytest.fixture
def api(monkeypatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(cordons, "Kube", asked)
    monkeypatch.setattr(cordons, "connection", lambda cluster: None)
    return asked


def test_a_cordon_carries_who_it_was(olu, api):
    cluster = fleet("node-1")
    row = cordon(olu, cluster, Node.objects.get(), True)
    assert api.asked == [("node-1", True, "olu")]
    row.refresh_from_db()
    assert (row.unschedulable, row.cordoned_by) == (True, "person:olu")
    assert Entry.objects.get().reason == "NodeCordoned"
    assert AuditRow.objects.get().action == "node.cordon"


def test_opening_a_node_stops_its_scale_down_and_says_who(olu, api):
    cluster = fleet("node-1")
    drain = begin(cluster, "node-1", Drain.Cause.SCALED_DOWN)
    cordon(olu, cluster, Node.objects.get(), False)
    drain.refresh_from_db()
    assert (drain.state, drain.note) == (Drain.State.STOPPED, "taken back by olu")
    assert Entry.objects.get(reason="DrainTakenBack").actor_name == "olu"
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 8


def test_a_preempted_node_cannot_be_kept(olu, api):
    cluster = fleet("node-1")
    begin(cluster, "node-1")
    with pytest.raises(Conflict, match="cannot be kept: atlas-serve needs 8 standard GPUs"):
        cordon(olu, cluster, Node.objects.get(), False)
    assert api.asked == []


def test_an_api_that_does_not_answer_changes_no_row(olu, api):
    cluster = fleet("node-1")
    api.error = errors.Unreachable("The Kubernetes API cannot be reached.")
    with pytest.raises(Unavailable, match=r"node-1 was not changed. The Kubernetes API cannot be reached."):
        cordon(olu, cluster, Node.objects.get(), True)
    assert not Node.objects.get().unschedulable
    assert not Entry.objects.exists()


def test_closing_a_node_needs_an_operator_and_a_cluster_that_we_may_write_to(api):
    cluster = fleet("node-1")
    with pytest.raises(Forbidden):
        cordon(person("vic", role=Role.VIEWER), cluster, Node.objects.get(), True)
    cluster.mode = Cluster.Mode.OBSERVE
    with pytest.raises(Conflict):
        cordon(person("olu", role=Role.OPERATOR), cluster, Node.objects.get(), True)
    assert api.asked == []


def test_a_machine_that_never_became_a_node_is_reclaimed_first(olu):
    cluster = fleet("node-1", "node-2")
    Node.objects.filter(name="node-2").delete()
    Machine.objects.filter(node_name="node-2").update(state=Machine.State.BOOTING, first_ready_at=None)
    drain = reclaim(olu, cluster, 8).drains.get()
    assert (drain.node_name, drain.node_uid) == ("node-2", "")
