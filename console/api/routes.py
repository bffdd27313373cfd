"""The addresses of the API. Each route fetches, asks a room below, and hands back a shape; it decides nothing."""

from collections import defaultdict
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Body, Query, Router, Status

from console.accounts.access import Actor
from console.accounts.models import Role
from console.api import clusters, events, identity, updates
from console.api.errors import unknown_name
from console.api.requests import ClusterCreate, ClusterUpdate
from console.api.shapes import (
    Cluster,
    Clusters,
    DriverVersion,
    ErrorEnvelope,
    LedgerEvents,
    Projects,
    Region,
    Regions,
    WhoamiKey,
    WhoamiPerson,
)
from console.capacity.models import Pool
from console.clusters.access import get_cluster, visible

READ = dict.fromkeys((400, 401, 403, 404, 422), ErrorEnvelope)
WRITE = {**READ, **dict.fromkeys((409, 412, 413), ErrorEnvelope)}
ETAG = {"headers": {"ETag": {"schema": {"type": "string"}, "description": "Names the two targets, for If-Match."}}}

Word = Annotated[str | None, Query(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$", max_length=253)]
Limit = Annotated[int, Query(100, ge=1, le=100)]
Cursor = Annotated[str | None, Query(None, pattern=r"^[A-Za-z0-9=_-]+$", max_length=200)]

NOTHING = ClusterUpdate()  # of an empty body

compute = Router(tags=["Clusters"])
people = Router(tags=["Who asks"])


def asker(request: HttpRequest, *parameters: str) -> Actor:
    """Who asks (set by `AccessMiddleware` on every request). Refuses a query parameter that the route does not know: ignoring a
    filter that was mistyped would answer another question."""
    for name in request.GET:
        if name not in parameters:
            raise unknown_name("query parameter", name, parameters)
    actor: Actor = request.actor  # type: ignore[attr-defined]
    return actor


@compute.get("/clusters", response={200: Clusters, **READ}, summary="List clusters", operation_id="list_clusters")
def list_clusters(request: HttpRequest, projectId: str | None = None) -> Clusters:  # noqa: N803  (the client's name)
    """Of every project in which you have a role, or of one; a key's are those of its project. Without kubeconfigs."""
    actor = asker(request, "projectId")
    rows = visible(actor).order_by("name", "pk")
    if projectId is not None:
        rows = rows.filter(project=updates.visible_project(actor, projectId, "projectId"))
    return Clusters(clusters=clusters.shapes(list(rows), timezone.now()))


@compute.post("/clusters", response={201: Cluster, **WRITE}, summary="Create a cluster", operation_id="create_cluster")
def create_cluster(request: HttpRequest, response: HttpResponse, asked: ClusterCreate) -> Status[Any]:
    """For administrators of the project. The answer comes at once; its Kubernetes API and machines follow."""
    actor = asker(request)
    made = updates.create(actor, asked)
    response["Location"] = f"/v1/compute/clusters/{made.pk}"
    response["ETag"] = updates.etag(made)
    return Status(201, clusters.shape(actor, made, timezone.now()))


@compute.get(
    "/clusters/{cluster_id}",
    response={200: Cluster, **READ},
    summary="Read a cluster",
    operation_id="get_cluster",
    openapi_extra={"responses": {200: ETAG}},
)
def read_cluster(request: HttpRequest, response: HttpResponse, cluster_id: str) -> Cluster:
    """With its kubeconfig for operators of the project, and an ETag for `If-Match`."""
    actor = asker(request)
    cluster = get_cluster(actor, cluster_id)
    response["ETag"] = updates.etag(cluster)
    return clusters.shape(actor, cluster, timezone.now())


@compute.put(
    "/clusters/{cluster_id}",
    response={200: Cluster, **WRITE},
    summary="Set a cluster's targets",
    operation_id="update_cluster",
    openapi_extra={
        "parameters": [{"in": "header", "name": "If-Match", "schema": {"type": "string"}, "required": False}],
        "responses": {200: ETAG},
    },
)
def update_cluster(
    request: HttpRequest, response: HttpResponse, cluster_id: str, asked: Annotated[ClusterUpdate, Body()] = NOTHING
) -> Cluster:
    """For operators of the project. What is left out stays as it is. The answer comes at once; machines follow."""
    actor = asker(request)
    cluster = get_cluster(actor, cluster_id, Role.OPERATOR)
    cluster = updates.update(actor, cluster, asked, request.headers.get("If-Match"))
    response["ETag"] = updates.etag(cluster)
    return clusters.shape(actor, cluster, timezone.now())


@compute.get(
    "/clusters/{cluster_id}/node_lifecycle_events",
    response={200: LedgerEvents, **READ},
    summary="Page through a cluster's node events",
    operation_id="list_node_lifecycle_events",
)
def list_events(request: HttpRequest, cluster_id: str, limit: Limit, after: Cursor, reason: Word, node: Word) -> LedgerEvents:
    """Newest first, as far back as the ledger goes; `after` takes the page before's `next_cursor`."""
    return events.page(get_cluster(asker(request, "limit", "after", "reason", "node"), cluster_id), limit, after, reason, node)


@compute.get("/regions", response={200: Regions, **READ}, summary="List regions", operation_id="list_regions")
def list_regions(request: HttpRequest) -> Regions:
    """Where there are pools, and of which GPU types; the same for everybody."""
    asker(request)
    found: dict[str, list[str]] = defaultdict(list)
    for region, gpu_type in Pool.objects.order_by("region_id", "gpu_type_id").values_list("region_id", "gpu_type_id"):
        found[region].append(gpu_type)
    drivers = [DriverVersion()]
    return Regions(
        regions=[Region(name=name, supported_instance_types=types, driver_versions=drivers) for name, types in found.items()]
    )


@people.get("/v3/whoami", response={200: WhoamiKey | WhoamiPerson, **READ}, summary="Who asks", operation_id="whoami")
def whoami(request: HttpRequest) -> WhoamiKey | WhoamiPerson:
    return identity.whoami(asker(request))


@people.get("/v1/projects", response={200: Projects, **READ}, summary="List your projects", operation_id="list_projects")
def list_projects(request: HttpRequest, limit: Limit, after: Cursor) -> Projects:
    return identity.projects(asker(request, "limit", "after"), limit, after)
