"""What drains cost, in requests and statements. Seconds depend on the machine (`make bench`); these numbers do not."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.capacity import enqueue
from console.capacity.drains import looks
from console.capacity.drains import rows as drain_rows
from console.capacity.drains.ends import PodEnd, pod_ended
from console.capacity.drains.step import learn, step
from console.capacity.drains.views import Evict
from console.capacity.models import Drain, PodVerdict
from console.celery import app
from console.clusters import leases
from console.clusters.models import Cluster
from console.kube.errors import Expired, Garbage, KubeError, Throttled, Unreachable
from console.kube.shapes import Evicted, Listing
from console.runner.processes import console_processes
from console.timeline.changes import change
from tests.capacity.drain_api import Api, begin, fleet, world
from tests.capacity.drain_world import START, Pod, World

PODS = 3


def drains(count: int, name: str) -> tuple[Cluster, dict[str, World]]:
    """A cluster whose nodes all have been noticed, each with a few pods."""
    nodes = [f"{name}-{number}" for number in range(count)]
    cluster = fleet(*nodes, cluster_name=name)
    for node in nodes:
        begin(cluster, node)
    return cluster, {node: world(*(Pod(f"{node}-{number}", stops_after=20) for number in range(PODS))) for node in nodes}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("count", [1, 12])
def test_telling_costs_one_request_a_pod_and_six_a_node(count: int) -> None:
    """Two looks of two requests, the second on the closed node; cordon; Event. A stock client's five a second make it minutes."""
    cluster, worlds = drains(count, "told")
    api = Api(worlds)
    api.drive(cluster)
    assert len(api.told) == count * PODS
    assert api.requests == count * (6 + PODS)


@pytest.mark.django_db(transaction=True)
def test_where_much_of_a_cluster_goes_at_once_all_of_it_is_looked_at_by_two_lists() -> None:
    """Looks were a third of what a real API server was asked while it had 1,500 pods to tell."""
    count = looks.MANY
    cluster, worlds = drains(count, "all")
    api = Api(worlds)
    api.drive(cluster)
    assert len(api.told) == count * PODS
    assert api.requests == 2 * 2 + count * (2 + PODS)
    assert api.lists == ["all nodes", "all pods"] * 2
    api.finish(cluster)
    assert set(Drain.objects.values_list("state", flat=True)) == {Drain.State.REMOVED}


@pytest.mark.parametrize(("due", "nodes", "wanted"), [(15, 15, False), (16, 64, True), (16, 65, False), (100, 103, True)])
def test_a_few_nodes_of_a_large_cluster_are_looked_at_one_by_one(due: int, nodes: int, wanted: bool) -> None:
    assert looks.pays(due, nodes) is wanted


@pytest.mark.django_db(transaction=True)
def test_one_unreadable_object_in_the_whole_cluster_holds_up_no_drain() -> None:
    cluster, worlds = drains(looks.MANY, "broken")
    api = Api(worlds, broken=("metadata.uid is missing",))
    api.drive(cluster)
    assert len(api.told) == looks.MANY * PODS
    assert api.lists.count("all nodes") == 2
    assert len(api.lists) == 2 * (2 + looks.MANY)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["nodes", "pods"])
@pytest.mark.parametrize(
    "error", [Unreachable("No answer within 5 s."), Expired("The continue token is too old."), Garbage("No JSON.")]
)
def test_a_list_of_everything_that_does_not_come_holds_up_no_drain(
    monkeypatch: pytest.MonkeyPatch, kind: str, error: KubeError
) -> None:
    cluster, worlds = drains(looks.MANY, "slow")
    api = Api(worlds)
    listed = api.list

    async def one_by_one(wanted: str, *, fields: str = "") -> Listing:
        if wanted == kind and not fields:
            raise error
        return await listed(wanted, fields=fields)

    monkeypatch.setattr(api, "list", one_by_one)
    api.drive(cluster)
    assert len(api.told) == looks.MANY * PODS


@pytest.mark.django_db(transaction=True)
def test_an_api_that_wants_to_be_left_alone_is_not_asked_for_each_node_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, worlds = drains(looks.MANY, "throttled")
    api = Api(worlds)

    async def refused(kind: str, **_: str) -> None:
        api.requests += 1
        raise Throttled("Too many requests.", retry_after=7)

    monkeypatch.setattr(api, "list", refused)
    api.drive(cluster)
    assert api.requests == 1
    assert set(Drain.objects.values_list("due_at", flat=True)) == {START + timedelta(seconds=7)}
    assert set(Drain.objects.values_list("note", flat=True)) == {"Too many requests."}


@pytest.mark.django_db(transaction=True)
def test_a_quiet_look_at_drains_whose_pods_are_stopping_costs_two_requests_each_and_no_entry() -> None:
    cluster, worlds = drains(4, "quiet")
    api = Api(worlds)
    api.drive(cluster)
    before, revisions = api.requests, list(Drain.objects.values_list("revision", flat=True))
    api.now = START + timedelta(seconds=6)
    api.drive(cluster)
    assert api.requests == before + 4 * 2
    assert list(Drain.objects.values_list("revision", flat=True)) == revisions


def a_round(cluster: Cluster, worlds: dict[str, World], hour: int) -> int:
    """Statements of one round in which every pod is told; looks and answers come from memory."""
    held = leases.take("drains", cluster.pk, f"owner-{hour}", 60)
    assert held is not None
    Drain.objects.filter(cluster=cluster).update(cordoned_at=START, announced_at=START, state=Drain.State.ANNOUNCED)
    for here in worlds.values():
        here.unschedulable = here.mark = True
    with CaptureQueriesContext(connection) as seen:
        rows = drain_rows.due(cluster.pk, START)
        pairs = []
        for row in rows:
            before = drain_rows.view_of(row)
            found = step(before, worlds[row.node_name].look(), START)
            told = [(action, Evicted(), START) for action in found.actions if isinstance(action, Evict)]
            assert len(told) == PODS
            pairs.append((before, learn(found.drain, told, START)))
        drain_rows.store(held, cluster.pk, pairs, START)
    assert PodVerdict.objects.filter(drain__cluster=cluster, told_at=START).count() == len(worlds) * PODS
    return len(seen)


@pytest.mark.django_db(transaction=True)
def test_a_round_asks_the_database_as_much_for_a_hundred_drains_as_for_two() -> None:
    few = a_round(*drains(2, "few"), 1)
    assert a_round(*drains(100, "many"), 2) == few


@pytest.mark.django_db(transaction=True)
def test_looking_again_later_is_one_statement_for_a_hundred_drains() -> None:
    cluster, _ = drains(100, "later")
    held = leases.take("drains", cluster.pk, "owner", 60)
    assert held is not None
    views = [drain_rows.view_of(row) for row in drain_rows.due(cluster.pk, START)]
    later = START + timedelta(seconds=5)
    woken = views[0]
    Drain.objects.filter(pk=woken.id).update(due_at=START + timedelta(seconds=1))
    with CaptureQueriesContext(connection) as seen:
        drain_rows.store(held, cluster.pk, [(view, drain_rows.replace(view, due_at=later)) for view in views], START)
    assert len(seen) == 1
    assert Drain.objects.filter(due_at=later).count() == 99
    assert Drain.objects.get(pk=woken.id).due_at == START + timedelta(seconds=1)  # somebody woke it meanwhile


def ends(cluster: Cluster) -> int:
    """Statements for hearing that all pods of all drains have ended."""
    for drain in Drain.objects.filter(cluster=cluster):
        PodVerdict.objects.create(
            drain=drain, pod_uid=f"uid-{drain.node_name}", namespace="team", name="pod", asked_grace=30, given_grace=30,
            told_at=START,
        )  # fmt: skip
    uids = PodVerdict.objects.filter(drain__cluster=cluster).values_list("pod_uid", flat=True)
    told = [PodEnd(uid, START + timedelta(seconds=3), 0, observed=True) for uid in uids]
    with CaptureQueriesContext(connection) as seen, change(START) as made:
        pod_ended(made, made.lock(Cluster.objects.filter(pk=cluster.pk))[0], told)
    assert not PodVerdict.objects.filter(drain__cluster=cluster, ended_at=None).exists()
    return len(seen)


@pytest.mark.django_db(transaction=True)
def test_hearing_of_ends_asks_the_database_as_much_for_fifty_drains_as_for_two() -> None:
    few = ends(drains(2, "few")[0])
    assert ends(drains(50, "many")[0]) == few


def test_drains_have_a_queue_that_other_work_does_not_fill() -> None:
    with enqueue._sender().connection_for_read() as broker, broker.SimpleQueue("drains") as queue:
        queue.clear()
        assert enqueue.enqueue("capacity.drive_drains", str(uuid.uuid4()))
        message = queue.get(timeout=2)
        message.ack()
    assert message.headers["task"] == "capacity.drive_drains"


def test_the_urgent_worker_empties_the_queue_of_drains_first_and_no_other_worker_waits_in_it(tmp_path) -> None:
    commands = {process.name: process.command for process in console_processes(tmp_path, 1, 2)}
    queues = {name: command[command.index("-Q") + 1].split(",") for name, command in commands.items() if "-Q" in command}
    assert queues == {"worker-urgent": ["drains", "urgent"], "worker": ["default", "bulk"]}
    assert app.conf.broker_transport_options["queue_order_strategy"] == "priority"
