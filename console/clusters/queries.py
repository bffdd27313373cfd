"""Reading clusters: prices in force, who has how many nodes, the chart's levels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import F, Q, Sum

from console.clusters.models import Cluster, ComputeClass, GpuType, Level, Node, Rate

MAX_LEVELS = 2000  # points a chart can show; a range with more is thinned by the page's range, never unbounded


@dataclass(frozen=True)
class Price:
    """Dollars for one GPU for one hour. Preemptible is exactly half of on-demand, with every digit it has."""

    on_demand: Decimal
    preemptible: Decimal


FREE = Price(Decimal(0), Decimal(0))


def prices(now: datetime) -> dict[str, Price]:
    """The rate in force now for each GPU type, in one query."""
    rates = Rate.objects.filter(effective_from__lte=now).order_by("gpu_type_id", "-effective_from").distinct("gpu_type_id")
    return {rate.gpu_type_id: Price(_plain(rate.on_demand), _plain(rate.preemptible)) for rate in rates}


def _plain(amount: Decimal) -> Decimal:
    """Without the zeros of the column: 3.990000 → 3.99, 1.995000 → 1.995, but never fewer than two places."""
    short = amount.normalize()
    return short if short.as_tuple().exponent <= -2 else short.quantize(Decimal("0.01"))  # type: ignore[operator]


def gpu_types() -> list[GpuType]:
    return list(GpuType.objects.order_by("name"))


def alive_gpus(clusters: Iterable[Cluster]) -> dict[tuple[UUID, str], int]:
    """GPUs on nodes that are there, by cluster and compute class: what is charged now."""
    rows = (
        Node.objects.filter(cluster__in=[cluster.pk for cluster in clusters], machine__first_ready_at__isnull=False)
        .values("cluster_id", "compute_class")
        .annotate(sum=Sum("gpus"))
    )
    return {(row["cluster_id"], row["compute_class"]): row["sum"] for row in rows}


def levels(cluster: Cluster, since: datetime) -> list[Level]:
    """Levels since an instant, with the last one before it, so that the line starts at the left edge. Oldest first."""
    before = cluster.levels.filter(at__lt=since).order_by("-at").first()
    inside = list(cluster.levels.filter(at__gte=since).order_by("-at")[:MAX_LEVELS])[::-1]
    return ([before] if before else []) + inside


def allocated_gpus(cluster_id: UUID, pending: Sequence[Node] = ()) -> dict[str, int]:
    """GPUs that count as allocated, by compute class. Rows of `pending` (not yet written) stand in for those in the database."""
    stored = Node.objects.filter(cluster_id=cluster_id, ready=True, draining=False, startup_pending=False)
    sums = stored.exclude(pk__in=[node.pk for node in pending]).values_list("compute_class").annotate(Sum("gpus"))
    found = {ComputeClass.STANDARD.value: 0, ComputeClass.PREEMPTIBLE.value: 0, **dict(sums)}
    for node in pending:
        if node.allocated:
            found[node.compute_class] += node.gpus
    return found


def unheard(clusters: Iterable[UUID], before: datetime) -> list[UUID]:
    """Clusters whose complete picture ends before an instant, or that never had one."""
    rows = Cluster.objects.filter(pk__in=list(clusters)).filter(Q(proved_to__lt=before) | Q(proved_to__isnull=True))
    return list(rows.order_by(F("proved_to").asc(nulls_first=True)).values_list("pk", flat=True))
