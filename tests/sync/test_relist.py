"""With the watch dead Celery lists, through the same writer; with it alive it stays out of the way."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from console.clusters import leases
from console.clusters.models import Cluster, Machine
from console.kube.errors import Forbidden, Unreachable
from console.kube.kubeconfig import Connection
from console.kube.shapes import Kind, Listing, Shape
from console.sync import tasks
from console.timeline.models import Entry
from tests.sync.world import event, new_cluster, node, of_machine, pod

KUBECONFIG = Connection("http://127.0.0.1:1").to_kubeconfig("aurora-train")


class Api:
    """What the cluster's API would list."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[Kind, Sequence[Shape]] = {"nodes": [], "pods": [], "events": []}
        self.errors: dict[Kind, Exception] = {}
        self.lists: list[Kind] = []

    async def list(self, connection: Connection, kind: Kind) -> tuple[Listing, float]:
        self.lists.append(kind)
        if kind in self.errors:
            raise self.errors[kind]
        return Listing(kind, str(self.version), tuple(self.objects[kind])), 0.0


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    found = Api()
    monkeypatch.setattr(tasks, "_list", found.list)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was put into the queue."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks.relist_cluster, "apply_async", lambda args, **options: sent.append((args, options)))
    return sent


@pytest.fixture
def there(db: None) -> Cluster:
    return new_cluster(kubeconfig=KUBECONFIG)


def reasons() -> list[str]:
    return list(Entry.objects.order_by("revision").values_list("reason", flat=True))


def test_every_change_comes_in_once(there: Cluster, api: Api) -> None:
    api.objects = {"nodes": [node("gpu-dp-1"), node("gpu-dp-2")], "pods": [pod("one", "gpu-dp-1")], "events": [event()]}
    tasks.relist_cluster(str(there.pk))
    api.version, api.objects = 200, {"nodes": [node("gpu-dp-1")], "pods": [], "events": [event(count=3)]}
    tasks.relist_cluster(str(there.pk))
    tasks.relist_cluster(str(there.pk))
    there.refresh_from_db()
    assert (there.allocated_standard_gpus, there.nodes.count(), there.pods.count()) == (8, 1, 0)
    assert sorted(reasons()) == ["NodeLost", "Rebooted"]
    assert Entry.objects.get(reason="Rebooted").count == 3


def test_it_proves_the_picture_as_of_when_it_asked(there: Cluster, api: Api) -> None:
    before = timezone.now()
    tasks.relist_cluster(str(there.pk))
    there.refresh_from_db()
    assert there.proved_to is not None
    assert before <= there.proved_to <= timezone.now()


def test_a_watched_cluster_is_left_alone(there: Cluster, api: Api, asked: list[Any]) -> None:
    leases.take("watch", there.pk, "watcher")
    Cluster.objects.update(proved_to=timezone.now() - timedelta(seconds=20))
    tasks.relist_all()
    tasks.relist_cluster(str(there.pk))
    assert (asked, api.lists) == ([], [])


def test_a_watch_that_proves_nothing_is_helped(there: Cluster, asked: list[Any]) -> None:
    leases.take("watch", there.pk, "watcher")
    Cluster.objects.update(proved_to=timezone.now() - timedelta(seconds=50))
    tasks.relist_all()
    assert len(asked) == 1


def test_a_cluster_that_has_just_come_is_left_to_its_watch(there: Cluster, asked: list[Any]) -> None:
    """HolmesGPT/holmesgpt#2438: nobody lists a huge cluster a second time while it is listed the first time."""
    leases.take("watch", there.pk, "watcher")
    Cluster.objects.update(created_at=timezone.now() - timedelta(seconds=30))
    tasks.relist_all()
    assert asked == []
    Cluster.objects.update(created_at=timezone.now() - timedelta(seconds=50))
    tasks.relist_all()
    assert len(asked) == 1


def test_a_watch_that_says_why_it_proves_nothing_is_believed(there: Cluster, asked: list[Any]) -> None:
    """An API that is down must not fill the slow queue with time-outs."""
    leases.take("watch", there.pk, "watcher")
    Cluster.objects.update(proved_to=timezone.now() - timedelta(seconds=50), unreachable_since=timezone.now())
    tasks.relist_all()
    assert asked == []


def test_a_dead_watch_is_replaced(there: Cluster, asked: list[Any]) -> None:
    held = leases.take("watch", there.pk, "watcher")
    assert held
    leases.release(held)
    Cluster.objects.update(proved_to=timezone.now())
    tasks.relist_all()
    assert asked == [], "what it had just proved needs no list yet"
    Cluster.objects.update(proved_to=timezone.now() - tasks.RECENT)
    tasks.relist_all()
    [(args, options)] = asked
    assert args[0] == str(there.pk)
    assert (options["queue"], options["expires"] < 60) == ("bulk", True)


def test_one_runs_at_a_time(there: Cluster, api: Api, asked: list[Any]) -> None:
    """Runs never pile up on a slow API (paperless-ngx/paperless-ngx#2604)."""
    leases.take("relist", there.pk, "another run")
    tasks.relist_all()
    tasks.relist_cluster(str(there.pk))
    assert (asked, api.lists) == ([], [])


def test_a_run_gives_its_lease_back(there: Cluster, api: Api) -> None:
    tasks.relist_cluster(str(there.pk))
    assert leases.take("relist", there.pk, "the next run")


def test_where_the_first_kind_took_long_the_others_get_a_task_of_their_own(
    there: Cluster, api: Api, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "STEP", 0)
    tasks.relist_cluster(str(there.pk))
    assert api.lists == ["nodes"]
    assert asked[0][0] == [str(there.pk), ["pods", "events"]]
    tasks.relist_cluster(*asked[0][0])
    assert api.lists == ["nodes", "pods"]


@pytest.mark.parametrize("error", [Forbidden("nodes is forbidden"), Unreachable("No connection.")])
def test_a_list_that_fails_removes_nothing_and_says_since_when(there: Cluster, api: Api, error: Exception) -> None:
    api.objects["nodes"] = [node("gpu-dp-1")]
    tasks.relist_cluster(str(there.pk))
    proved = timezone.now() - timedelta(minutes=2)
    Cluster.objects.update(proved_to=proved)
    api.errors["nodes"] = error
    for _ in range(2):
        tasks.relist_cluster(str(there.pk))
    there.refresh_from_db()
    assert (there.nodes.count(), there.unreachable_since, there.proved_to) == (1, proved, proved)
    api.errors.clear()
    tasks.relist_cluster(str(there.pk))
    there.refresh_from_db()
    assert there.unreachable_since is None
    assert reasons() == ["KubernetesUnreachable", "KubernetesBack"]


def test_an_older_list_is_refused(there: Cluster, api: Api) -> None:
    api.objects["nodes"] = [node("gpu-dp-1")]
    tasks.relist_cluster(str(there.pk))
    api.version, api.objects["nodes"] = 50, []
    tasks.relist_cluster(str(there.pk))
    assert there.nodes.count() == 1


def test_a_machine_that_arrived_meanwhile_is_told(there: Cluster, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []

    async def note(connection: Connection, cluster_id: object, todo: Sequence[object]) -> None:
        done.extend(todo)

    monkeypatch.setattr(tasks, "_errands", note)
    machine = Machine.objects.create(
        cluster=there,
        region=there.region,
        gpu_type=there.gpu_type,
        compute_class="preemptible",
        node_name="gpu-preemptible-dp-a",
        asked_at=timezone.now(),
    )
    api.objects["nodes"] = [of_machine(machine)]
    tasks.relist_cluster(str(there.pk))
    assert reasons() == ["TogetherScaledUp"]
    assert len(done) == 1
