"""The addresses of reclaims, drains and drills."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Body, Query, Router, Status

from console.api import drains
from console.api.drain_shapes import Drain, Drains, DrillReport, Reclaim, ReclaimAnswer, ReclaimRequest
from console.api.routes import READ, WRITE, Cursor, Limit, asker
from console.capacity import services
from console.capacity.models import Drain as Model
from console.clusters.access import get_cluster

CLUSTER = "/clusters/{cluster_id}"
KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string"},
    "required": False,
    "description": "The same key gets the same answer; with another body it is refused (409).",
}
NOTHING = ReclaimRequest()  # of an empty body

State = Annotated[Model.State | None, Query(None)]
Cause = Annotated[Model.Cause | None, Query(None)]

router = Router(tags=["Drains"])


@router.post(
    f"{CLUSTER}/reclaims",
    response={202: ReclaimAnswer, **WRITE},
    summary="Take GPUs back",
    operation_id="reclaim",
    openapi_extra={"parameters": [KEY]},
)
def reclaim(
    request: HttpRequest, response: HttpResponse, cluster_id: str, wanted: Annotated[ReclaimRequest, Body()] = NOTHING
) -> Status[Any]:
    """For fleet operators, and for keys of theirs that may act. The answer comes at once; the drains follow."""
    actor = asker(request)
    cluster = get_cluster(actor, cluster_id)
    key = request.headers.get("Idempotency-Key")
    row = services.reclaim(actor, cluster, wanted.num_gpus, wanted.nodes, bool(wanted.drill), key)
    response["Location"] = f"/v1/compute/clusters/{cluster.pk}/reclaims/{row.pk}"
    return Status(202, row.answer)


@router.get(
    f"{CLUSTER}/reclaims/{{uuid:reclaim_id}}",
    response={200: Reclaim, **READ},
    summary="Read a reclaim",
    operation_id="get_reclaim",
)
def read_reclaim(request: HttpRequest, cluster_id: str, reclaim_id: UUID) -> Reclaim:
    """Its drains as they are now and, of a drill, its report."""
    return drains.reclaim(drains.asked(get_cluster(asker(request), cluster_id), reclaim_id), timezone.now())


@router.get(
    f"{CLUSTER}/reclaims/{{uuid:reclaim_id}}/report",
    response={200: DrillReport, **READ},
    summary="Read a drill's report",
    operation_id="get_drill_report",
)
def read_report(request: HttpRequest, cluster_id: str, reclaim_id: UUID) -> DrillReport:
    """From notice to replacement for each node, what each pod made of its time, and the drill before."""
    return drains.report(drains.asked(get_cluster(asker(request), cluster_id), reclaim_id), timezone.now())


@router.get(f"{CLUSTER}/drains", response={200: Drains, **READ}, summary="Page through drains", operation_id="list_drains")
def list_drains(request: HttpRequest, cluster_id: str, limit: Limit, after: Cursor, state: State, cause: Cause) -> Drains:
    """Newest first, of every cause; `after` takes the page before's `next_cursor`."""
    cluster = get_cluster(asker(request, "limit", "after", "state", "cause"), cluster_id)
    return drains.page(cluster, limit, after, state, cause)


@router.get(
    f"{CLUSTER}/drains/{{uuid:drain_id}}", response={200: Drain, **READ}, summary="Read a drain", operation_id="get_drain"
)
def read_drain(request: HttpRequest, cluster_id: str, drain_id: UUID) -> Drain:
    """With the verdict on each of its pods."""
    return drains.one(get_cluster(asker(request), cluster_id), drain_id)
