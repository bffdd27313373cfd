"""One fleet on the real Kubernetes, or on the simulator: rows, machines, a watch, and everything that is due done as beat and
workers would do it.

Halftide is there as the ServiceAccount of `deploy/rbac.yaml` and as nobody else; what people and tests do is the admin's. A
fleet lives for a whole file of tests, each of which takes nodes of its own: joining takes longer than most of them.
"""

import asyncio
import copy
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import yaml
from django.core.management import call_command
from django.db import connection
from django.db.models import QuerySet
from django.test import override_settings
from django.utils import timezone

import console.celery  # noqa: F401  (so that hints go to the queue of the settings)
from console.capacity import sweeping
from console.capacity.drains.changes import start_drain
from console.capacity.drains.doors import open_doors
from console.capacity.drains.run import drive
from console.capacity.models import Drain, PodVerdict
from console.capacity.pools.reconcile import reconcile_pool
from console.capacity.reclaims.notices import heed_waiting
from console.capacity.reclaims.reclaim import reclaim
from console.capacity.services import set_target
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.clusters.secrets import seal
from console.env import ROOT
from console.runner.controlplane.files import kubeconfig
from console.sync.shifts import Shifts
from console.timeline.changes import change
from console.timeline.models import Entry
from tests.capacity.rows import a_cluster, a_pool, person
from tests.controlplane.plane import Account, Json, Plane
from tests.real.machines import Machines
from tests.real.simulated import SimulatedMachines, SimulatedPlane
from tests.simulator.conftest import Simulation

DEPLOY = list(yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text()))
PROGRAM = "simulator.halftide.io/"
MINE = "test.halftide.io/fleet"
WINDOW = 60  # seconds that a drain has: a pod that stops by itself ends it sooner


def rules(*roles: str) -> list[Json]:
    """The rules of these ClusterRoles of the shipped file."""
    found = {item["metadata"]["name"]: item for item in DEPLOY if item["kind"] == "ClusterRole"}
    return [copy.deepcopy(rule) for role in roles for rule in found[role]["rules"]]


class Watching:
    """`manage.py watch`, on a thread of its own."""

    def __enter__(self) -> "Watching":
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="watching")
        self._thread.start()
        self._ready.wait()
        return self

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await Shifts(timezone.now).run(self._stop)

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """May be said twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(30)
            assert not self._thread.is_alive()


class Fleet:
    """A cluster with one standard machine and some preemptible ones."""

    def __init__(self, plane: Any, namespace: str, machines: Any, account: Account, **row: Any) -> None:
        """`plane` and `machines` are those of a real Kubernetes, or the simulator's (`simulated`), which look the same."""
        self.plane, self.namespace, self.machines, self.account = plane, namespace, machines, account
        self.real = isinstance(plane, Plane)
        self.provider, self.watching = machines.provider, Watching()
        self.audit = plane.audit()
        self.pool = a_pool()
        self.cluster = a_cluster(self.pool, name=namespace, standard=8, kubeconfig=seal(account.kubeconfig), **row)
        self.olu = person(fleet_operator=True)

    # What beat and workers do

    def turn(self) -> None:
        """One second's worth: whatever is due is done."""
        now = timezone.now()
        for task, object_id in sweeping.due(now):
            if task == sweeping.DRIVE:
                drive(object_id, doors=partial(open_doors, open_provider=self.provider))
            else:
                reconcile_pool(uuid.UUID(object_id), f"worker-{uuid.uuid4().hex[:6]}", open_provider=self.provider)
        sweeping.notice("simulated", [self.machines.state()], now)
        heed_waiting(now)

    def until(self, true: Callable[[], Any], seconds: float = 30) -> Any:
        """Turn until it is so; what it gave."""
        end = time.monotonic() + seconds
        while not (found := true()):
            assert time.monotonic() < end, f"not within {seconds} s: {list(Drain.objects.values('node_name', 'state', 'note'))}"
            self.turn()
            time.sleep(0.1)
        return found

    def wants(self, preemptible: int) -> None:
        """Ask for so many preemptible machines, as a person does, and wait until they count; one that was kept may be more."""
        set_target(self.olu, self.fresh(), 8 * preemptible)
        self.until(lambda: self.fresh().allocated_preemptible_gpus >= 8 * preemptible, 60)

    def fresh(self) -> Cluster:
        self.cluster.refresh_from_db()
        return self.cluster

    # Taking nodes back

    def open_nodes(self) -> QuerySet[Node]:
        """The preemptible nodes that count."""
        found = Node.objects.filter(cluster=self.cluster, compute_class=ComputeClass.PREEMPTIBLE, ready=True, draining=False)
        return found.order_by("pk")

    def node(self) -> Node:
        """One of them that nobody is at: no bare pod, no cordon."""
        taken = {pod["spec"].get("nodeName") for pod in self.pods() if "ownerReferences" not in pod["metadata"]}
        return next(node for node in self.open_nodes() if node.name not in taken and not node.unschedulable)

    def standard(self) -> Node:
        return Node.objects.get(cluster=self.cluster, compute_class=ComputeClass.STANDARD, ready=True)

    def preempt(self, *nodes: Node, window: int = WINDOW) -> list[Drain]:
        """As a fleet operator does it."""
        with override_settings(DRAIN_WINDOW=window):
            row = reclaim(self.olu, self.cluster, nodes=[node.name for node in nodes])
        return list(Drain.objects.filter(reclaim=row).order_by("node_name"))

    def scale_down(self, node: Node, window: int = WINDOW) -> Drain:
        """The plan's other cause, for this node."""
        now = timezone.now()
        until = now + timedelta(seconds=window)
        with change(now) as made:
            cluster = made.lock(Cluster.objects.filter(pk=node.cluster_id))[0]
            machine = made.lock(Machine.objects.filter(pk=node.machine_id))[0]
            rows = made.lock(Node.objects.filter(pk=node.pk))
            cause = Drain.Cause.SCALED_DOWN
            return start_drain(made, cluster, machine, rows[0], cause, "target from 32 to 24", "", now, deadline=until)

    def finish(self, *drains: Drain, seconds: float = 40) -> None:
        """Until these have ended."""
        keys = [drain.pk for drain in drains]
        self.until(lambda: not Drain.objects.filter(pk__in=keys, due_at__isnull=False).exists(), seconds)
        for drain in drains:
            drain.refresh_from_db()

    def fates(self, drain: Drain) -> dict[str, PodVerdict]:
        return {row.name: row for row in PodVerdict.objects.filter(drain=drain)}

    def entries(self, drain: Drain) -> list[str]:
        """The reasons of what the timeline says of a drain's node, in order, without what Kubernetes says."""
        rows = Entry.objects.filter(stream=self.cluster.stream, subject_name=drain.node_name).exclude(actor_kind="kubernetes")
        return list(rows.order_by("revision").values_list("reason", flat=True))

    def nodes(self) -> list[Json]:
        """The Nodes of its machines, as Kubernetes has them."""
        return list(self.ask("GET", f"/api/v1/nodes?labelSelector={self.machines.selector}")["items"])

    def machine_rows(self) -> int:
        return Machine.objects.filter(cluster=self.cluster, state__in=Machine.ALIVE).count()

    # What people and programs do in the cluster

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Json:
        return self.plane.ask(method, path.replace("{ns}", self.namespace), body, kind)

    def patch(self, path: str, body: Json) -> Json:
        return self.ask("PATCH", path, body, "application/merge-patch+json")

    def there(self, path: str) -> bool:
        return self.plane.http.get(path.replace("{ns}", self.namespace)).status_code == 200

    def pods(self, **labels: str) -> list[Json]:
        wanted = ",".join(f"{key}={value}" for key, value in labels.items())
        return list(self.ask("GET", f"/api/v1/namespaces/{{ns}}/pods?labelSelector={wanted}")["items"])

    def run(self, name: str, node: str, grace: int = 30, notes: Json | None = None, app: str = "", **spec: Any) -> None:
        """A bare pod on a node; `notes` are its annotations, `app` (or its name) its label."""
        about = {"name": name, "annotations": notes or {}, "labels": {"app": app or name}}
        self.ask("POST", "/api/v1/namespaces/{ns}/pods", {"metadata": about, "spec": pod(grace, nodeName=node, **spec)})

    def budget(self, name: str, least: int | str, **labels: str) -> None:
        """A disruption budget, once the real disruption controller has counted its pods."""
        where = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
        spec = {"minAvailable": least, "selector": {"matchLabels": labels}}
        self.ask("POST", where, {"metadata": {"name": name}, "spec": spec})
        self.until(lambda: self.ask("GET", f"{where}/{name}").get("status", {}).get("currentHealthy"))


def pod(grace: int = 30, *, gpus: int = 0, **spec: Any) -> Json:
    """A pod's spec."""
    container: Json = {"name": "main", "image": "registry.example/box:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {"terminationGracePeriodSeconds": grace, "containers": [container], **spec}


def program(**what: str) -> dict[str, str]:
    """Annotations that say how a simulated process takes SIGTERM."""
    return {PROGRAM + key.replace("_", "-"): value for key, value in what.items()}


def shipped(plane: Plane) -> Account:
    """The account of `deploy/rbac.yaml`, as its reader would make it."""
    done = plane.kubectl("apply", "-f", str(ROOT / "deploy" / "rbac.yaml"))
    assert done.returncode == 0, done.stderr
    token = plane.kubectl("-n", "halftide", "create", "token", "halftide").stdout.strip()
    return Account("system:serviceaccount:halftide:halftide", token, kubeconfig(plane.url, plane.authority.read_bytes(), token))


@contextmanager
def fleet(plane: Plane, blocker: Any, total: int) -> Iterator[Fleet]:
    """A fleet of `total` machines at most, with its standard one Ready. All rows are gone at the end."""
    with ExitStack() as stack:
        stack.enter_context(blocker.unblock())
        namespace = stack.enter_context(plane.namespace("real"))
        machines = stack.enter_context(Machines(plane, {MINE: namespace}, total))
        yield stack.enter_context(living(lambda: Fleet(plane, namespace, machines, shipped(plane))))


@contextmanager
def simulated(simulation: Simulation, blocker: Any, total: int) -> Iterator[Fleet]:
    """The same on a cluster of the simulator's own, with its own machines and controllers."""
    with ExitStack() as stack:
        stack.enter_context(blocker.unblock())
        stack.enter_context(override_settings(SIM_URL=simulation.url, STATE_DIR=simulation.state))
        plane = SimulatedPlane(simulation)
        machines, account = SimulatedMachines(simulation, plane.api, total), Account("halftide", "", plane.kubeconfig)
        namespace, row = stack.enter_context(plane.namespace("sim")), uuid.UUID(plane.api.key)
        yield stack.enter_context(living(lambda: Fleet(plane, namespace, machines, account, id=row)))


@contextmanager
def living(make: Callable[[], Fleet]) -> Iterator[Fleet]:
    """With a watch and its standard machine, until it is taken away with all rows."""
    try:
        found = make()
        with found.watching:
            found.until(lambda: found.fresh().allocated_standard_gpus == 8)
            yield found
    finally:
        call_command("flush", verbosity=0, interactive=False)
        connection.close()


def since(start: datetime, at: datetime | None) -> timedelta:
    assert at is not None
    return at - start
