"""What people ask for: compare-and-set, refusals that say what would be right, a trail of each change, and none of nothing."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.accounts.access import Actor
from console.accounts.models import AuditRow, Role
from console.capacity import enqueue, queries, services
from console.capacity.models import Automation, Pool, PoolWake
from console.clusters.models import Cluster, Level
from console.http import Conflict, Forbidden, Unprocessable
from console.timeline.models import INSTALLATION, Entry, Stream
from tests.capacity.rows import NOON, a_cluster, a_pool, a_project, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    sent: list[tuple[str, ...]] = []
    monkeypatch.setattr(enqueue, "enqueue", lambda task, *ids: bool(sent.append((task, *ids))))
    return sent


@pytest.fixture
def cluster(hints: list[tuple[str, ...]]) -> Cluster:
    return a_cluster(a_pool(), standard=8, preemptible=8)


@pytest.mark.django_db(transaction=True)
def test_a_new_target_is_one_row_of_each_kind_a_level_and_a_wake_up(cluster: Cluster, hints: list[tuple[str, ...]]) -> None:
    now = services.set_target(person(), cluster, 64, based_on=0)
    assert (now.desired_preemptible_gpus, now.target_set_by) == (64, "olu")
    entry = Entry.objects.get()
    assert (entry.reason, entry.message, entry.actor_name) == ("TargetChanged", "Preemptible target from 8 to 64", "olu")
    assert entry.data == {"from": 8, "to": 64}
    audit = AuditRow.objects.get()
    assert (audit.action, audit.before, audit.after) == ("cluster.target.set", {"gpus": 8}, {"gpus": 64})
    assert [(level.desired, level.allocated) for level in Level.objects.all()] == [(64, 0)]
    assert PoolWake.objects.count() == 1
    assert hints == [("capacity.reconcile_pool", str(Pool.objects.get().pk))]


def test_the_target_carries_the_revision_at_which_it_was_set(cluster: Cluster) -> None:
    first = services.set_target(person(), cluster, 16)
    assert 0 < first.target_revision <= Stream.objects.get(pk=cluster.stream).revision
    second = services.set_target(person(), cluster, 24, based_on=first.target_revision)
    assert second.target_revision > first.target_revision
    cluster.refresh_from_db()
    assert cluster.target_revision == second.target_revision


def test_whoever_did_not_see_the_newer_target_is_told_of_it_and_changes_nothing(cluster: Cluster) -> None:
    newer = services.set_target(person(name="ada"), cluster, 16, based_on=0)
    with pytest.raises(Conflict) as refused:
        services.set_target(person(), cluster, 64, based_on=newer.target_revision - 1)
    assert refused.value.state == {"desired": 16, "target_revision": newer.target_revision, "set_by": "ada"}
    assert "ada changed the target to 16 GPUs meanwhile" in refused.value.message
    cluster.refresh_from_db()
    assert cluster.desired_preemptible_gpus == 16
    assert Entry.objects.count() == AuditRow.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_time_one_wins_and_the_other_is_told(cluster: Cluster) -> None:
    def move(gpus: int) -> str:
        try:
            return str(services.set_target(person(), cluster, gpus, based_on=0).desired_preemptible_gpus)
        except Conflict:
            return "conflict"
        finally:
            connection.close()

    person()
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(move, [16, 24, 32, 40]))
    cluster.refresh_from_db()
    assert sorted(answers) == sorted([str(cluster.desired_preemptible_gpus), "conflict", "conflict", "conflict"])


def test_asking_for_what_is_asked_for_already_writes_nothing(cluster: Cluster) -> None:
    services.set_target(person(), cluster, 8, based_on=-1)
    services.set_standard(person(), cluster, 8)
    assert not Entry.objects.exists()
    assert not AuditRow.objects.exists()
    assert not PoolWake.objects.exists()


def test_a_target_above_the_pool_is_accepted(cluster: Cluster) -> None:
    assert services.set_target(person(), cluster, 512).desired_preemptible_gpus == 512


@pytest.mark.parametrize(
    ("gpus", "code", "says"),
    [
        (27, "not_a_multiple", "24 or 32, not 27"),
        (1, "not_a_multiple", "0 or 8, not 1"),
        (-8, "negative", "cannot be negative"),
        (520, "quota", "Aurora Labs may ask for 512 preemptible GPUs in all; 512 are left"),
        (8_000_000, "too_many", "8,000,000"),
        (8 * 10**400, "too_many", "no pool has as many"),
        (True, "not_a_number", "whole number"),
        ("64", "not_a_number", "whole number"),
    ],
)
def test_a_target_that_cannot_be_is_refused_with_what_could(cluster: Cluster, gpus: int, code: str, says: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        services.set_target(person(), cluster, gpus)
    assert refused.value.code == code
    assert refused.value.param == "num_preemptible_gpus"
    assert says in refused.value.message
    assert not Entry.objects.exists()


def test_the_quota_is_of_the_whole_project(cluster: Cluster) -> None:
    other = a_cluster(Pool.objects.get(), "atlas-serve")
    services.set_target(person(), other, 504)
    with pytest.raises(Unprocessable, match="8 are left"):
        services.set_target(person(), cluster, 16)
    assert services.set_target(person(), other, 0).desired_preemptible_gpus == 0


@pytest.mark.parametrize("gpus", [0, -8, 7])
def test_a_cluster_keeps_a_standard_node(cluster: Cluster, gpus: int) -> None:
    with pytest.raises(Unprocessable):
        services.set_standard(person(), cluster, gpus)
    with pytest.raises(Unprocessable):
        services.create_cluster(person(Role.ADMIN), a_project(), "new", "eu-north-1", "H100_SXM", gpus)
    assert Cluster.objects.count() == 1


def test_more_standard_is_a_row_of_its_own(cluster: Cluster) -> None:
    assert services.set_standard(person(), cluster, 16).desired_standard_gpus == 16
    assert Entry.objects.get().reason == "StandardChanged"


def test_a_viewer_changes_nothing(cluster: Cluster) -> None:
    for change in (
        lambda actor: services.set_target(actor, cluster, 16),
        lambda actor: services.set_standard(actor, cluster, 16),
        lambda actor: services.create_cluster(actor, a_project(), "new", "eu-north-1", "H100_SXM", 8),
        lambda actor: services.switch(actor, False, "why"),
    ):
        for actor in (person(Role.VIEWER), Actor()):
            with pytest.raises(Forbidden):
                change(actor)
    assert not AuditRow.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_cluster_is_asked_for_and_made_by_a_worker(cluster: Cluster, hints: list[tuple[str, ...]]) -> None:
    made = services.create_cluster(person(Role.ADMIN), a_project(), "  My Cluster_2 ", "eu-north-1", "H100_SXM", 16, 8)
    made.refresh_from_db()
    assert (made.name, made.status, made.desired_standard_gpus, made.desired_preemptible_gpus) == (
        "my-cluster-2",
        "creating",
        16,
        8,
    )
    assert made.target_revision > 0
    assert hints == [("capacity.create_cluster", str(made.pk))]
    assert Entry.objects.get(stream=made.stream).reason == "ClusterCreated"
    assert [(level.desired, level.allocated) for level in made.levels.all()] == [(8, 0)]
    assert AuditRow.objects.get().after == {"region": "eu-north-1", "gpu_type": "H100_SXM", "standard": 16, "preemptible": 8}
    said = queries.difference(made, NOON)
    assert (said.blocked, said.blocked_why) == (8, "Its Kubernetes API is being created.")
    with pytest.raises(Conflict, match="named my-cluster-2 already"):
        services.create_cluster(person(Role.ADMIN), a_project(), "my cluster 2", "eu-north-1", "H100_SXM", 16)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "needs a name"),
        (" \n ", "needs a name"),
        ("a" * 64, "64 characters; a cluster's name has at most 63"),
        ("x" * 300, "300 characters"),
        ("<b>bold</b>", "“<” (U+003C, less-than sign) cannot be in it"),
        ("<script>alert(1)</script>", "cannot be in it"),
        ("rocket-🚀", "U+1F680, rocket"),
        ("nul\x00", "(U+0000, a control character)"),
        ("straße", "ß"),
        ("-dash", "begins and ends"),
        ("a.b", "full stop"),
        ("\u202eabc", "right-to-left override"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_says_which_character(cluster: Cluster, name: str, says: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        services.create_cluster(person(Role.ADMIN), a_project(), name, "eu-north-1", "H100_SXM", 8)
    assert says in refused.value.message
    assert refused.value.param == "name"
    assert Cluster.objects.count() == 1


def test_a_pool_that_is_not_there_is_refused_with_those_that_are(cluster: Cluster) -> None:
    with pytest.raises(Unprocessable, match="There are: eu-north-1 H100_SXM"):
        services.create_cluster(person(Role.ADMIN), a_project(), "new", "mars", "H100_SXM", 8)


def test_a_cluster_that_is_being_deleted_takes_no_target(cluster: Cluster) -> None:
    Cluster.objects.update(status=Cluster.Status.DELETING)
    with pytest.raises(Conflict, match="is being deleted"):
        services.set_target(person(), cluster, 16)


def test_the_switch_is_said_in_every_timeline_and_wakes_every_pool(cluster: Cluster) -> None:
    olu = person(fleet_operator=True)
    services.switch(olu, False, "storm")
    services.switch(olu, False, "again")
    row = Automation.objects.get()
    assert (row.on, row.changed_by, row.why) == (False, "olu", "storm")
    assert sorted(Entry.objects.values_list("stream_id", "message")) == sorted(
        [(INSTALLATION, "Automation stopped by olu: storm"), (cluster.stream, "Automation stopped by olu: storm")]
    )
    services.switch(olu, True)
    assert Entry.objects.filter(reason="AutomationStarted").count() == 2
    assert AuditRow.objects.filter(action="automation.switch").count() == 2
    assert PoolWake.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_dead_queue_loses_no_change_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def dead(*_: object, **__: object) -> None:
        raise ConnectionRefusedError("nobody there")

    monkeypatch.setattr("celery.app.base.Celery.send_task", dead)
    cluster = a_cluster(a_pool(), standard=8)
    assert services.set_target(person(), cluster, 64).desired_preemptible_gpus == 64
    assert PoolWake.objects.count() == 1
    assert "hint_lost" in caplog.text


def test_prices_are_exact(cluster: Cluster) -> None:
    cluster.allocated_preemptible_gpus, cluster.desired_preemptible_gpus = 16, 64
    cost = queries.cost(cluster, NOON)
    assert (cost.now, cost.most) == (Decimal("31.92"), Decimal("127.68"))
    assert (cost.price.preemptible, cost.on_demand_most) == (Decimal("1.995"), Decimal("255.36"))


def test_what_a_pool_can_give_leaves_out_what_it_owes(cluster: Cluster) -> None:
    Pool.objects.update(total_machines=24, free_machines=3, owed_machines=1)
    said = queries.offer(queries.pool_of(cluster))
    assert (said.total_gpus, said.free_gpus, said.could_give_gpus) == (192, 24, 16)


def test_the_difference_of_many_clusters_costs_as_many_queries_as_that_of_one(cluster: Cluster) -> None:
    def cost_of(clusters: list[Cluster]) -> int:
        with CaptureQueriesContext(connection) as seen:
            queries.differences(clusters, NOON)
        return len(seen)

    many = [cluster, *(a_cluster(Pool.objects.get(), f"more-{number}") for number in range(20))]
    many = list(Cluster.objects.select_related("gpu_type").filter(pk__in=[each.pk for each in many]))
    assert cost_of(many) == cost_of(many[:1]) == 4
