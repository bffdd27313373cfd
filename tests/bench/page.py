"""The cluster page with 1,000 nodes and 100,000 entries."""

import statistics
import time
import uuid
from datetime import timedelta

import httpx
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.accounts.models import Project, User
from console.capacity.models import Pool
from console.clusters.models import Cluster, ComputeClass, GpuType, Machine, Node, Region, new_stream
from console.timeline.models import Entry, Stream
from tests.bench.live import cookie
from tests.bench.report import Book
from tests.installation import Installation

NODES, ENTRIES, TIMES = 1000, 100_000, 15


def run(here: Installation, book: Book) -> None:
    cluster = large_cluster()
    headers = {"Cookie": cookie(), "Accept-Encoding": "gzip"}
    took, sizes, loopback = [], [], []
    with httpx.Client(base_url=here.address, headers=headers, timeout=60, trust_env=False) as browser:
        for _ in range(TIMES):
            began = time.monotonic()
            answer = get(browser, f"/clusters/{cluster.pk}")
            took.append(1000 * (time.monotonic() - began))
            assert answer.status_code == 200, answer.status_code
            sizes.append(int(answer.num_bytes_downloaded) / 1000)
            began = time.monotonic()
            get(browser, "/sign-in/")
            loopback.append(1000 * (time.monotonic() - began))
    print(f"      in the same minute a page without content: {statistics.median(loopback):.0f} ms")
    book.at_most(f"cluster page, {NODES} nodes, {ENTRIES} entries, median", statistics.median(took), "ms", 150)
    book.at_most(f"cluster page, {NODES} nodes: sent", max(sizes), "kB", 200)
    book.at_most(f"cluster page, {NODES} nodes: queries", queries(cluster), "queries", 25)


def get(browser: httpx.Client, path: str) -> httpx.Response:
    """As a browser does: once more where the server has just closed the connection that it was sent on."""
    try:
        return browser.get(path)
    except httpx.RemoteProtocolError:
        return browser.get(path)


def queries(cluster: Cluster) -> int:
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username="ada"), backend=settings.AUTHENTICATION_BACKENDS[0])
    with CaptureQueriesContext(connection) as seen:
        assert client.get(f"/clusters/{cluster.pk}").status_code == 200
    return len(seen)


def large_cluster() -> Cluster:
    """Rows only, in a pool that nothing runs: no Kubernetes stands behind them."""
    now = timezone.now()
    region, _ = Region.objects.get_or_create(name="bench-1", defaults={"title": "Bench"})
    gpu_type = GpuType.objects.get(name="H100_SXM")
    pool, _ = Pool.objects.get_or_create(region=region, gpu_type=gpu_type, defaults={"due_at": now + timedelta(days=1)})
    Stream.objects.get_or_create(id=pool.pk, defaults={"kind": Stream.Kind.POOL})
    project, _ = Project.objects.get_or_create(slug="bench", defaults={"name": "Bench"})  # with a quota of its own
    cluster = Cluster(
        project=project, name=f"bench-page-{uuid.uuid4().hex[:4]}", region=region, gpu_type=gpu_type,
        created_at=now, status=Cluster.Status.READY, proved_to=now,
        desired_standard_gpus=8 * NODES // 10, desired_preemptible_gpus=8 * NODES * 9 // 10,
    )  # fmt: skip
    cluster.allocated_standard_gpus, cluster.allocated_preemptible_gpus = (
        cluster.desired_standard_gpus,
        cluster.desired_preemptible_gpus,
    )
    new_stream(cluster).save(force_insert=True)
    cluster.save(force_insert=True)
    machines = [_machine(cluster, number) for number in range(NODES)]
    Machine.objects.bulk_create(machines, batch_size=1000)
    Node.objects.bulk_create([_node(cluster, machine) for machine in machines], batch_size=1000)
    fill(cluster)
    return cluster


def fill(cluster: Cluster) -> None:
    """A ledger of 100,000 entries behind what the cluster has said so far."""
    stream = Stream.objects.get(pk=cluster.stream)
    for first in range(0, ENTRIES, 5000):
        numbers = range(first, first + 5000)
        Entry.objects.bulk_create(_entry(cluster, number, stream.revision + number + 1) for number in numbers)
    Stream.objects.filter(pk=cluster.stream).update(revision=F("revision") + ENTRIES)


def _machine(cluster: Cluster, number: int) -> Machine:
    compute_class = ComputeClass.STANDARD if number % 10 == 0 else ComputeClass.PREEMPTIBLE
    name = f"gpu-{'' if compute_class == ComputeClass.STANDARD else 'preemptible-'}dp-{number:06d}"
    return Machine(
        id=uuid.uuid4(), cluster=cluster, region=cluster.region, gpu_type=cluster.gpu_type, compute_class=compute_class,
        node_name=name, state=Machine.State.JOINED, asked_at=cluster.created_at, joined_at=cluster.created_at,
        first_ready_at=cluster.created_at, revision=number,
    )  # fmt: skip


def _node(cluster: Cluster, machine: Machine) -> Node:
    return Node(
        cluster=cluster, machine=machine, uid=str(uuid.uuid4()), name=machine.node_name, compute_class=machine.compute_class,
        gpus=8, ready=True, ready_since=cluster.created_at, created_at=cluster.created_at, resource_version="1",
        revision=machine.revision,
    )  # fmt: skip


def _entry(cluster: Cluster, number: int, revision: int) -> Entry:
    at = cluster.created_at - timedelta(seconds=10 * (ENTRIES - number))
    return Entry(
        stream_id=cluster.stream, at=at, recorded_at=at, first_at=at, last_at=at, reason="Pulled", revision=revision,
        message=f"Container image number {number} already present on machine", actor_kind="kubernetes", actor_name="kubelet",
        subject_kind="Node", subject_name=f"gpu-preemptible-dp-{number % NODES:06d}", subject_uid="u",
    )  # fmt: skip
