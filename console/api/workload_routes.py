"""The address of workloads."""

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router

from console.api import workloads as found
from console.api.routes import READ, Cursor, Limit, Word, asker
from console.api.workload_shapes import Workloads
from console.clusters.access import get_cluster

router = Router(tags=["Workloads"])


@router.get(
    "/clusters/{cluster_id}/workloads",
    response={200: Workloads, **READ},
    summary="Page through workloads",
    operation_id="list_workloads",
)
def list_workloads(request: HttpRequest, cluster_id: str, limit: Limit, after: Cursor, namespace: Word) -> Workloads:
    """By who started them, with their pods, last checkpoint and last drain. `after` takes the page before's `next_cursor`."""
    cluster = get_cluster(asker(request, "limit", "after", "namespace"), cluster_id)
    return found.page(cluster, limit, after, namespace, timezone.now())
