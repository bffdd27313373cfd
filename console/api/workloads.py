"""Workloads as the page knows them, and as the API says them."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q

from console.api.cursors import cursor_of, place_of
from console.api.workload_shapes import Finding, LastDrain, Workload, WorkloadPods, Workloads
from console.clusters.models import Cluster
from console.clusters.models import Workload as Model
from console.workloads import queries
from console.workloads import rows as drawn
from console.workloads.facts import PREEMPTIBLE, STANDARD, Owner


def page(cluster: Cluster, limit: int, after: str | None, namespace: str | None, now: datetime) -> Workloads:
    """Last seen first, so that new ones shift nothing. What has no GPU and met none is left out, so a page may be short."""
    rows = Model.objects.filter(cluster=cluster)
    if namespace is not None:
        rows = rows.filter(namespace=namespace)
    if after is not None:
        at, key = place_of(after, UUID)
        rows = rows.filter(first_seen_at__lte=at).filter(Q(first_seen_at__lt=at) | Q(first_seen_at=at, pk__lt=key))
    found = list(rows.order_by("-first_seen_at", "-pk")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    owners = {owner.id: owner for owner in queries.owners(cluster, now, [row.pk for row in found])} if found else {}
    return Workloads(
        workloads=[_workload(cluster, owners[row.pk], now) for row in found if row.pk in owners],
        next_cursor=cursor_of(found[-1].first_seen_at, found[-1].pk) if more else None,
    )


def _workload(cluster: Cluster, owner: Owner, now: datetime) -> Workload:
    line = drawn.line_of(cluster, owner, now)
    last = owner.drained
    return Workload(
        workload_id=str(owner.id),
        namespace=owner.namespace,
        kind=owner.kind,
        name=owner.name,
        first_seen_at=owner.first_seen_at,
        gone_at=owner.gone_at,
        state=line.now.state,
        message=line.now.sentence,
        original_message=line.now.original or None,
        needs_attention=line.trouble,
        num_gpus=owner.gpus,
        pods=WorkloadPods(
            preemptible=owner.on(PREEMPTIBLE), standard=owner.on(STANDARD), waiting=sum(pod.waits for pod in owner.active)
        ),
        last_checkpoint=owner.last_checkpoint,
        findings=[Finding(code=one.code, message=one.sentence, warns=one.warns) for one in line.findings],
        last_drain=LastDrain(started_at=last.at, cause=last.cause, verdicts=dict(last.verdicts), preemptions_24h=last.preemptions)
        if last
        else None,
    )
