"""The real process against the simulator's API: what happens there is here, once, whatever dies in between."""

import signal
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from console.clusters.models import Cluster, ComputeClass, Lease, Machine
from console.kube.kubeconfig import Connection
from console.kube.marks import MACHINE_LABEL
from console.sync import tasks
from console.timeline.models import Entry
from tests.simulator.conftest import Api, Simulation, eventually
from tests.sync.processes import Watchers
from tests.sync.world import new_cluster

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]

NODE_LIST = ("list", "/api/v1/nodes", "halftide")
START = 60  # seconds a process may take to start on a machine that is busy with other tests


@pytest.fixture
def watchers(db: None) -> Iterator[Watchers]:
    started = Watchers()
    yield started
    started.close()


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


def connect(simulation: Simulation, name: str) -> tuple[Cluster, Api]:
    """A cluster in both worlds."""
    api = simulation.cluster(name)
    return new_cluster(name, Connection(api.url).to_kubeconfig(name)), api


@pytest.fixture
def both(transactional_db: None, simulation: Simulation) -> Iterator[tuple[Cluster, Api]]:
    found = connect(simulation, f"aurora-{uuid.uuid4().hex[:6]}")
    yield found
    simulation.control("DELETE", f"clusters/{found[1].key}")


def say(api: Api, number: int, node: str = "gpu-dp-1", reason: str = "Told") -> str:
    """An Event on a node; its uid."""
    name = f"{reason.lower()}-{number}"
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node, "apiVersion": "v1"},
        "reason": reason,
        "message": str(number),
        "type": "Normal",
        "count": 1,
    }
    made = api.post("/api/v1/namespaces/default/events", body)
    assert made.status_code == 201, made.text
    return str(made.json()["metadata"]["uid"])


def told(cluster: Cluster) -> list[str]:
    """The numbers that have rows, doubles included."""
    rows = Entry.objects.filter(stream=cluster.stream, reason="Told").order_by("at", "pk")
    return list(rows.values_list("message", flat=True))


def heard(cluster: Cluster) -> Callable[[], Any]:
    return lambda: Cluster.objects.get(pk=cluster.pk).proved_to


def expire(*kinds: str) -> None:
    """Fifteen seconds pass for leases whose holder is dead."""
    Lease.objects.filter(kind__in=kinds).update(until=timezone.now())


def test_a_machine_and_its_story_arrive(both: tuple[Cluster, Api], simulation: Simulation, watchers: Watchers) -> None:
    cluster, api = both
    watchers.start()
    eventually(heard(cluster), START)
    machine = Machine.objects.create(
        cluster=cluster,
        region=cluster.region,
        gpu_type=cluster.gpu_type,
        compute_class=ComputeClass.STANDARD,
        node_name="gpu-dp-1",
        asked_at=timezone.now(),
    )
    simulation.node(api, "gpu-dp-1", token=str(machine.pk), labels={MACHINE_LABEL: str(machine.pk)})
    eventually(lambda: Cluster.objects.get(pk=cluster.pk).allocated_standard_gpus == 8)
    arrived = eventually(lambda: Entry.objects.filter(reason="TogetherScaledUp", seen_at__isnull=False).first())
    assert arrived.source_uid
    machine.refresh_from_db()
    assert machine.state == Machine.State.JOINED
    api.delete("/api/v1/nodes/gpu-dp-1")
    eventually(lambda: Entry.objects.filter(reason="NodeLost").exists())
    assert Cluster.objects.get(pk=cluster.pk).allocated_standard_gpus == 0


def test_a_killed_watch_loses_and_doubles_nothing(both: tuple[Cluster, Api], watchers: Watchers) -> None:
    cluster, api = both
    say(api, 0)
    first = watchers.start()
    eventually(lambda: told(cluster) == ["0"], START)
    with ThreadPoolExecutor(1) as pool:
        burst = pool.submit(lambda: [say(api, number) for number in range(1, 301)])
        eventually(lambda: len(told(cluster)) > 30)
        first.kill()
        burst.result()
    first.wait()
    assert len(told(cluster)) < 301
    watchers.start()
    eventually(lambda: len(told(cluster)) >= 301, START)
    assert sorted(told(cluster), key=int) == [str(number) for number in range(301)]


def test_two_watches_share_and_neither_doubles(both: tuple[Cluster, Api], watchers: Watchers) -> None:
    cluster, api = both
    watchers.start()
    watchers.start()
    eventually(heard(cluster), START)
    for number in range(100):
        say(api, number)
    eventually(lambda: len(told(cluster)) >= 100)
    assert len(set(told(cluster))) == len(told(cluster)) == 100


def test_told_to_end_it_gives_its_clusters_to_the_next_at_once(both: tuple[Cluster, Api], watchers: Watchers) -> None:
    cluster, api = both
    first = watchers.start()
    eventually(heard(cluster), START)
    before = Lease.objects.get(kind="watch")
    second = watchers.start()
    first.send_signal(signal.SIGTERM)
    assert first.wait(20) == 0
    eventually(lambda: Lease.objects.get(kind="watch").owner != before.owner, 10)
    say(api, 1)
    eventually(lambda: told(cluster) == ["1"])
    assert second.poll() is None


def test_clusters_come_and_go_without_a_restart(both: tuple[Cluster, Api], simulation: Simulation, watchers: Watchers) -> None:
    cluster, api = both
    watchers.start()
    eventually(heard(cluster), START)
    other, other_api = connect(simulation, "borealis-eval")
    started = time.monotonic()
    say(other_api, 7)
    eventually(lambda: told(other) == ["7"])
    assert time.monotonic() - started < 4
    with transaction.atomic():  # in the order of locks: its watch is writing
        Cluster.objects.select_for_update().get(pk=other.pk).delete()
    eventually(lambda: Lease.objects.filter(kind="watch", object_id=other.pk, until__lt=timezone.now()).exists())
    say(api, 8)
    eventually(lambda: told(cluster) == ["8"])


@pytest.mark.parametrize("kind", ["expired", "cut", "garbage"])
def test_a_broken_stream_loses_nothing(both: tuple[Cluster, Api], simulation: Simulation, watchers: Watchers, kind: str) -> None:
    """410 as HTTP and inside the stream, an object cut in half, a proxy's page (apache/airflow#21087, kr8s-org/kr8s#476)."""
    cluster, api = both
    watchers.start()
    eventually(heard(cluster), START)
    simulation.control("POST", "faults", {"cluster_id": api.key, "kind": kind, "verbs": ["watch"], "times": 3})
    say(api, 1)
    simulation.node(api, "gpu-dp-1")
    say(api, 2)
    eventually(lambda: told(cluster) == ["1", "2"], 20)
    eventually(lambda: cluster.nodes.filter(ready=True).exists(), 20)
    seen = simulation.control("GET", f"requests?cluster_id={api.key}").json()
    lists = [datetime.fromisoformat(r["at"]) for r in seen if (r["verb"], r["path"], r["user_agent"]) == NODE_LIST]
    assert lists
    assert all(later - one >= timedelta(seconds=0.9) for one, later in pairwise(lists))
    assert not Entry.objects.filter(reason="KubernetesUnreachable").exists()


def test_with_the_watch_dead_one_relist_brings_everything_once(
    both: tuple[Cluster, Api], simulation: Simulation, watchers: Watchers
) -> None:
    cluster, api = both
    simulation.node(api, "gpu-dp-1")
    watch = watchers.start()
    say(api, 1)
    eventually(lambda: told(cluster) == ["1"] and cluster.nodes.count() == 1, START)
    watch.kill()
    expire("watch")
    say(api, 2)
    simulation.node(api, "gpu-dp-2")
    api.delete("/api/v1/nodes/gpu-dp-1")
    for _ in range(2):
        tasks.relist_cluster(str(cluster.pk))
    assert told(cluster) == ["1", "2"]
    assert [row.name for row in cluster.nodes.all()] == ["gpu-dp-2"]
    watchers.start()
    say(api, 3)
    eventually(lambda: told(cluster) == ["1", "2", "3"], START)
    assert Entry.objects.filter(reason="NodeLost").count() == 1
