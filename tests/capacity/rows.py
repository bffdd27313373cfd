"""A small fleet as rows: a pool, clusters, and what Kubernetes would have shown of their machines."""

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from console.accounts.access import Actor
from console.accounts.models import Project, Role, User
from console.capacity.models import Pool, new_pool_stream
from console.clusters.changes import count_allocated
from console.clusters.models import Cluster, GpuType, Machine, Node, Rate, Region, new_stream
from console.timeline.changes import change

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **much: float) -> None:
        self.now += timedelta(**much)


def a_pool(region: str = "eu-north-1", gpu_type: str = "H100_SXM") -> Pool:
    place, _ = Region.objects.get_or_create(name=region, defaults={"title": region})
    kind, made = GpuType.objects.get_or_create(name=gpu_type)
    if made:
        Rate.objects.create(gpu_type=kind, on_demand=Decimal("3.99"), effective_from=datetime(2026, 1, 1, tzinfo=UTC))
    pool = Pool.objects.create(region=place, gpu_type=kind)
    new_pool_stream(pool).save()
    return pool


def a_project(slug: str = "aurora") -> Project:
    return Project.objects.get_or_create(slug=slug, defaults={"name": f"{slug.title()} Labs"})[0]


def a_cluster(pool: Pool, name: str = "aurora-train", standard: int = 8, preemptible: int = 0, **more: object) -> Cluster:
    """Ready to be acted on."""
    fields = {"status": Cluster.Status.READY, "created_at": NOON, "target_set_at": NOON, **more}
    cluster = Cluster(
        project=a_project(),
        name=name,
        region=pool.region,
        gpu_type=pool.gpu_type,
        desired_standard_gpus=standard,
        desired_preemptible_gpus=preemptible,
        **fields,
    )
    new_stream(cluster).save()
    cluster.save()
    return cluster


def ask(cluster: Cluster, **desired: object) -> None:
    """Change what is asked for without the service around it."""
    Cluster.objects.filter(pk=cluster.pk).update(**desired)


def person(role: Role = Role.OPERATOR, name: str = "olu", fleet_operator: bool = False) -> Actor:
    user = User.objects.get_or_create(username=name)[0]
    return Actor(user=user, everywhere=role, fleet_operator=fleet_operator)


def becomes_ready(machine: Machine, at: datetime, ready: bool = True) -> Node:
    """What the watch writes when a machine's node is there."""
    with change(at) as made:
        cluster = made.lock(Cluster.objects.filter(pk=machine.cluster_id))[0]
        row = made.lock(Machine.objects.filter(pk=machine.pk))[0]
        row.state, row.joined_at, row.first_ready_at = Machine.State.JOINED, at, row.first_ready_at or at
        made.save(cluster.stream, row, "state", "joined_at", "first_ready_at")
        node = Node.objects.filter(machine=row).first() or Node(
            cluster=cluster,
            machine=row,
            uid=str(uuid.uuid4()),
            name=row.node_name,
            compute_class=row.compute_class,
            gpus=row.gpus,
            created_at=at,
            resource_version="1",
        )
        node.ready, node.ready_since = ready, at
        made.save(cluster.stream, node, "ready", "ready_since")
        count_allocated(made, cluster)
    return node


def all_become_ready(at: datetime) -> None:
    for machine in Machine.objects.filter(state__in=[Machine.State.ASKED, Machine.State.BOOTING]):
        becomes_ready(machine, at)
