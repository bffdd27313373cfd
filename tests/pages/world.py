"""A believable fleet straight in the rows, and people who look at it."""

import uuid
from datetime import datetime, timedelta
from decimal import Decimal

from django.contrib.auth.backends import ModelBackend
from django.db import connection
from django.test import Client
from django.utils import timezone

from console.accounts.models import Grant, Project, Role, User
from console.capacity.models import Automation, Drain, PodVerdict, Pool
from console.clusters.models import Cluster, ComputeClass, GpuType, Level, Machine, Node, Rate, Region, new_stream
from console.timeline.models import INSTALLATION, Entry, Stream

HOSTILE = '<img src=x onerror=alert(1)>"><svg onload=alert(2)></script>\u202e'


def an_installation() -> None:
    Automation.objects.get_or_create(pk=1)
    Stream.objects.get_or_create(pk=INSTALLATION, defaults={"kind": Stream.Kind.INSTALLATION})


def a_pool(region: str = "eu-north-1", gpu_type: str = "H100_SXM") -> Pool:
    """32 machines, 4 free."""
    Region.objects.get_or_create(name=region, defaults={"title": "Somewhere"})
    kind, made = GpuType.objects.get_or_create(name=gpu_type)
    if made:
        Rate.objects.create(gpu_type=kind, on_demand=Decimal("3.99"), effective_from=timezone.now() - timedelta(days=9))
    pool = Pool.objects.create(region_id=region, gpu_type=kind, total_machines=32, free_machines=4)
    Stream.objects.create(pk=pool.pk, kind=Stream.Kind.POOL)
    return pool


def a_project(slug: str = "aurora") -> Project:
    return Project.objects.get_or_create(slug=slug, defaults={"name": slug.title()})[0]


def a_cluster(pool: Pool, name: str = "aurora-train", project: str = "aurora", desired: int = 16, **more: object) -> Cluster:
    now = timezone.now()
    cluster = Cluster(
        project=a_project(project),
        name=name,
        region=pool.region,
        gpu_type=pool.gpu_type,
        created_at=now - timedelta(days=2),
        desired_standard_gpus=8,
        desired_preemptible_gpus=desired,
        target_set_at=now,
        proved_to=now,
        **{"status": Cluster.Status.READY, "target_set_by": "ada", **more},
    )
    new_stream(cluster).save()
    cluster.save()
    return cluster


def a_node(cluster: Cluster, name: str, preemptible: bool = True, **more: object) -> Node:
    """With a machine of ours under it, Ready for an hour."""
    since = timezone.now() - timedelta(hours=1)
    compute_class = ComputeClass.PREEMPTIBLE if preemptible else ComputeClass.STANDARD
    machine = Machine.objects.create(
        cluster=cluster,
        region=cluster.region,
        gpu_type=cluster.gpu_type,
        compute_class=compute_class,
        node_name=name,
        state=Machine.State.JOINED,
        asked_at=since,
        joined_at=since,
        first_ready_at=since,
    )
    fields = {"ready": True, "ready_since": since, "uid": str(uuid.uuid4()), "gpus": 8, **more}
    return Node.objects.create(
        cluster=cluster,
        machine=machine,
        name=name,
        compute_class=compute_class,
        created_at=since,
        resource_version="1",
        **fields,
    )


def a_drain(node: Node, pods: int = 2, name: str = "train") -> Drain:
    now = timezone.now()
    drain = Drain.objects.create(
        cluster=node.cluster,
        machine=node.machine,
        node_uid=node.uid,
        node_name=node.name,
        cause=Drain.Cause.PREEMPTED,
        why="atlas-serve needs 8 standard GPUs",
        state=Drain.State.TERMINATING,
        started_at=now,
        deadline=now + timedelta(seconds=300),
    )
    PodVerdict.objects.bulk_create(
        PodVerdict(drain=drain, pod_uid=f"{name}-{n}", namespace="ml", name=name, asked_grace=30, given_grace=30, told_at=now)
        for n in range(pods)
    )
    return drain


def an_entry(cluster: Cluster, message: str = "it happened", at: datetime | None = None, **more: object) -> Entry:
    moment = at or timezone.now()
    fields = {"reason": "NodeReady", **more}
    return Entry.objects.create(
        stream_id=cluster.stream, at=moment, recorded_at=moment, first_at=moment, last_at=moment, message=message, **fields
    )


def a_busy_cluster(pool: Pool, name: str, size: int) -> Cluster:
    """`size` nodes, of which some are draining, with entries and levels in proportion."""
    cluster = a_cluster(pool, name, desired=size * 8)
    for number in range(size):
        node = a_node(cluster, f"gpu-preemptible-dp-{number:04x}")
        drain = a_drain(node) if number % 3 == 0 else None
        an_entry(cluster, f"{node.name} happened", drain_id=drain.pk if drain else None)
        Level.objects.create(cluster=cluster, at=timezone.now(), desired=number, allocated=number)
    return cluster


def a_person(name: str, role: Role | None, project: str | None = None, fleet: bool = False) -> User:
    user = User.objects.create_user(name)
    if role is not None:
        where = a_project(project) if project else None
        Grant.objects.create(
            user=user, project=where, role=role, source="person", granted_at=timezone.now(), fleet_operator=fleet
        )
    return user


def browser(user: User, **more: object) -> Client:
    client = Client(**more)
    client.force_login(user, backend=f"{ModelBackend.__module__}.{ModelBackend.__qualname__}")
    return client


def a_large_cluster(pool: Pool, name: str, nodes: int, entries: int) -> Cluster:
    """Ready nodes, a tenth of them standard, and entries ten seconds apart, made in the database for their number."""
    cluster, since = a_cluster(pool, name, desired=nodes * 8), timezone.now() - timedelta(hours=1)
    machines = Machine.objects.bulk_create(
        Machine(
            cluster=cluster,
            region=cluster.region,
            gpu_type=cluster.gpu_type,
            compute_class=ComputeClass.STANDARD if number % 10 == 0 else ComputeClass.PREEMPTIBLE,
            node_name=f"gpu-dp-{number:06d}",
            state=Machine.State.JOINED,
            asked_at=since,
            joined_at=since,
            first_ready_at=since,
        )
        for number in range(nodes)
    )
    Node.objects.bulk_create(
        Node(
            cluster=cluster,
            machine=machine,
            name=machine.node_name,
            compute_class=machine.compute_class,
            uid=str(uuid.uuid4()),
            gpus=8,
            ready=True,
            ready_since=since,
            created_at=since,
            resource_version="1",
        )
        for machine in machines
    )
    example = an_entry(cluster)
    columns = [field.column for field in Entry._meta.concrete_fields if not field.primary_key]
    changed = {"revision": "n", **dict.fromkeys(("at", "first_at", "last_at"), "at - n * interval '10 seconds'")}
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Entry._meta.db_table} ({', '.join(columns)}) SELECT "
            f"{', '.join(changed.get(column, column) for column in columns)} "
            f"FROM {Entry._meta.db_table}, generate_series(1, %s) AS n WHERE id = %s",
            [entries - 1, example.pk],
        )
    return cluster
