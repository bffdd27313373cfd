"""Reclaims, drains and drills as rows, and as the API says them."""

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from console.api.cursors import cursor_of, place_of
from console.api.drain_shapes import (
    Drain,
    Drains,
    DrainSummary,
    DrillReport,
    DrillTotals,
    Reclaim,
    RefusedCount,
    RefusedNode,
    Verdict,
)
from console.capacity.models import Drain as Model
from console.capacity.models import PodVerdict, RefusedNotices
from console.capacity.models import Reclaim as Asked
from console.capacity.reclaims import drills
from console.clusters.models import Cluster
from console.http import NotFound


def page(cluster: Cluster, limit: int, after: str | None, state: str | None, cause: str | None) -> Drains:
    rows = Model.objects.filter(cluster=cluster)
    if state is not None:
        rows = rows.filter(state=state)
    if cause is not None:
        rows = rows.filter(cause=cause)
    if after is not None:
        at, key = place_of(after, UUID)
        rows = rows.filter(started_at__lte=at).filter(Q(started_at__lt=at) | Q(started_at=at, pk__lt=key))
    found = list(rows.order_by("-started_at", "-pk")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    refused = RefusedNotices.objects.filter(cluster=cluster).order_by("source", "reason")
    return Drains(
        drains=[DrainSummary(**_summary(row)) for row in found],
        refused_notices=[
            RefusedCount(source=row.source, reason=row.reason, count=row.count, last_at=row.last_at) for row in refused
        ],
        next_cursor=cursor_of(found[-1].started_at, found[-1].pk) if more else None,
    )


def one(cluster: Cluster, drain_id: UUID) -> Drain:
    row = Model.objects.filter(cluster=cluster, pk=drain_id).prefetch_related("verdicts").first()
    if row is None:
        raise NotFound(f"{cluster.name} has no drain with this id.", param="drain_id")
    return Drain(**_summary(row), verdicts=[_verdict(verdict) for verdict in sorted(row.verdicts.all(), key=_order)])


def asked(cluster: Cluster, reclaim_id: UUID) -> Asked:
    row = Asked.objects.filter(cluster=cluster, pk=reclaim_id).first()
    if row is None:
        raise NotFound(f"{cluster.name} has no reclaim with this id.", param="reclaim_id")
    return row


def reclaim(row: Asked, now: datetime) -> Reclaim:
    return Reclaim(
        reclaim_id=str(row.pk),
        asked_at=row.asked_at,
        asked_by=row.asked_by,
        num_gpus=row.num_gpus,
        drill=row.drill,
        finished_at=row.finished_at,
        drains=[DrainSummary(**_summary(drain)) for drain in row.drains.order_by("node_name", "pk")],
        refused=[RefusedNode(**refusal) for refusal in row.answer["refused"]],
        report=report(row, now) if row.drill else None,
    )


def report(row: Asked, now: datetime) -> DrillReport:
    """Raises NotFound for a reclaim that was no drill."""
    if not row.drill:
        raise NotFound("This reclaim was no drill, so it has no report.", param="reclaim_id", code="no_drill")
    found = drills.read(row, now)
    return DrillReport(
        reclaim_id=str(row.pk),
        asked_at=row.asked_at,
        asked_by=row.asked_by,
        finished_at=row.finished_at,
        **asdict(found.report),
        before=DrillTotals(**asdict(found.before)) if found.before is not None else None,
        before_asked_at=found.before_at,
    )


def _order(verdict: PodVerdict) -> tuple[str, str]:
    return verdict.namespace, verdict.name


def _summary(row: Model) -> dict[str, Any]:
    return {
        "drain_id": str(row.pk),
        "reclaim_id": str(row.reclaim_id) if row.reclaim_id is not None else None,
        "asked_by": row.asked_by or None,
        "note": row.note or None,
        **{name: getattr(row, name) for name in PLAIN},
    }


PLAIN = (
    "node_name", "state", "cause", "why", "started_at", "deadline", "cordoned_at", "announced_at", "told_at", "emptied_at",
    "terminated_at", "removed_at", "pods_left",
)  # fmt: skip


def _verdict(row: PodVerdict) -> Verdict:
    seconds = None
    if row.told_at is not None and row.ended_at is not None:
        seconds = round(max(0.0, (row.ended_at - row.told_at).total_seconds()), 1)
    return Verdict(
        pod=row.name,
        namespace=row.namespace,
        verdict=PodVerdict.Verdict(row.verdict),
        exit_code=row.exit_code,
        seconds=seconds,
        given_grace=row.given_grace if row.told_at is not None else None,
        budget=row.budget or None,
    )
