"""Observe or act. What is sent is asked of the simulator's own request log, not of our code."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from console.accounts.models import AuditRow, Role
from console.capacity import sweeping
from console.capacity.drains.run import drive
from console.capacity.models import Drain, Pool
from console.capacity.pools.plan import ClusterView, PoolView
from console.capacity.pools.reconcile import reconcile_pool
from console.capacity.pools.victims import MachineView
from console.capacity.pools.would import Names, Would, would
from console.capacity.services import cordon, reclaim, set_mode, set_standard, set_target
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.http import BadInput, Conflict, Forbidden, Unprocessable
from console.sync import tasks
from console.timeline.models import Entry
from tests.capacity.both_worlds import Both
from tests.capacity.drain_api import begin, fleet
from tests.capacity.fake_provider import FakeProvider
from tests.capacity.rows import NOON, a_cluster, a_pool, person
from tests.simulator.conftest import Simulation, eventually
from tests.sync.test_watch import Watchers

OBSERVE, ACT = Cluster.Mode.OBSERVE, Cluster.Mode.ACT
PREEMPTIBLE = ComputeClass.PREEMPTIBLE


# The list of what would be done ------------------------------------------------------------------------------------------

MINE, OTHER = UUID(int=1), UUID(int=2)


def a_machine(number: int, **more: Any) -> MachineView:
    fields: dict[str, Any] = {
        "id": UUID(int=number),
        "cluster": MINE,
        "compute_class": PREEMPTIBLE,
        "state": Machine.State.JOINED,
        "gpus": 8,
        "asked_at": NOON - timedelta(hours=1),
        "was_ready": True,
        "ready": True,
        "has_node": True,
    }
    return MachineView(**fields | more)


def said(
    standard: int, preemptible: int, machines: list[MachineView], pool: PoolView | None = None, blocked: str = ""
) -> list[str]:
    pool = pool or PoolView(total=24, free=8, owed=0, returning=0)
    clusters = [ClusterView(MINE, "mine", standard, preemptible, blocked), ClusterView(OTHER, "other", 0, 0)]
    names = Names(8, {machine.id: f"node-{machine.id.int}" for machine in machines})
    return [one.text for one in would(pool, clusters, machines, MINE, names, NOON, timedelta(minutes=15))]


def test_it_says_what_would_be_launched_and_what_would_have_to_wait() -> None:
    full = PoolView(total=24, free=2, owed=0, returning=0)
    assert said(1, 3, [], full) == [
        "Launch 1 standard machine (8 GPUs).",
        "Launch 1 preemptible machine (8 GPUs).",
        "Wait for 2 preemptible machines (16 GPUs): the pool has none to give.",
    ]


def test_it_says_what_the_pace_would_hold() -> None:
    assert said(0, 6, [], PoolView(total=24, free=24, owed=0, returning=0))[1] == (
        "Launch 2 preemptible machines (16 GPUs) more, once others have arrived."
    )


def test_it_says_which_nodes_would_be_drained_and_why() -> None:
    owing = PoolView(total=24, free=0, owed=1, returning=0)
    assert said(0, 1, [a_machine(7)], owing) == [
        "Drain and give back node-7: standard demand in this pool needs it.",
        "Wait for 1 preemptible machine (8 GPUs): the pool has none to give.",
    ]
    assert said(0, 0, [a_machine(7)]) == ["Drain and remove node-7: mine asks for 0 preemptible GPUs now."]


def test_it_says_what_would_be_called_off_and_what_was_begun_before() -> None:
    booting = a_machine(3, state=Machine.State.BOOTING, was_ready=False, ready=False, has_node=False, asked_at=NOON)
    asked = a_machine(4, state=Machine.State.ASKED, was_ready=False, ready=False, has_node=False, asked_at=NOON)
    assert said(0, 0, [booting]) == ["End node-3 before it joins: mine asks for 0 preemptible GPUs now."]
    assert said(0, 1, [asked]) == ["Launch 1 preemptible machine (8 GPUs), as asked for before."]
    assert said(0, 0, [a_machine(5, draining=True)]) == ["Go on with the drain of node-5."]
    assert said(0, 0, [a_machine(6, state=Machine.State.LEAVING)]) == ["End node-6, which was called off."]


def test_machines_of_others_are_none_of_its_business() -> None:
    theirs = a_machine(9, cluster=OTHER)
    assert said(0, 0, [theirs]) == ["Nothing: the cluster has what it asks for."]


def test_what_would_hold_it_back_anyway_is_said_instead() -> None:
    assert said(1, 1, [], blocked="automation is stopped by ada") == ["Nothing for now: automation is stopped by ada."]
    silent = PoolView(total=24, free=8, owed=0, returning=0, heard=False)
    assert said(1, 1, [], silent) == ["Nothing for now: the provider of machines does not answer."]


def test_the_same_views_give_the_same_list() -> None:
    machines = [a_machine(number) for number in range(5)]
    assert said(1, 2, machines) == said(1, 2, machines)
    assert all(isinstance(text, str) and text.endswith(".") for text in said(1, 2, machines))
    assert Would("launch", "x") == Would("launch", "x")


# The change itself -------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_acting_is_confirmed_by_name_audited_and_said() -> None:
    cluster = a_cluster(a_pool(), mode=OBSERVE)
    ada = person(Role.ADMIN, "ada")
    for confirm in ("", "aurora", "AURORA-TRAIN"):
        with pytest.raises(Unprocessable, match="Type the cluster's name, aurora-train"):
            set_mode(ada, cluster, ACT, confirm)
    assert not Entry.objects.exists()
    set_mode(ada, cluster, ACT, " aurora-train ")
    cluster.refresh_from_db()
    assert cluster.mode == ACT
    entry, row = Entry.objects.get(), AuditRow.objects.get()
    assert (entry.reason, entry.actor_name, entry.data) == ("ModeChanged", "ada", {"from": "observe", "to": "act"})
    assert (row.action, row.actor, row.before, row.after) == ("cluster.mode.set", "ada", {"mode": "observe"}, {"mode": "act"})
    set_mode(ada, cluster, ACT)
    assert Entry.objects.count() == AuditRow.objects.count() == 1


@pytest.mark.django_db
def test_only_an_administrator_changes_the_mode_and_only_to_one_that_there_is() -> None:
    cluster = a_cluster(a_pool())
    with pytest.raises(Forbidden):
        set_mode(person(Role.OPERATOR), cluster, OBSERVE)
    with pytest.raises(BadInput):
        set_mode(person(Role.ADMIN, "ada"), cluster, "destroy")
    Cluster.objects.update(status=Cluster.Status.CREATING)
    with pytest.raises(Conflict, match="not ready"):
        set_mode(person(Role.ADMIN, "ada"), cluster, OBSERVE)


@pytest.mark.django_db(transaction=True)
def test_observing_does_not_begin_in_the_middle_of_a_drain_but_does_not_wait_for_a_stuck_one() -> None:
    cluster = fleet("node-1")
    Cluster.objects.update(status=Cluster.Status.READY)
    now = timezone.now()
    drain = begin(cluster, "node-1", now=now)
    with pytest.raises(Conflict, match="node-1 is draining, until"):
        set_mode(person(Role.ADMIN, "ada"), cluster, OBSERVE)
    Drain.objects.update(deadline=now - timedelta(seconds=1))
    set_mode(person(Role.ADMIN, "ada"), cluster, OBSERVE)
    assert sweeping.due(timezone.now()) == [("capacity.reconcile_pool", str(Pool.objects.get().pk))]
    drive(cluster.pk)
    drain.refresh_from_db()
    assert (drain.state, drain.note) == (Drain.State.ASKED, "")


@pytest.mark.django_db
def test_a_launch_that_was_not_sent_waits_and_holds_up_nobody_else() -> None:
    pool = a_pool()
    observed = a_cluster(pool, standard=0, preemptible=32)
    fake = FakeProvider(total=24)
    fake.silent = True
    now = timezone.now()
    for number in range(4):
        Machine.objects.create(
            cluster=observed, region=pool.region, gpu_type=pool.gpu_type, compute_class=PREEMPTIBLE,
            node_name=f"gpu-preemptible-dp-{number}", asked_at=now,
        )  # fmt: skip
    set_mode(person(Role.ADMIN, "ada"), observed, OBSERVE)
    other = a_cluster(pool, "atlas-serve", standard=8)
    fake.silent = False
    reconcile_pool(pool.pk, "w", open_provider=fake)
    assert {order.cluster for order in fake.orders} == {other.pk}
    assert Machine.objects.filter(cluster=observed, state=Machine.State.ASKED).count() == 4
    set_mode(person(Role.ADMIN, "ada"), observed, ACT, observed.name)
    reconcile_pool(pool.pk, "w", open_provider=fake)
    assert sum(order.cluster == observed.pk for order in fake.orders) == 4


@pytest.mark.django_db
def test_what_leaves_or_was_given_up_is_not_ended_while_only_observed() -> None:
    pool = a_pool()
    cluster = a_cluster(pool, standard=0, preemptible=16)
    fake = FakeProvider()
    reconcile_pool(pool.pk, "w", open_provider=fake)
    one, two = Machine.objects.order_by("pk")
    Machine.objects.filter(pk=one.pk).update(state=Machine.State.LEAVING)
    Machine.objects.filter(pk=two.pk).update(state=Machine.State.GIVEN_UP, gone_at=timezone.now())
    Cluster.objects.update(mode=OBSERVE)
    reconcile_pool(pool.pk, "w", open_provider=fake)
    assert fake.ended == []
    Cluster.objects.update(mode=ACT, desired_preemptible_gpus=0)
    reconcile_pool(pool.pk, "w", open_provider=fake)
    assert set(fake.ended) == {one.pk, two.pk}
    assert cluster.machines.count() == 2


# What is sent ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


@pytest.fixture
def watchers(transactional_db: None) -> Iterator[Watchers]:
    started = Watchers()
    yield started
    started.close()


@pytest.fixture
def both(transactional_db: None, simulation: Simulation, settings: Any) -> Iterator[Both]:
    settings.SIM_URL, settings.STATE_DIR = simulation.url, simulation.state
    found = Both(simulation)
    yield found
    simulation.control("DELETE", f"clusters/{found.cluster.pk}")


def test_in_observe_no_write_is_sent_by_any_path(both: Both, watchers: Watchers) -> None:
    """Target, standard demand, owed demand, reclaim, cordon, a foreign label, relist, watch, drains; and acting does send."""
    ada = person(Role.ADMIN, "ada", fleet_operator=True)
    node = Node.objects.get(compute_class=PREEMPTIBLE)
    set_mode(ada, both.cluster, OBSERVE)
    cluster = Cluster.objects.get()
    before, there = both.wrote(), both.machines()
    assert before, "the arrival was announced while Halftide acted"

    set_target(ada, cluster, 24)
    set_standard(ada, cluster, 16)
    both.plan()
    set_target(ada, cluster, 0)
    both.plan()
    both.others(24)
    both.plan()
    for tried in (
        lambda: reclaim(ada, cluster, 8),
        lambda: cordon(ada, cluster, node, True),
        lambda: cordon(ada, cluster, node, False),
    ):
        with pytest.raises(Conflict, match="only observed"):
            tried()
    both.relabel(node.name, "standard")
    tasks.relist_cluster(str(cluster.pk))
    watchers.start()
    eventually(lambda: Cluster.objects.get().proved_to > timezone.now() - timedelta(seconds=3), 60)
    both.relabel(node.name, None)
    both.api.patch(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": True}})
    eventually(lambda: Node.objects.get(pk=node.pk).unschedulable)
    both.api.patch(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": None}})
    eventually(lambda: not Node.objects.get(pk=node.pk).unschedulable)
    drain = begin(cluster, node.name, now=timezone.now() - timedelta(seconds=400))
    drive(cluster.pk)
    Drain.objects.filter(pk=drain.pk).delete()
    Node.objects.update(draining=False)

    assert both.wrote() == before
    assert both.machines() == there
    assert both.label(node.name) is None

    both.others(0)
    set_target(ada, cluster, 16)
    set_mode(ada, cluster, ACT, cluster.name)
    both.plan()
    assert len([one for one in both.machines() if one[2] and one[1] != "terminated"]) == 4
    eventually(lambda: both.label(node.name) == "preemptible", 20)
    assert ("patch", f"/api/v1/nodes/{node.name}") in both.wrote()[len(before) :]
