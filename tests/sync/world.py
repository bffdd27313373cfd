"""A cluster with a machine or two, shapes as Kubernetes would give them, and a room to write them from."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from console.accounts.models import Project
from console.capacity.models import Pool
from console.clusters import leases
from console.clusters.models import Cluster, ComputeClass, GpuType, Machine, Node, Region, new_stream
from console.clusters.secrets import seal
from console.kube import marks
from console.kube.errors import KubeError
from console.kube.shapes import ChangeType, Condition, EventShape, Kind, Listing, NodeShape, PodShape, Shape
from console.kube.watch import Failed, Heard, Listed
from console.sync.errands import Errand
from console.sync.room import Item, Room, Seen, Tick, items
from console.sync.writer import enter, write
from console.timeline.models import Entry

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)


def node(name: str = "gpu-preemptible-dp-a", version: int = 10, **more: object) -> NodeShape:
    """A Ready node with eight GPUs, seen at noon."""
    shape = NodeShape(
        uid=f"uid-{name}",
        name=name,
        resource_version=str(version),
        created_at=NOON - timedelta(seconds=30),
        labels={},
        annotations={},
        taints=(),
        unschedulable=False,
        ready=True,
        ready_since=NOON,
        gpus=8,
        kubelet_version="v1.36.3",
        internal_ip="127.1.0.1",
        deletion_at=None,
        finalizers=(),
        conditions=(),
    )
    return replace(shape, **more)  # type: ignore[arg-type]


def not_ready(shape: NodeShape, ready: bool | None, reason: str, message: str = "", since: datetime | None = None) -> NodeShape:
    """The same node, not Ready, for a reason."""
    condition = Condition("Ready", "Unknown" if ready is None else "False", reason, message, since)
    return replace(shape, ready=ready, ready_since=since, conditions=(condition,))


def of_machine(machine: Machine, version: int = 10, **more: object) -> NodeShape:
    """The node of a machine of ours."""
    labels = {marks.MACHINE_LABEL: str(machine.pk)}
    if machine.compute_class == ComputeClass.PREEMPTIBLE:
        labels[marks.CLASS_LABEL] = marks.PREEMPTIBLE
    return node(machine.node_name, version, labels=labels, **more)


def pod(name: str = "train-0", node_name: str = "gpu-preemptible-dp-a", version: int = 20, **more: object) -> PodShape:
    """A running pod of a job."""
    shape = PodShape(
        uid=f"uid-{name}",
        namespace="team",
        name=name,
        resource_version=str(version),
        node_name=node_name,
        phase="Running",
        owner_kind="Job",
        owner_name="train",
        daemonset=False,
        mirror=False,
        created_at=NOON,
        started_at=NOON,
        ready=True,
        deletion_at=None,
        deletion_grace=None,
        grace_seconds=120,
        labels={},
        last_checkpoint=None,
        finished=False,
        ended_at=None,
        exit_code=None,
        reason="",
        gpus=8,
        prefers={},
        finalizers=(),
    )
    return replace(shape, **more)  # type: ignore[arg-type]


def event(uid: str = "event-1", reason: str = "Rebooted", involved: Shape | None = None, **more: object) -> EventShape:
    """A Warning about a node, or about what is given."""
    about = involved or node()
    assert isinstance(about, NodeShape | PodShape)
    shape = EventShape(
        uid=uid,
        namespace="default",
        name=f"name-{uid}",
        resource_version="30",
        type="Warning",
        reason=reason,
        message="what happened",
        count=1,
        first_at=NOON,
        last_at=NOON,
        at=NOON,
        from_future=False,
        reporting_component="kubelet",
        involved_kind="Pod" if isinstance(about, PodShape) else "Node",
        involved_name=about.name,
        involved_namespace=about.namespace if isinstance(about, PodShape) else "",
        involved_uid=about.uid if isinstance(about, PodShape) else about.name,  # as kubelets write it
    )
    return replace(shape, **more)  # type: ignore[arg-type]


KIND: dict[type, Kind] = {NodeShape: "nodes", PodShape: "pods", EventShape: "events"}


@dataclass
class Line:
    """One cluster's line from the watch to the rows; time moves by hand."""

    cluster: Cluster
    room: Room
    now: datetime = NOON

    def write(self, *waiting: Item) -> list[Errand]:
        """Write it in one batch."""
        return write(self.room, waiting, self.now)

    def listed(self, kind: Kind, shapes: Sequence[Shape], version: int = 100, broken: tuple[str, ...] = ()) -> list[Item]:
        """A list as the follower gives it."""
        signal = Listed(Listing(kind, str(version), tuple(shapes), broken))
        return list(items(kind, signal, self.now, self.room.floors.get(kind, "")))

    def seen(self, *shapes: Shape, type_: ChangeType = "MODIFIED") -> list[Item]:
        """Changes as the watch gives them."""
        return [Seen(KIND[type(shape)], type_, shape, shape.resource_version, self.now) for shape in shapes]

    def heard(self, kind: Kind) -> list[Item]:
        return list(items(kind, Heard(self.now, ""), self.now))

    def failed(self, kind: Kind, sentence: str, since: datetime) -> list[Item]:
        return list(items(kind, Failed(KubeError(sentence), since, self.now + timedelta(seconds=1)), self.now))

    def tick(self, seconds: float) -> list[Errand]:
        """Time passes."""
        self.now += timedelta(seconds=seconds)
        return self.write(Tick())

    def restart(self) -> None:
        """Another watcher takes over: nothing is remembered."""
        held = leases.take("watch", self.cluster.pk, f"watcher-{uuid.uuid4().hex}")
        if held is None:
            leases.release(self.room.held)
            held = leases.take("watch", self.cluster.pk, f"watcher-{uuid.uuid4().hex}")
        assert held
        self.room = enter(self.cluster.pk, held)

    @property
    def reasons(self) -> list[str]:
        return list(Entry.objects.filter(stream=self.cluster.stream).order_by("revision").values_list("reason", flat=True))

    @property
    def nodes(self) -> dict[str, Node]:
        return {row.name: row for row in Node.objects.filter(cluster=self.cluster)}

    def fresh(self) -> Cluster:
        self.cluster.refresh_from_db()
        return self.cluster


def new_pool() -> Pool:
    region, _ = Region.objects.get_or_create(name="eu-north-1", defaults={"title": "Stockholm"})
    gpu_type, _ = GpuType.objects.get_or_create(name="H100_SXM")
    return Pool.objects.get_or_create(region=region, gpu_type=gpu_type)[0]


def new_cluster(name: str = "aurora-train", kubeconfig: str | None = None) -> Cluster:
    """A cluster of the Aurora project; with a kubeconfig, watchers will find it."""
    pool = new_pool()
    project, _ = Project.objects.get_or_create(slug="aurora", defaults={"name": "Aurora Labs"})
    cluster = Cluster(
        project=project,
        name=name,
        region=pool.region,
        gpu_type=pool.gpu_type,
        created_at=NOON,
        desired_standard_gpus=8,
        desired_preemptible_gpus=16,
        kubeconfig=seal(kubeconfig) if kubeconfig else None,
    )
    new_stream(cluster).save(force_insert=True)
    cluster.save(force_insert=True)
    return cluster


def new_machine(cluster: Cluster) -> Machine:
    """A preemptible machine, asked for 3 min 48 s before noon."""
    return Machine.objects.create(
        cluster=cluster,
        region=cluster.region,
        gpu_type=cluster.gpu_type,
        compute_class=ComputeClass.PREEMPTIBLE,
        node_name="gpu-preemptible-dp-a",
        state=Machine.State.BOOTING,
        asked_at=NOON - timedelta(seconds=228),
    )


def new_line(cluster: Cluster) -> Line:
    held = leases.take("watch", cluster.pk, "watcher-1")
    assert held
    return Line(cluster, enter(cluster.pk, held))
