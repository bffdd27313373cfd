"""Urgent work beside bulk: clusters whose API hangs in a sync, and clusters whose API hangs in their own drains."""

import os
import signal
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from console.clusters.models import Cluster
from console.sync.room import KINDS
from console.sync.tasks import ask
from tests.bench import world
from tests.bench.report import Book
from tests.bench.world import cordoned, notice
from tests.installation import Installation

SLOW, HANGS = 20, 60  # clusters, seconds


def run(here: Installation, book: Book) -> None:
    quiet = world.cluster("bench", 4)
    slow = [world.cluster(f"bench-slow-{number}", 1 if number < 3 else 0, gpu_type="H200_SXM") for number in range(SLOW)]
    draining = [world.nodes(cluster, 1) for cluster in slow[:3]]
    watch = here.pid("manage watch")
    assert watch is not None
    os.kill(watch, signal.SIGSTOP)
    try:
        _hang(here, slow)
        book.at_most(f"{SLOW} clusters hang in a sync: notice elsewhere → cordon", _notice(here, quiet), "s", 5)
        for cluster, nodes in zip(slow, draining, strict=False):
            notice(cluster, nodes)
        book.at_most("3 clusters hang in their own drains too: notice elsewhere → cordon", _notice(here, quiet), "s", 5)
    finally:
        for cluster in slow:
            here.control("DELETE", f"faults?cluster_id={cluster.pk}")
        os.kill(watch, signal.SIGCONT)


def _notice(here: Installation, quiet: Cluster) -> float:
    chosen = world.nodes(quiet, 1)
    at = notice(quiet, chosen)
    return cordoned(here, quiet, at, 1).get(chosen[0].name, 60.0)


def _hang(here: Installation, slow: Sequence[Cluster]) -> None:
    """Every request to these waits a minute, and each is due for a list."""
    for cluster in slow:
        here.control("POST", "faults", {"cluster_id": str(cluster.pk), "kind": "delay", "seconds": HANGS})
    ids = [cluster.pk for cluster in slow]
    Cluster.objects.filter(pk__in=ids).update(proved_to=timezone.now() - timedelta(hours=1))
    for cluster in ids:
        ask(cluster, KINDS)
