"""The sweep tells workers what is due, and notices within a second what matters to a plan."""

import socket
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from console.capacity import creating, enqueue, sweeping, tasks
from console.capacity.models import Drain, Pool, PoolWake
from console.capacity.pools.wakes import wake_pool
from console.capacity.providers.base import PoolState
from console.clusters.models import Cluster, Machine
from console.clusters.secrets import opened
from console.timeline.models import Entry
from tests.capacity.fake_provider import FakeProvider
from tests.capacity.rows import NOON, a_cluster, a_pool

pytestmark = pytest.mark.django_db

LATER = NOON + timedelta(seconds=1)


@pytest.fixture
def quiet(db: None) -> Pool:
    """A pool with nothing due."""
    pool = a_pool()
    Pool.objects.update(due_at=LATER, total_machines=24, free_machines=2, seen_version=7, seen_at=NOON)
    return pool


def says(free: int = 2, owed: int = 0, version: int = 8) -> PoolState:
    return PoolState("eu-north-1", "H100_SXM", 24, free, owed, version)


def test_a_pool_is_due_when_it_was_woken_when_its_time_has_come_and_when_it_never_ran(quiet: Pool) -> None:
    hint = ("capacity.reconcile_pool", str(quiet.pk))
    assert sweeping.due(NOON) == []
    assert sweeping.due(LATER) == [hint]
    wake_pool("eu-north-1", "H100_SXM")
    assert sweeping.due(NOON) == [hint]
    PoolWake.objects.all().delete()
    Pool.objects.update(due_at=None)
    assert sweeping.due(NOON) == [hint]


def test_drains_come_first_one_hint_a_cluster_and_clusters_to_be_made_too(quiet: Pool) -> None:
    cluster, creating_one = a_cluster(quiet), a_cluster(quiet, "new", status=Cluster.Status.CREATING)
    for number in range(3):
        fields = {"region": quiet.region, "gpu_type": quiet.gpu_type, "compute_class": "preemptible", "asked_at": NOON}
        machine = Machine.objects.create(cluster=cluster, node_name=f"n-{number}", **fields)
        Drain.objects.create(
            cluster=cluster, machine=machine, cause="preempted", why="", started_at=NOON, deadline=LATER, due_at=NOON
        )
    Pool.objects.update(due_at=NOON)
    assert sweeping.due(NOON) == [
        ("capacity.drive_drains", str(cluster.pk)),
        ("capacity.reconcile_pool", str(quiet.pk)),
        ("capacity.create_cluster", str(creating_one.pk)),
    ]


def test_capacity_that_returns_to_a_waiting_pool_wakes_it(quiet: Pool) -> None:
    Pool.objects.update(waiting_since=NOON, free_machines=0)
    sweeping.notice("simulated", [says(free=1)], NOON)
    assert PoolWake.objects.count() == 1


def test_machines_that_are_owed_wake_the_pool(quiet: Pool) -> None:
    sweeping.notice("simulated", [says(free=0, owed=2)], NOON)
    assert PoolWake.objects.count() == 1


def test_a_provider_that_speaks_again_wakes_the_pool(quiet: Pool) -> None:
    Pool.objects.update(silent_since=NOON)
    sweeping.notice("simulated", [says(version=7)], NOON)
    assert PoolWake.objects.count() == 1


def test_other_news_only_changes_what_pages_show_and_no_news_changes_nothing(quiet: Pool) -> None:
    sweeping.notice("simulated", [says(version=7)], LATER)
    assert Pool.objects.get().revision == 0
    sweeping.notice("simulated", [says(free=5)], LATER)
    pool = Pool.objects.get()
    assert (pool.free_machines, pool.seen_version, pool.revision) == (5, 8, 1)
    assert not PoolWake.objects.exists()


def test_free_machines_that_fall_and_rise_again_are_news(quiet: Pool) -> None:
    Pool.objects.update(waiting_since=NOON, free_machines=2)
    sweeping.notice("simulated", [says(free=0, version=8)], NOON)
    assert not PoolWake.objects.exists()
    sweeping.notice("simulated", [says(free=2, version=9)], NOON)
    assert PoolWake.objects.count() == 1


def test_a_sweep_asks_the_provider_once_for_all_pools(quiet: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    a_pool("us-central-2", "B200_SXM")
    sent: list[str] = []
    monkeypatch.setattr(sweeping, "enqueue", lambda task, object_id: bool(sent.append(object_id)) or True)
    provider = FakeProvider()
    sweeping.sweep(NOON, open_provider=provider)
    assert provider.asked == ["pools"]
    assert len(sent) == 1
    provider.silent = True
    sweeping.sweep(NOON, open_provider=provider)


@pytest.mark.parametrize("how", ["refuses", "is frozen"])
def test_a_queue_that_is_away_takes_half_a_second_at_most(how: str, settings: Any) -> None:
    """Redis full, frozen or away: the change is kept and the answer goes out (oss-aspen/8Knot#361)."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        if how == "is frozen":
            nobody.listen()  # connects, and never says a word
        settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
        enqueue._sender.cache_clear()
        started = time.monotonic()
        assert not enqueue.enqueue("capacity.sweep")
        assert time.monotonic() - started < 0.9  # half a second, and a loaded machine
    enqueue._sender.cache_clear()


def test_a_message_reaches_the_urgent_queue_and_does_not_live_long() -> None:
    with enqueue._sender().connection_for_read() as broker, broker.SimpleQueue("urgent") as queue:
        queue.clear()
        assert enqueue.enqueue("capacity.reconcile_pool", "some-id")
        message = queue.get(timeout=2)
        message.ack()
    assert message.headers["task"] == "capacity.reconcile_pool"
    assert message.headers["expires"] is not None
    assert message.headers["eta"] is None


def test_tasks_have_the_names_that_the_beat_and_the_hints_use() -> None:
    names = {task.name for task in (tasks.sweep, tasks.reconcile_pool, tasks.drive_drains, tasks.create_cluster)}
    assert names == {"capacity.sweep", sweeping.RECONCILE, sweeping.DRIVE, sweeping.CREATE}


def test_a_clusters_api_is_made_once_and_kept_sealed(quiet: Pool) -> None:
    cluster, provider = a_cluster(quiet, status=Cluster.Status.CREATING), FakeProvider()
    assert creating.create_cluster(cluster.pk, "one", open_provider=provider, clock=lambda: LATER)
    cluster.refresh_from_db()
    assert (cluster.status, cluster.first_ready_at, cluster.status_why) == ("ready", LATER, "")
    assert opened(cluster) == "apiVersion: v1\n"
    assert b"apiVersion" not in bytes(cluster.kubeconfig or b"")
    assert PoolWake.objects.count() == 1
    assert creating.create_cluster(cluster.pk, "two", open_provider=provider)
    assert provider.asked == ["create_cluster"]
    assert Entry.objects.filter(stream=cluster.stream).count() == 1


def test_a_provider_that_cannot_make_one_is_said_and_left_alone_for_a_while(quiet: Pool) -> None:
    cluster, provider = a_cluster(quiet, status=Cluster.Status.CREATING), FakeProvider()
    provider.silent = True
    for _ in range(3):
        assert not creating.create_cluster(cluster.pk, "one more", open_provider=provider, clock=lambda: LATER)
        assert not creating.create_cluster(cluster.pk, "another", open_provider=provider, clock=lambda: LATER)
    cluster.refresh_from_db()
    assert cluster.status_why == "the Kubernetes API cannot be created yet: the provider does not answer"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_lease SET until = clock_timestamp() - interval '1 second'")
    provider.silent = False
    assert creating.create_cluster(cluster.pk, "another", open_provider=provider, clock=lambda: LATER)
