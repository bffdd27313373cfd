"""Notices: how soon nodes are cordoned and pods told, alone, in a row, all at once, and beside others."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from django.db import connection

from console.capacity.models import PodVerdict
from console.clusters.models import Cluster, Node, Pod
from tests.bench import world
from tests.bench.report import Book, share
from tests.bench.world import asked, cordoned, notice, pods, tellings
from tests.installation import Installation, within

MANY, EACH = 100, 15


def one_node(here: Installation, book: Book) -> None:
    cluster = world.cluster("bench", 28)
    took = []
    for node in world.nodes(cluster, 7):
        at = notice(cluster, [node])
        took.append(cordoned(here, cluster, at, 1)[node.name])
        time.sleep(0.5)
    book.at_most("notice → cordon, one node, median of 7", statistics.median(took), "s", 1)
    world.settle(cluster)


def twenty(here: Installation, book: Book) -> None:
    """The first node has a pod that does not listen."""
    cluster = world.cluster("bench", 28)
    chosen = world.nodes(cluster, 20)
    pods(here, cluster, chosen[:1], 1, stuck=True)
    pods(here, cluster, chosen[1:], 1)
    first = notices(cluster, chosen, 0.2)
    found = cordoned(here, cluster, first, 20)
    within(30, lambda: len(tellings(here, cluster, first)) >= 20, 0.1)
    told = tellings(here, cluster, first)
    assert (len(found), len(told)) == (20, 20), (len(found), len(told))
    book.at_most("20 notices in 4 s, the first node stuck: all cordoned", max(found.values()), "s", 5)
    book.at_most("20 notices in 4 s, the first node stuck: all told", (told[-1] - first).total_seconds(), "s", 10)


def notices(cluster: Cluster, chosen: Sequence[Node], every: float) -> datetime:
    """One after the other at a steady pace, however long the writing of each takes; the instant of the first."""
    began = time.monotonic()

    def one(number: int) -> datetime:
        time.sleep(max(0.0, began + number * every - time.monotonic()))
        try:
            return notice(cluster, [chosen[number]])
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        return min(threads.map(one, range(len(chosen))))


def at_once(here: Installation, book: Book) -> None:
    cluster = world.cluster("bench-wide", 150)
    at = notice(cluster, world.nodes(cluster, 150))
    found = cordoned(here, cluster, at, 150)
    assert len(found) == 150, len(found)
    book.at_most("150 notices at once → cordon, p95", share(list(found.values()), 0.95), "s", 5)
    world.settle(cluster)


def rate(here: Installation, book: Book) -> None:
    """All pods of 100 nodes, beside a bare client that evicts as many from the same nodes a moment before."""
    beside = world.cluster("bench-beside", 2, gpu_type="H200_SXM")
    cluster = world.cluster("bench-wide", MANY)
    chosen = world.nodes(cluster, MANY)
    for_peer = pods(here, cluster, chosen, EACH)
    ours = pods(here, cluster, chosen, EACH, stops="20-30")
    peer = peer_rate(here, cluster, for_peer.evictions)
    gone = Pod.objects.filter(cluster=cluster, uid__in=for_peer.uids)
    within(120, lambda: not gone.exists(), 0.5)
    at = notice(cluster, chosen)
    time.sleep(1)
    other = world.nodes(beside, 1)
    at_other = notice(beside, other)
    reached = cordoned(here, beside, at_other, 1)
    total = len(ours.evictions)
    rows = PodVerdict.objects.filter(drain__cluster=cluster, pod_uid__in=ours.uids, told_at__isnull=False)
    within(90, lambda: rows.count() >= total, 0.5)  # reading a log of 30 MB again and again would slow what is measured
    told = tellings(here, cluster, at)
    assert len(told) == total, len(told)
    mine = _rate(told)
    after = (told[-1] - at).total_seconds()
    book.at_most(f"{MANY} nodes × {EACH} pods: all told after the notice, or 0.7", after, "s", 5, or_met=mine >= 0.7 * peer)
    book.ratio_at_least(f"{MANY} nodes × {EACH} pods: rate of telling", mine, "pods/s", peer, 0.7, or_met=after <= 5)
    book.at_most("meanwhile on another cluster: notice → cordon", reached.get(other[0].name, 60.0), "s", 5)
    closed = list(cordoned(here, cluster, at, MANY).values())
    assert len(closed) == MANY, len(closed)
    book.at_most(f"{MANY} notices at once, {EACH} pods on each node → cordon, p95", share(closed, 0.95), "s", 5)
    spread = _spread(here, cluster, at)
    book.at_most(f"{MANY} nodes × {EACH} pods: requests for each pod told", spread, "requests", 2)


def peer_rate(here: Installation, cluster: Cluster, evictions: tuple[world.Call, ...]) -> float:
    """As the simulator's own log has it, like ours."""
    since = datetime.now().astimezone()
    statuses = asyncio.run(world.api(here, cluster).send(evictions))
    assert set(statuses) == {201}, set(statuses)
    return _rate(tellings(here, cluster, since, "bare"))


def _rate(at: list[datetime]) -> float:
    return (len(at) - 1) / (at[-1] - at[0]).total_seconds()


def _spread(here: Installation, cluster: Cluster, since: datetime) -> float:
    """Requests up to the last pod told, by pod."""
    found = [one for one in asked(here, cluster, since) if one.agent == "halftide" and one.verb != "watch"]
    evictions = [one for one in found if one.path.endswith("/eviction")]
    until = max(one.at for one in evictions)
    return sum(one.at <= until for one in found) / len(evictions)
