"""Reading workloads: all of a cluster, those of some ids, one; each in a constant number of queries.

Pods are read as plain values and folded in memory: a page that sorts by what needs a person first must look at all of them, and
plain values of five thousand pods take some 40 ms.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import (
    Case,
    CharField,
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest, Least

from console.capacity.models import Drain, PodVerdict
from console.clusters.models import Cluster, ComputeClass, Machine, Node, Pod, Workload
from console.workloads.facts import BARE, LastDrain, Owner, PodFacts
from console.workloads.planner import History

DAY = timedelta(hours=24)  # of preemptions a workload's row tells, and for which a gone one is kept
TOGETHER = timedelta(seconds=60)  # drains of one reclaim begin within this, and are one drain to a workload
LOOK_BACK = timedelta(days=30)  # of preemptions the planner counts

Key = tuple[str, str, str]  # namespace, kind, name

_PLAIN = PodFacts._fields[:-2]  # the last two are worked out


def owners(cluster: Cluster, now: datetime, only: Collection[UUID] | None = None) -> list[Owner]:
    """The workloads of a cluster that concern its GPUs, or of those among `only`. Four queries."""
    rows = Workload.objects.filter(cluster=cluster)
    if only is not None:
        rows = rows.filter(pk__in=only)
    found = list(rows.order_by("namespace", "name", "kind"))
    if not found:
        return []
    of_pods = Pod.objects.filter(cluster=cluster, workload__isnull=False)
    drained, hit = _drained(cluster, now - DAY, found if only is not None else None)
    pods = _pods(cluster, of_pods if only is None else of_pods.filter(workload__in=only), hit)
    made = (_owner(row, pods.get(row.pk, ()), drained) for row in found)
    return [owner for owner in made if owner.concerns_gpus]


def _owner(row: Workload, pods: Iterable[PodFacts], drained: dict[Key, LastDrain]) -> Owner:
    key = row.namespace, row.kind, row.name
    return Owner(row.pk, *key, row.first_seen_at, row.gone_at, tuple(pods), drained.get(key))


def _pods(cluster: Cluster, rows: QuerySet[Pod], preempted: set[str]) -> dict[UUID, list[PodFacts]]:
    classes = dict(Node.objects.filter(cluster=cluster).values_list("name", "compute_class"))
    found: dict[UUID, list[PodFacts]] = defaultdict(list)
    for workload, uid, name, node, *rest in rows.order_by("name").values_list("workload_id", *_PLAIN):
        found[workload].append(PodFacts._make((uid, name, node, *rest, classes.get(node, ""), uid in preempted)))
    return found


def _drained(cluster: Cluster, since: datetime, only: list[Workload] | None) -> tuple[dict[Key, LastDrain], set[str]]:
    """By workload what its last drains made of its pods; and the uids of pods that a preemption ended."""
    rows = PodVerdict.objects.filter(drain__cluster=cluster, drain__started_at__gte=since)
    if only is not None:
        named = Q(owner_name__in={row.name for row in only}) | Q(owner_name="", name__in={row.name for row in only})
        rows = rows.filter(named, namespace__in={row.namespace for row in only})
    kind = Case(When(owner_kind="", then=Value(BARE)), default=F("owner_kind"), output_field=CharField())
    owner = Case(When(owner_name="", then=F("name")), default=F("owner_name"), output_field=CharField())
    values = rows.annotate(kind=kind, owner=owner).values_list(
        "namespace", "kind", "owner", "verdict", "pod_uid", "drain_id", "drain__started_at", "drain__cause"
    )
    told: dict[Key, list[tuple[str, str, UUID, datetime, str]]] = defaultdict(list)
    for namespace, of_kind, name, *rest in values:
        told[namespace, of_kind, name].append(tuple(rest))  # type: ignore[arg-type]
    hit = {uid for lines in told.values() for _, uid, _, _, cause in lines if cause == Drain.Cause.PREEMPTED}
    return {key: _last(lines) for key, lines in told.items()}, hit


def _last(lines: list[tuple[str, str, UUID, datetime, str]]) -> LastDrain:
    last = max(lines, key=lambda line: line[3])
    verdicts = Counter(verdict for verdict, _, _, at, _ in lines if last[3] - at <= TOGETHER)
    preemptions = {drain for _, _, drain, _, cause in lines if cause == Drain.Cause.PREEMPTED}
    return LastDrain(last[3], last[4], tuple(sorted(verdicts.items())), len(preemptions))


def changed(cluster: Cluster, after: int, upto: int) -> set[UUID]:
    """Workloads whose line may differ: a pod changed, or a node under one, or a drain that met one."""
    span: dict[str, Any] = {"revision__gt": after, "revision__lte": upto}
    mine = set(Workload.objects.filter(cluster=cluster, **span).values_list("pk", flat=True))
    nodes = list(Node.objects.filter(cluster=cluster, **span).values_list("name", flat=True))
    if nodes:
        on = Pod.objects.filter(cluster=cluster, node_name__in=nodes, workload__isnull=False)
        mine |= set(on.values_list("workload_id", flat=True).distinct())
    told = PodVerdict.objects.filter(drain__cluster=cluster, drain__revision__gt=after, drain__revision__lte=upto)
    keys = {(ns, kind or BARE, owner or name) for ns, kind, owner, name in told.values_list(*_OF_VERDICT).distinct()}
    if keys:
        named = Workload.objects.filter(
            cluster=cluster, namespace__in={key[0] for key in keys}, name__in={key[2] for key in keys}
        )
        mine |= {pk for pk, *key in named.values_list("pk", "namespace", "kind", "name") if tuple(key) in keys}
    return mine


_OF_VERDICT = ("namespace", "owner_kind", "owner_name", "name")


@dataclass(frozen=True)
class Met:
    """A verdict on a pod of a workload, with the drain it belongs to."""

    verdict: PodVerdict
    drain: Drain


def met(cluster: Cluster, owner: Owner, now: datetime, limit: int) -> list[Met]:
    """The newest verdicts of the last day on pods of one workload."""
    rows = PodVerdict.objects.filter(drain__cluster=cluster, drain__started_at__gte=now - DAY, namespace=owner.namespace)
    mine = Q(owner_kind="", name=owner.name) if owner.bare else Q(owner_kind=owner.kind, owner_name=owner.name)
    newest = rows.filter(mine).select_related("drain").order_by("-drain__started_at", "name")
    return [Met(verdict, verdict.drain) for verdict in newest[:limit]]


def history(cluster: Cluster, now: datetime) -> History:
    """How often preemptible nodes of a cluster were taken, and how long they were there in all. Two queries."""
    since = max(now - LOOK_BACK, cluster.created_at)
    taken = Drain.objects.filter(cluster=cluster, cause=Drain.Cause.PREEMPTED, started_at__gte=since).exclude(node_uid="")
    there = Machine.objects.filter(
        Q(gone_at__isnull=True) | Q(gone_at__gt=since),
        cluster=cluster,
        compute_class=ComputeClass.PREEMPTIBLE,
        first_ready_at__isnull=False,
    )
    until = Least(Coalesce(F("gone_at"), Value(now), output_field=DateTimeField()), Value(now, output_field=DateTimeField()))
    lived = ExpressionWrapper(until - Greatest(F("first_ready_at"), Value(since, output_field=DateTimeField())), DurationField())
    total = there.aggregate(total=Sum(lived))["total"]
    drills = Count("pk", filter=Q(reclaim__drill=True))
    counts = taken.aggregate(all=Count("pk"), drills=drills)
    return History(counts["all"] - counts["drills"], total or timedelta(0), now - since)
