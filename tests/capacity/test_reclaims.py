"""What a person does to nodes: GPUs taken back at once, a node closed, a node opened."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from console.accounts.access import Actor
from console.accounts.models import AuditRow, Role, User
from console.capacity.drains import cordons
from console.capacity.drains.cordons import cordon
from console.capacity.models import Drain, Reclaim, RefusedNotices
from console.capacity.reclaims.reclaim import reclaim
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


def test_nodes_are_taken_back_by_name_and_their_drains_belong_to_the_reclaim(olu):
    cluster = fleet("node-1", "node-2", "node-3")
    row = reclaim(olu, cluster, nodes=["node-3", "node-1", "node-3"])
    assert {drain["node_name"] for drain in row.answer["drains"]} == {"node-1", "node-3"}
    assert {drain.node_name for drain in row.drains.all()} == {"node-1", "node-3"}
    assert row.answer["refused"] == []
    assert (row.asked_by, row.num_gpus, row.drill) == ("olu", None, False)
    assert Entry.objects.filter(reason="TogetherPreempted").count() == 2
    assert AuditRow.objects.get().after["gpus"] == 16


WRONG = [
    ("gpu-of-another-cluster", "unknown", "aurora-train has no node gpu-of-another-cluster."),
    ("", "empty", "An empty name names no node."),
    ("  ", "empty", "An empty name names no node."),
    ("standard-1", "standard", "standard-1 is a standard node: it is never taken back."),
    ("Not A Name", "malformed", '"Not A Name" cannot be the name of a node.'),
    ("nul\x00", "malformed", '"nul\\u0000" cannot be the name of a node.'),
    ("\ud800", "malformed", '"\\ud800" cannot be the name of a node.'),
    ("x" * 300, "malformed", f'"{"x" * 59}… cannot be the name of a node.'),
    (None, "malformed", "null cannot be the name of a node."),
    (7, "malformed", "7 cannot be the name of a node."),
    ({"name": "node-1"}, "malformed", '{"name": "node-1"} cannot be the name of a node.'),
    ("foreign-1", "foreign", "foreign-1 is no machine of Halftide's."),
    ("asked-1", "unknown", "asked-1 was only asked for: there is nothing to take back yet."),
    ("leaving-1", "draining", "leaving-1 is on its way out already."),
    ("draining-1", "draining", "draining-1 is draining already, gone by "),
]


def trouble() -> Cluster:
    """A cluster with one node that can go, and one of each kind that cannot."""
    cluster = fleet("node-1", "asked-1", "leaving-1", "draining-1")
    add_node(cluster, "standard-1", ComputeClass.STANDARD)
    add_node(cluster, "foreign-1")
    Node.objects.filter(name="foreign-1").update(machine=None)
    Machine.objects.filter(node_name="foreign-1").delete()
    Node.objects.filter(name="asked-1").delete()
    Machine.objects.filter(node_name="asked-1").update(state=Machine.State.ASKED)
    Machine.objects.filter(node_name="leaving-1").update(state=Machine.State.LEAVING)
    begin(cluster, "draining-1", now=timezone.now() - timedelta(seconds=60))
    return cluster


@pytest.mark.parametrize(("name", "code", "words"), WRONG, ids=[f"{code}-{number}" for number, (_, code, _) in enumerate(WRONG)])
def test_a_notice_that_cannot_be_followed_is_said_and_counted_and_holds_up_no_other(olu, name, code, words):
    """aws/aws-node-termination-handler#272: a notice for an unknown node ended the loop for all."""
    cluster = trouble()
    row = reclaim(olu, cluster, nodes=[name, "node-1"])
    assert [drain["node_name"] for drain in row.answer["drains"]] == ["node-1"]
    [refused] = row.answer["refused"]
    assert refused["code"] == code
    assert refused["message"].startswith(words)
    entry = Entry.objects.get(reason="NoticeRefused")
    assert entry.message.startswith(f"Notice refused. {words}")
    counter = RefusedNotices.objects.get()
    assert (counter.source, counter.reason, counter.count) == ("asked", code, 1)


def test_where_no_named_node_can_go_the_request_is_refused_but_said_and_counted(olu):
    """aws/aws-node-termination-handler#272"""
    cluster = trouble()
    for _ in range(3):
        with pytest.raises(Unprocessable, match="None of these nodes can be taken back") as refusal:
            reclaim(olu, cluster, nodes=["nobody-1", "standard-1"], key="again")
    assert [refused["code"] for refused in refusal.value.state["refused"]] == ["unknown", "standard"]
    assert Entry.objects.get(reason="NoticeRefused").count == 3
    assert dict(RefusedNotices.objects.values_list("reason", "count")) == {"unknown": 3, "standard": 3}
    assert not Reclaim.objects.exists()


def test_a_notice_for_a_node_that_is_scaled_down_makes_it_a_preemption_of_the_reclaim(olu):
    cluster = fleet("node-1")
    drain = begin(cluster, "node-1", Drain.Cause.SCALED_DOWN, now=timezone.now() - timedelta(seconds=30))
    first_deadline = drain.deadline
    row = reclaim(olu, cluster, nodes=["node-1"])
    drain.refresh_from_db()
    assert (drain.cause, drain.reclaim, drain.deadline) == (Drain.Cause.PREEMPTED, row, first_deadline)
    assert [one["drain_id"] for one in row.answer["drains"]] == [str(drain.pk)]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "Say either num_gpus or nodes"),
        ({"gpus": 8, "nodes": ["node-1"]}, "Say either num_gpus or nodes"),
        ({"nodes": []}, "Name 1 to 1000 nodes, not 0"),
        ({"nodes": ["node-1"] * 1001}, "Name 1 to 1000 nodes"),
        ({"gpus": 8, "key": ""}, "An Idempotency-Key has"),
        ({"gpus": 8, "key": "k" * 256}, "An Idempotency-Key has"),
    ],
)
def test_a_request_that_says_nothing_or_too_much_starts_nothing(olu, asked, words):
    with pytest.raises(Unprocessable, match=words):
        reclaim(olu, fleet("node-1"), **asked)
    assert not Drain.objects.exists()


def test_the_same_key_gets_the_same_answer_and_with_another_body_it_is_refused(olu):
    cluster = fleet("node-1", "node-2")
    first = reclaim(olu, cluster, 8, key="notice-17")
    assert reclaim(olu, cluster, 8, key="notice-17").answer == first.answer
    assert Drain.objects.count() == 1
    for other in ({"gpus": 16}, {"nodes": ["node-1"]}, {"gpus": 8, "drill": True}):
        with pytest.raises(Conflict, match="belongs to another request") as conflict:
            reclaim(olu, cluster, key="notice-17", **other)
        assert conflict.value.state["reclaim_id"] == str(first.pk)
    assert Drain.objects.count() == 1
    other_cluster = fleet("node-9", cluster_name="atlas-serve")
    assert reclaim(olu, other_cluster, 8, key="notice-17").pk != first.pk


def test_two_requests_with_one_key_at_the_same_time_start_one_reclaim(olu):
    cluster = fleet("node-1", "node-2", "node-3", "node-4")
    start = Barrier(4)

    def ask(_: int) -> dict:
        try:
            start.wait(10)
            return reclaim(olu, Cluster.objects.get(pk=cluster.pk), 8, key="once").answer
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(4)))
    assert all(answer == answers[0] for answer in answers)
    assert (Reclaim.objects.count(), Drain.objects.count()) == (1, 1)
    assert Entry.objects.filter(reason="TogetherPreempted").count() == 1
