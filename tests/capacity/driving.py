"""Drains begun as the plan begins them, and driven as the sweep drives them, against an API that is really there."""

import time
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from console.capacity.drains.changes import start_drain
from console.capacity.drains.doors import open_doors
from console.capacity.drains.run import OpenDoors, drive
from console.capacity.models import Drain
from console.clusters.models import Cluster, Machine, Node
from console.timeline.changes import change


def take_back(nodes: Sequence[Node], seconds: int, cause: str = Drain.Cause.PREEMPTED) -> list[Drain]:
    """The notice of these nodes of one cluster, all at once; they have so many seconds."""
    now = timezone.now()
    with change(now) as made:
        [cluster] = made.lock(Cluster.objects.filter(pk=nodes[0].cluster_id))
        machines = {row.pk: row for row in made.lock(Machine.objects.filter(pk__in=[node.machine_id for node in nodes]))}
        rows = made.lock(Node.objects.filter(pk__in=[node.pk for node in nodes]))
        why, until = "atlas-serve needs 8 standard GPUs", now + timedelta(seconds=seconds)
        return [start_drain(made, cluster, machines[row.machine_id], row, cause, why, "", now, deadline=until) for row in rows]


def finish(cluster: Cluster, seconds: float, doors: OpenDoors = open_doors) -> None:
    """Drive whenever something is due, until nothing is."""
    end = time.monotonic() + seconds
    while Drain.objects.filter(cluster=cluster, due_at__isnull=False).exists():
        assert time.monotonic() < end, list(Drain.objects.values("state", "note", "due_at"))
        drive(cluster.pk, doors=doors)
        time.sleep(0.2)
