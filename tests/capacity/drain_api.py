"""Rows of a small fleet, and a Kubernetes API and provider in memory that can be killed at any request."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import console.celery  # noqa: F401  (so that hints go to the queue of the settings)
from console.accounts.models import Project
from console.capacity.drains.acts import Doors
from console.capacity.drains.changes import start_drain
from console.capacity.drains.run import drive
from console.capacity.drains.verdicts import Fate
from console.capacity.drains.views import Announce, Cordon, Delete, Evict, RemoveNode, Unmark
from console.capacity.models import Drain, Pool
from console.clusters.models import Cluster, ComputeClass, GpuType, Machine, Node, Region, new_stream
from console.kube import errors, marks
from console.kube.shapes import Absent, Blocked, Evicted, Listing, NodeShape, PodShape
from console.timeline.changes import change
from console.timeline.models import Stream
from tests.capacity.drain_world import START, Pod, World


class Killed(BaseException):
    """The process died here: nothing that catches errors sees it."""


@dataclass
class Api:
    """Worlds by node name, on one clock. `dies_at`: the n-th request is never answered; `late`: but it was carried out."""

    worlds: dict[str, World]
    now: datetime = START
    requests: int = 0
    dies_at: int = 0
    late: bool = False
    down: bool = False
    machine_label: str = ""
    events: dict[str, str] = field(default_factory=dict)
    told: list[tuple[datetime, str]] = field(default_factory=list)
    evictions: list[tuple[str, int]] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    broken: tuple[str, ...] = ()  # what cannot be read in a list of everything

    @asynccontextmanager
    async def doors(self, keys: object) -> AsyncIterator[Doors]:
        async def end_machine(machine: Machine) -> bool:
            world = self._world(machine.node_name)

            def end() -> bool:
                world.terminating_since = world.terminating_since or world.now
                return world.machine_gone

            return self._request(end, provider=True)

        yield Doors(self, "", end_machine)  # type: ignore[arg-type]

    def _world(self, name: str) -> World:
        world = self.worlds[name]
        world.now = self.now
        return world

    def _request(self, act, *, provider: bool = False):
        self.requests += 1
        if self.down and not provider:
            raise errors.Unreachable("The Kubernetes API cannot be reached.")
        if self.requests == self.dies_at:
            if self.late:
                act()
            raise Killed
        return act()

    async def node(self, name: str) -> NodeShape:
        world = self._world(name)

        def get() -> NodeShape:
            if not world.node_there:
                raise errors.NotFound("no node")
            return self._node(name, world)

        return self._request(get)

    def _node(self, name: str, world: World) -> NodeShape:
        notes = {marks.CORDONED_BY: marks.SYSTEM} if world.mark else {}
        if world.cause:
            notes |= {marks.DRAIN_CAUSE: world.cause, marks.DRAIN_DEADLINE: world.deadline.isoformat()}
        return node_shape(name, notes, world, {marks.MACHINE_LABEL: self.machine_label})

    async def list(self, kind: str, *, fields: str = "") -> Listing:
        """The pods of one node, or all nodes or pods there are."""
        here = [fields.partition("=")[2]] if fields else list(self.worlds)

        def get() -> tuple:
            worlds = {name: self._world(name) for name in here}
            if kind == "nodes":
                return tuple(self._node(name, world) for name, world in worlds.items() if world.node_there)
            return tuple(pod_shape(view, name) for name, world in worlds.items() for view in world.look().pods)

        self.lists += [fields or f"all {kind}"]
        return Listing(kind, "1", self._request(get), broken=self.broken if not fields else ())

    async def cordon(self, name: str, uid: str, *, cause: str, deadline: datetime, by: str | None) -> None:
        world = self._world(name)

        def patch() -> None:
            world.unschedulable, world.mark = True, world.mark or by is not None
            world.cause, world.deadline = cause, deadline

        self._request(patch)

    async def emit_event(self, *, name: str, message: str, **rest: object) -> None:
        self._request(lambda: self.events.setdefault(name, message))

    async def evict(self, namespace: str, name: str, uid: str, grace: int) -> Evicted | Blocked | Absent:
        self.evictions.append((name, grace))
        return self._request(lambda: self._do(Evict(Fate(uid, namespace, name), grace)))

    async def delete_pod(self, namespace: str, name: str, uid: str, grace: int) -> bool:
        return self._request(lambda: self._do(Delete(Fate(uid, namespace, name), grace)))

    def _do(self, action: Evict | Delete):
        world = next(world for world in self.worlds.values() if any(pod.name == action.fate.name for pod in world.pods))
        world.now = self.now
        before = world.pod(action.fate.name).told_at
        answer = world.do(None, action)  # type: ignore[arg-type]
        if before is None and world.pod(action.fate.name).told_at is not None:
            self.told.append((self.now, action.fate.name))
        return answer

    async def delete_node(self, name: str, uid: str) -> bool:
        return self._request(lambda: self._world(name).do(None, RemoveNode()))  # type: ignore[arg-type,return-value]

    async def unmark(self, name: str, uid: str, resource_version: str) -> None:
        self._request(lambda: self._world(name).do(None, Unmark()))  # type: ignore[arg-type]

    def drive(self, cluster: Cluster) -> None:
        drive(cluster.pk, doors=self.doors, clock=lambda: self.now)

    def finish(self, cluster: Cluster, until: timedelta = timedelta(minutes=10)) -> None:
        """Drive whenever something is due, until nothing is; what falls due in the past is due now."""
        for _ in range(300):
            self.drive(cluster)
            due = Drain.objects.filter(cluster=cluster, due_at__isnull=False).order_by("due_at").first()
            if due is None:
                return
            self.now = max(self.now, due.due_at)
            assert self.now < START + until, "never ends"
        raise AssertionError("never ends")


def node_shape(name: str, notes: dict[str, str], world: World, labels: dict[str, str]) -> NodeShape:
    return NodeShape(
        uid=f"uid-{name}", name=name, resource_version="1", created_at=START, labels=labels, annotations=notes, taints=(),
        unschedulable=world.unschedulable, ready=world.ready, ready_since=START, gpus=8, kubelet_version="", internal_ip="",
        deletion_at=None, finalizers=(), conditions=(),
    )  # fmt: skip


def pod_shape(view, node: str) -> PodShape:
    return PodShape(
        uid=view.uid, namespace=view.namespace, name=view.name, resource_version="1", node_name=node, phase="Running",
        owner_kind=view.owner_kind, owner_name=view.owner_name, daemonset=view.stays, mirror=False, created_at=START,
        started_at=START, ready=True, deletion_at=view.deletion_at, deletion_grace=view.deletion_grace,
        grace_seconds=view.grace_seconds, labels={}, last_checkpoint=None, finished=view.finished, ended_at=view.ended_at,
        exit_code=view.exit_code, reason="", gpus=1, prefers={}, finalizers=(),
    )  # fmt: skip


def fleet(*names: str, cluster_name: str = "aurora-train", mode: str = Cluster.Mode.ACT) -> Cluster:
    """A cluster with a joined preemptible machine and a Ready node for each name."""
    project, _ = Project.objects.get_or_create(slug="aurora", defaults={"name": "Aurora Labs"})
    region, _ = Region.objects.get_or_create(name="eu-north-1", defaults={"title": "Europe North"})
    gpu_type, _ = GpuType.objects.get_or_create(name="H100_SXM")
    pool, fresh = Pool.objects.get_or_create(region=region, gpu_type=gpu_type)
    if fresh:
        Stream.objects.create(id=pool.pk, kind=Stream.Kind.POOL)
    cluster = Cluster(
        project=project, name=cluster_name, region=region, gpu_type=gpu_type, created_at=START, mode=mode,
        desired_standard_gpus=16, desired_preemptible_gpus=8 * len(names), allocated_preemptible_gpus=8 * len(names),
    )  # fmt: skip
    new_stream(cluster).save(force_insert=True)
    cluster.save(force_insert=True)
    for name in names:
        add_node(cluster, name)
    return cluster


def add_node(cluster: Cluster, name: str, compute_class: str = ComputeClass.PREEMPTIBLE) -> Node:
    machine = Machine.objects.create(
        id=uuid.uuid5(cluster.pk, name), cluster=cluster, region=cluster.region, gpu_type=cluster.gpu_type,
        compute_class=compute_class, node_name=name, state=Machine.State.JOINED, asked_at=START, joined_at=START,
        first_ready_at=START,
    )  # fmt: skip
    return Node.objects.create(
        cluster=cluster, machine=machine, uid=f"uid-{name}", name=name, compute_class=compute_class, gpus=8, ready=True,
        ready_since=START, created_at=START, resource_version="1",
    )  # fmt: skip


def begin(cluster: Cluster, name: str, cause: str = Drain.Cause.PREEMPTED, **more) -> Drain:
    """Start a drain as the plan does."""
    with change(more.pop("now", START)) as made:
        mine = made.lock(Cluster.objects.filter(pk=cluster.pk))[0]
        machine = made.lock(Machine.objects.filter(cluster=mine, node_name=name))[0]
        node = made.lock(Node.objects.filter(cluster=mine, name=name))[0]
        return start_drain(made, mine, machine, node, cause, "atlas-serve needs 8 standard GPUs", "", made.now, **more)


def world(*pods: Pod, **more) -> World:
    return World(list(pods), **more)


__all__ = ["Announce", "Api", "Cordon", "Killed", "Pod", "add_node", "begin", "fleet", "world"]
