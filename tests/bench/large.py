"""A cluster of 1,000 nodes and 15,000 pods on a real control plane: what connecting it costs, listing it again, hearing it live.

The control plane is this section's own, connected as `docs/real-kubernetes.md` says and only observed. Nodes and pods are made by
plain requests (`population`); from then on nodes without heartbeats turn NotReady as anywhere, so `kubelets` send them.
`BENCH_NODES` makes it smaller.
"""

import asyncio
import json
import os
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

import httpx
import websockets
from django.utils import timezone

from console.accounts.models import Project
from console.capacity.connecting import connect
from console.clusters.models import Cluster, KindState, Node, Pod
from console.runner.controlplane.build import SERVERS, programs
from console.sync.room import KINDS
from console.sync.tasks import ask
from console.timeline.models import Stream
from tests.bench import population
from tests.bench.kubelets import STATUS_EVERY, kubelets, stamp
from tests.bench.live import cookie
from tests.bench.page import TIMES, get
from tests.bench.population import PODS_A_NODE
from tests.bench.report import Book
from tests.bench.usage import Processes
from tests.bench.world import GPU_TYPE, PATIENCE, REGION
from tests.controlplane.plane import Audit, Plane
from tests.installation import Installation, within

NODES = int(os.environ.get("BENCH_NODES", "1000"))
PODS = NODES * PODS_A_NODE
SIZE = f"{NODES} nodes, {PODS} pods"
PAGES = ceil(NODES / 500) + ceil(PODS / 500)  # of nodes and pods together
WATCH, WORKER, WEB = "manage watch", "-n default", "console.web"  # by their command lines
MEMORY = 300  # MiB that `watch` may have resident (docs/operations.md, A large cluster)
MINUTE = 60.0  # seconds of heartbeats
PERIOD = 20  # seconds between two lists by workers where no watch is at work
FLOOD = 10  # seconds between two statuses of a node, as kubelets sent them before they had Leases

# Rows that would tell of a heartbeat, or of a list that had nothing new.
TABLES = ["clusters_node", "clusters_pod", "clusters_workload", "timeline_entry", "timeline_tombstone"]


def run(here: Installation, book: Book) -> None:
    home, folder, since = here.state / "large", programs((*SERVERS, "kubectl")), stamp()
    with Plane(home, folder, heartbeats=False) as plane:
        names = population.nodes(plane, NODES, since)
        population.pods(plane, names, since)
    with Plane(home, folder) as plane, kubelets(plane, names, since, STATUS_EVERY):
        cluster = first_sync(here, book, plane)
        settled(cluster)
        heartbeats(here, book, plane, cluster, STATUS_EVERY)
        with kubelets(plane, names, since, FLOOD, leases=False):
            heartbeats(here, book, plane, cluster, FLOOD)
        page(here, book, cluster)
        restart(here, book, cluster)
        relist(here, book, plane, cluster)


def processes(here: Installation, part: str) -> Processes:
    return Processes(tuple(pid for pid, command in here.processes().items() if part in command))


def known(cluster: Cluster) -> tuple[int, int]:
    return Node.objects.filter(cluster=cluster).count(), Pod.objects.filter(cluster=cluster).count()


def complete(cluster: Cluster, since: datetime) -> bool:
    """Whether all kinds have been listed and written since."""
    return KindState.objects.filter(cluster=cluster, complete_at__gte=since).count() == len(KINDS)


def settled(cluster: Cluster) -> None:
    """Until nothing more comes of what was there: the controllers go on saying that nodes have been registered."""

    def quiet() -> bool:
        before = Stream.objects.get(pk=cluster.stream).revision
        time.sleep(5)
        return Stream.objects.get(pk=cluster.stream).revision == before

    assert within(PATIENCE, quiet, 0), "the cluster does not come to rest"


def pages(audit: Audit) -> int:
    found = lists(audit)
    return found["nodes"] + found["pods"]


def written(here: Installation) -> int:
    """Rows made, changed and deleted so far, once every connection has reported what it did."""
    time.sleep(2)
    found = here.rows(
        "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint AS n FROM pg_stat_user_tables WHERE relname = ANY(%s)", TABLES
    )
    return int(found[0]["n"])


def transactions(here: Installation) -> int:
    return int(here.rows("SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()")[0]["n"])


@dataclass(frozen=True)
class Took:
    """What something cost while it ran. `peak` is what the largest of the processes had resident, MiB."""

    seconds: float
    cpu: float
    peak: float
    rows: int
    transactions: int


class Meter:
    """Of some processes, from when it is made until something is done."""

    def __init__(self, here: Installation, of: Processes) -> None:
        self._here, self._of = here, of
        of.forget_peaks()
        self._rows, self._commits = written(here), transactions(here)
        self._cpu, self._began = of.cpu(), time.monotonic()

    def until(self, done: Callable[[], bool], most: float = PATIENCE) -> Took:
        """What does not end in so many seconds took too long, and its row says so."""
        within(most, done, 0.2)
        seconds, cpu, peak = time.monotonic() - self._began, self._of.cpu() - self._cpu, self._of.peak()
        return Took(seconds, cpu, peak, written(self._here) - self._rows, transactions(self._here) - self._commits)


def lists(audit: Audit) -> dict[str, int]:
    """Pages that Halftide has asked for, by kind; the one object that settles a doubt is none (`Kube.newest`)."""
    asked = [one for one in audit.asked() if one.agent == "halftide" and one.verb == "list" and not one.uri.endswith("limit=1")]
    return {kind: sum(one.resource == kind for one in asked) for kind in KINDS}


def first_sync(here: Installation, book: Book, plane: Plane) -> Cluster:
    """From the word of whoever connects it until all of it is in rows."""
    kubeconfig, watch = population.account(plane), processes(here, WATCH)
    before, meter = watch.resident(), Meter(here, watch)
    cluster = connect(Project.objects.get(slug="aurora"), "bench-large", kubeconfig, REGION, GPU_TYPE)
    audit = plane.audit()
    took = meter.until(lambda: known(cluster) == (NODES, PODS) and complete(cluster, cluster.created_at))
    print(
        f"      pages {lists(audit)}, {took.rows} rows, {took.transactions} transactions, watch {took.cpu:.1f} s of processor, "
        f"{before:.0f} MiB before and {watch.resident():.0f} after ({watch.proportional():.0f} PSS)"
    )
    book.at_most(f"{SIZE}: connected → all of it in rows", took.seconds, "s", 60)
    book.at_most(f"{SIZE}: connected, pages of nodes and pods", pages(audit), "requests", PAGES)
    book.at_most(f"{SIZE}: connected, watch at most", took.peak, "MiB RSS", MEMORY)
    return cluster


def heartbeats(here: Installation, book: Book, plane: Plane, cluster: Cluster, every: int) -> None:
    """A minute of them, with a browser on the cluster's page."""
    watch, web, audit = processes(here, WATCH), processes(here, WEB), plane.audit()
    stream, session = Stream.objects.get(pk=cluster.stream), cookie()
    rows, commits, cpu = written(here), transactions(here), (watch.cpu(), web.cpu())
    frames = asyncio.run(_listen(here, f"/live/{cluster.pk}/?since={stream.revision}&epoch={stream.epoch}", session))
    used = watch.cpu() - cpu[0], web.cpu() - cpu[1]
    beats = sum(one.resource == "nodes" and one.subresource == "status" for one in audit.asked("admin"))
    print(
        f"      {beats} statuses of nodes, {transactions(here) - commits} transactions of all processes, watch {used[0]:.1f} s "
        f"of processor and {watch.resident():.0f} MiB ({watch.proportional():.0f} PSS), web {used[1]:.1f} s; pages {lists(audit)}"
    )
    told = f"{NODES} nodes' status each {every} s, for a minute"
    book.at_most(f"{told}: of nodes, pods, entries", written(here) - rows, "rows", 0)
    book.at_most(f"{told}: to a browser", frames, "frames", 0)
    book.at_most(f"{told}: pages of lists", sum(lists(audit).values()), "requests", 0)


async def _listen(here: Installation, path: str, session: str) -> int:
    """Frames to a browser in a minute, once it has caught up; those that only move its two lights (beats) are none."""
    headers = {"Cookie": session, "Origin": here.address}
    found = 0
    async with websockets.connect(f"ws{here.address.removeprefix('http')}{path}", additional_headers=headers) as socket:
        await socket.recv()
        with suppress(TimeoutError):
            async with asyncio.timeout(MINUTE):
                while True:
                    found += json.loads(await socket.recv())["type"] != "beat"
    return found


def page(here: Installation, book: Book, cluster: Cluster) -> None:
    web, took = processes(here, WEB), []
    with httpx.Client(
        base_url=here.address, headers={"Cookie": cookie(), "Accept-Encoding": "gzip"}, timeout=60, trust_env=False
    ) as browser:
        cpu = web.cpu()
        for _ in range(TIMES):
            began = time.monotonic()
            answer = get(browser, f"/clusters/{cluster.pk}")
            took.append(1000 * (time.monotonic() - began))
            assert answer.status_code == 200, answer.status_code
        cpu = web.cpu() - cpu
    print(f"      {1000 * cpu / TIMES:.0f} ms of processor a page")
    book.at_most(f"cluster page, {SIZE}, median", statistics.median(took), "ms", 150)


def restart(here: Installation, book: Book, cluster: Cluster) -> None:
    """A watch that was killed; the next one lists and compares everything."""
    began, rows = timezone.now(), written(here)
    here.signal_all(WATCH, signal.SIGKILL)
    assert within(PATIENCE, lambda: complete(cluster, began), 0.2)
    took, watch = (timezone.now() - began).total_seconds(), processes(here, WATCH)
    print(f"      {took:.1f} s after the kill, {watch.cpu():.1f} s of processor, now {watch.resident():.0f} MiB")
    book.at_most(f"{SIZE}: a new watch, at most", watch.peak(), "MiB RSS", MEMORY)
    book.at_most(f"{SIZE}: a new watch's list of what is known", written(here) - rows, "rows", 0)


def relist(here: Installation, book: Book, plane: Plane, cluster: Cluster) -> None:
    """By a worker, while the watch is frozen. Nothing has changed."""
    audit, began = plane.audit(), timezone.now()
    here.signal_all(WATCH, signal.SIGSTOP)
    try:
        Cluster.objects.filter(pk=cluster.pk).update(proved_to=began - timedelta(hours=1))
        meter = Meter(here, processes(here, WORKER))
        ask(cluster.pk, KINDS)
        took = meter.until(lambda: complete(cluster, began), 3 * PERIOD)
    finally:
        here.signal_all(WATCH, signal.SIGCONT)
    print(f"      pages {lists(audit)}, {took.transactions} transactions, worker {took.cpu:.1f} s of processor")
    book.at_most(f"{SIZE}: a worker's list, within its period", took.seconds, "s", PERIOD)
    book.at_most(f"{SIZE}: a worker's list, pages of nodes and pods", pages(audit), "requests", PAGES)
    book.at_most(f"{SIZE}: a worker's list, the worker at most", took.peak, "MiB RSS", MEMORY)
    book.at_most(f"{SIZE}: a worker's list of what is known", took.rows, "rows", 0)
