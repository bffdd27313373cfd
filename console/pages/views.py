"""What the pages show. Views fetch, hand to a template or a serialiser, and decide nothing."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.clusters.access import get_cluster
from console.http import DomainError
from console.pages import chart as charts
from console.pages import overview as page
from console.pages import queries, trying
from console.pages.asking import actor_of
from console.timeline.queries import heads
from console.workloads import frames

CLUSTERS_PARTS = ("alarm", "size", "facts", "shows", "rows")


@signed_in
@require_safe
def clusters(request: HttpRequest) -> HttpResponse:
    found, now = _fleet(request), timezone.now()
    context = {"fleet": found, "alarm": found.alarm, "parts": _clusters_parts(found), "now": now}
    return render(request, "pages/clusters.html", context)


@signed_in
@require_safe
def clusters_parts(request: HttpRequest) -> JsonResponse:
    """What may have changed on the list since it was drawn, as the page drew it. The page asks each five seconds."""
    return JsonResponse({"at": timezone.now().isoformat(), "parts": _clusters_parts(_fleet(request))})


def _fleet(request: HttpRequest) -> queries.Fleet:
    asked = request.GET
    return queries.fleet(
        actor_of(request), asked.get("q", ""), asked.get("show", ""), page.number_of(asked.get("page", "")), timezone.now()
    )


def _clusters_parts(found: queries.Fleet) -> dict[str, str]:
    return {name: render_to_string(f"pages/_clusters_{name}.html", {"fleet": found}) for name in CLUSTERS_PARTS}


@signed_in
@require_safe
def overview(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    return show_overview(request, cluster_id)


def show_overview(
    request: HttpRequest, cluster_id: UUID, problem: DomainError | None = None, mode_problem: DomainError | None = None
) -> HttpResponse:
    """The page, or the page with what went wrong and what was typed, so that a form without scripts loses nothing.

    `problem` stands at the gauge, `mode_problem` at the form for observe or act.
    """
    found = page.opened(actor_of(request), cluster_id)
    context = {
        **found.shown("overview"),
        **page.timeline_rows(found.cluster, found.now, found.actor),
        "strip": page.strip(found.picture),
        "nodes": page.first_nodes(found.picture),
        "ranges": charts.RANGES,
        "steps": trying.steps(request, found.picture),
        "problem": problem,
        "typed": request.POST.get("gpus", "") if problem else "",
        "mode_problem": mode_problem,
    }
    wrong = problem or mode_problem
    return render(request, "pages/cluster.html", context, status=wrong.status if wrong else 200)


@signed_in
@require_safe
def nodes(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    found = page.opened(actor_of(request), cluster_id)
    rows = page.nodes_page(found.picture, request.GET.get("page", ""), request.GET.get("node", ""))
    return render(request, "pages/nodes.html", {**found.shown("nodes"), **rows})


@signed_in
@require_safe
def updates(request: HttpRequest, cluster_id: UUID) -> JsonResponse:
    """The poll of a page without a socket: the same frame as the socket sends, since the page's revision."""
    cluster = get_cluster(actor_of(request), cluster_id)
    head = heads([cluster.stream])[cluster.stream]
    since, epoch = request.GET.get("since", ""), request.GET.get("epoch", "")
    known = since.isascii() and since.isdigit() and len(since) < 19 and epoch == str(head.epoch)
    frame = frames.compose(cluster.pk, int(since), head.revision, epoch) if known and int(since) <= head.revision else None
    if frame is None:
        return JsonResponse({"type": "reload", "why": "too much has happened since"})
    heard = cluster.proved_to.isoformat() if cluster.proved_to else None
    return JsonResponse({"type": "rows", **frame.payload(), "heard_at": heard})


@signed_in
@require_safe
def chart(request: HttpRequest, cluster_id: UUID) -> JsonResponse:
    cluster = get_cluster(actor_of(request), cluster_id)
    return JsonResponse(charts.series(cluster, request.GET.get("range", charts.FIRST), timezone.now()))
