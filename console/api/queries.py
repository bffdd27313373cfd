"""The rows behind the client's `Cluster`: seven queries, whether there is one cluster or a thousand, and bounded for each."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet

from console.clusters.models import Cluster, Machine, Node
from console.timeline.models import Entry

KEPT = timedelta(hours=72)  # how far the client's events and deleted nodes reach back
MOST = 200  # newest deleted nodes, and newest events, of one cluster
HERE = (*Machine.ALIVE, Machine.State.LEAVING)

LIFECYCLE = (
    "LaunchAsked", "LaunchGivenUp", "NodeBooting", "TogetherScaledUp", "TogetherPreempted", "TogetherScaledDown", "DrainFinished",
    "DrainTimedOut", "DrainTakenBack", "NodeCordoned", "NodeUncordoned", "NodeNotReady", "NodeReady", "NodeLost", "MachineLost",
)  # fmt: skip


@dataclass
class Facts:
    """Of one cluster."""

    nodes: list[Node] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)  # coming or leaving, of which Kubernetes shows no node
    gone: list[Machine] = field(default_factory=list)  # newest first
    events: list[Entry] = field(default_factory=list)  # newest first, one for each node and reason


def facts(clusters: Collection[Cluster], now: datetime) -> dict[UUID, Facts]:
    ids = [cluster.pk for cluster in clusters]
    found: dict[UUID, Facts] = defaultdict(Facts)
    for node in Node.objects.filter(cluster__in=ids).select_related("machine").order_by("name", "pk"):
        found[node.cluster_id].nodes.append(node)
    shown = {node.machine_id for facts in found.values() for node in facts.nodes}
    for machine in Machine.objects.filter(cluster__in=ids, state__in=HERE).order_by("node_name", "pk"):
        if machine.pk not in shown:
            found[machine.cluster_id].machines.append(machine)
    gone = Machine.objects.filter(cluster=OuterRef("pk"), gone_at__gte=now - KEPT).order_by("-gone_at", "pk")
    for machine in Machine.objects.filter(pk__in=_newest(ids, gone)).order_by("-gone_at", "pk"):
        found[machine.cluster_id].gone.append(machine)
    told = Entry.objects.filter(
        stream=OuterRef("pk"), subject_kind__in=Entry.ABOUT_NODES, reason__in=LIFECYCLE, at__gte=now - KEPT
    )
    said: set[tuple[UUID, str, str]] = set()
    for entry in Entry.objects.filter(pk__in=_newest(ids, told.order_by("-at", "-id"))).order_by("-at", "-id"):
        once = (entry.stream_id, entry.subject_name, entry.reason)
        if once not in said:
            said.add(once)
            found[entry.stream_id].events.append(entry)
    return found


def _newest(clusters: list[UUID], rows: QuerySet[Machine] | QuerySet[Entry]) -> list[Any]:
    """Keys of the first MOST `rows` of each cluster: one short index range a cluster, in one query."""
    chosen = Cluster.objects.filter(pk__in=clusters).values_list(ArraySubquery(rows.values("pk")[:MOST]), flat=True)
    return [key for keys in chosen for key in keys]
