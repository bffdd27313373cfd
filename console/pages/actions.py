"""What the pages' buttons do. One service call each; the answer is the same panel again, or a way back for a plain form."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from console.accounts.access import fleet, signed_in
from console.accounts.models import Role
from console.capacity import panels, picture, services
from console.clusters.access import get_cluster
from console.clusters.models import Cluster, Node
from console.http import DomainError, Forbidden, NotFound, wants_json
from console.pages.asking import MENDABLE, actor_of, id_of, line_of_text, optional_number, way_back, whole_number
from console.pages.context import may_flip
from console.pages.views import show_overview
from console.timeline.queries import heads


@signed_in
@require_POST
def target(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    """One settled value of the gauge, with the revision it was based on."""
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id, Role.OPERATOR)
    try:
        gpus = whole_number(request.POST.get("gpus", ""), "gpus", "The target")
        based_on = optional_number(request.POST.get("based_on"), "based_on", "The revision")
        cluster = services.set_target(actor, cluster, gpus, based_on)
    except MENDABLE as error:
        return _mend(request, cluster_id, error)
    return _done(request, cluster)


@signed_in
@require_POST
def cordon(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id, Role.OPERATOR)
    wanted = id_of(request.POST.get("node", ""))
    node = Node.objects.filter(cluster=cluster, pk=wanted).first() if wanted is not None else None
    if node is None:
        raise NotFound("This node is not in the cluster any more.", param="node")
    services.cordon(actor, cluster, node, request.POST.get("on") == "1")
    return _done(request, cluster)


@fleet
@require_POST
def reclaim(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id)
    try:
        gpus = whole_number(request.POST.get("gpus", ""), "gpus", "What to reclaim")
        key = request.POST.get("key") or None  # a script's, so that pressing again after no answer takes nothing twice
        services.reclaim(actor, cluster, gpus, drill=request.POST.get("drill") == "1", key=key)
    except MENDABLE as error:
        return _mend(request, cluster_id, error)
    return _done(request, cluster)


@signed_in
@require_POST
def automation(request: HttpRequest) -> HttpResponse:
    """The stop switch."""
    actor = actor_of(request)
    if not may_flip(actor):
        raise Forbidden("The stop switch is for fleet operators. An administrator can name one.")
    why = line_of_text(request.POST.get("why", ""), "why", "The reason", 300)
    services.switch(actor, request.POST.get("on") == "1", why)
    return redirect(way_back(request, "/"))


def _done(request: HttpRequest, cluster: Cluster) -> HttpResponseBase:
    """To a script the same parts that the socket sends, and the revision they are of; to a plain form the page it came from."""
    if not wants_json(request):
        return redirect(way_back(request, f"/clusters/{cluster.pk}"))
    head = heads([cluster.stream])[cluster.stream].revision  # read first, so the parts are at least as new
    html = panels.render_panel(picture.read(get_cluster(actor_of(request), cluster.pk), timezone.now()))
    return JsonResponse({"panel": html, "head": head, "revision": cluster.target_revision})


def _mend(request: HttpRequest, cluster_id: UUID, error: DomainError) -> HttpResponse:
    """A script gets the error as JSON (`ErrorMiddleware`); a plain form gets its page back with what was typed."""
    if wants_json(request):
        raise error
    return show_overview(request, cluster_id, error)
