"""The Capacity page: pools, who holds what, taking GPUs back, drills, quotas. For fleet operators, across all projects.

The page asks for its parts each five seconds (`parts`): a pool changes a few times a minute, so a socket of its own would carry
little, and a poll says honestly how fresh it is. Whatever a person can press stands outside the parts and is never redrawn.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.accounts.access import Actor, fleet, signed_in
from console.capacity import fleet as fleets
from console.capacity import queries, services
from console.capacity.reclaims import drills, previewing
from console.clusters.access import get_cluster_for_fleet
from console.clusters.models import Cluster
from console.http import BadInput, Conflict, DomainError, NotFound, Unprocessable
from console.pages import capacity_rows as rows
from console.pages.asking import actor_of, optional_number, whole_number

MENDABLE = (BadInput, Conflict, Unprocessable)


@fleet
@require_safe
def capacity(request: HttpRequest) -> HttpResponse:
    return show_capacity(request)


def show_capacity(request: HttpRequest, problem: DomainError | None = None) -> HttpResponse:
    """The page, or the page with what was wrong with a quota beside what was typed."""
    actor, now = actor_of(request), timezone.now()
    found = fleets.read(now, _id(request.GET.get("pool", "")))
    context = {
        "now": now,
        "fleet": found,
        "parts": _parts(found, actor, now),
        "choices": rows.takeable(found.holders),
        "step": found.looked_at.step if found.looked_at else 0,
        "quotas": rows.quota_rows(),
        "switch": queries.automation(),
        "problem": problem,
        "typed": request.POST,
    }
    return render(request, "pages/capacity.html", context, status=problem.status if problem else 200)


@fleet
@require_safe
def parts(request: HttpRequest) -> JsonResponse:
    """What may have changed since the page was drawn, as the page drew it."""
    actor, now = actor_of(request), timezone.now()
    found = fleets.read(now, _id(request.GET.get("pool", "")))
    asked = {f"asked-{row.project.pk}": str(row.asked) for row in rows.quota_rows()}
    return JsonResponse({"at": now.isoformat(), "parts": {**_parts(found, actor, now), **asked}})


def _parts(found: fleets.Fleet, actor: Actor, now: datetime) -> dict[str, str]:
    shown: dict[str, Any] = {
        "size": {"fleet": found, "total": found.total("total")},
        "facts": {name: found.total(name) for name in ("standard", "preemptible", "free", "waiting")},
        "pools": {"rows": rows.pool_rows(found)},
        "holders": {"rows": rows.holder_rows(found, actor), "use": found.looked_at},
        "drills": {"drills": rows.drill_rows(actor, now)},
    }
    return {name: render_to_string(f"pages/capacity_{name}.html", context) for name, context in shown.items()}


@fleet
@require_safe
def would(request: HttpRequest) -> HttpResponse:
    """What the card's form would take, drawn beside it as it is filled in; without scripts the page of the same."""
    cluster_id = _id(request.GET.get("cluster", ""))
    if cluster_id is None:
        raise NotFound("Choose a cluster.", param="cluster")
    cluster = get_cluster_for_fleet(actor_of(request), cluster_id)
    if not request.headers.get("HX-Request"):
        return redirect(f"/clusters/{cluster.pk}/preview?{request.GET.urlencode()}")
    return render(request, "pages/capacity_would.html", _asked(request, cluster))


@signed_in
@require_safe
def preview(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """What would be lost, pod by pod: for everybody who may see the cluster; only fleet operators can go on from it."""
    return show_preview(request, get_cluster_for_fleet(actor_of(request), cluster_id))


def show_preview(request: HttpRequest, cluster: Cluster, problem: DomainError | None = None) -> HttpResponse:
    context = {**_asked(request, cluster), "may_take": actor_of(request).fleet_operator}
    context["problem"] = problem or context["problem"]
    status = context["problem"].status if context["problem"] else 200
    return render(request, "pages/preview.html", context, status=status)


@fleet
@require_POST
def take(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    """Reclaim or drill, confirmed. A drill leads to its report."""
    actor = actor_of(request)
    cluster = get_cluster_for_fleet(actor, cluster_id)
    try:
        gpus = whole_number(request.POST.get("gpus", ""), "gpus", "What is taken back")
        taken = services.reclaim(actor, cluster, gpus, drill=request.POST.get("kind") != "reclaim")
    except MENDABLE as error:
        return show_preview(request, cluster, error)
    if taken.drill:
        return redirect(drills.page_of(taken))
    # A fleet operator without a role in the project has no cluster page to go to.
    return redirect("capacity" if actor.role_in(cluster.project_id) is None else f"/clusters/{cluster.pk}")


@fleet
@require_POST
def quota(request: HttpRequest) -> HttpResponseBase:
    """A project's own quota; an empty field gives it the setting's again."""
    project = _id(request.POST.get("project", ""))
    if project is None:
        raise NotFound("There is no project with this id.", param="project")
    try:
        gpus = optional_number(request.POST.get("gpus", "").strip(), "gpus", "A quota")
        services.set_quota(actor_of(request), project, gpus)
    except MENDABLE as error:
        return show_capacity(request, error)
    return redirect("/capacity#quotas")


def _asked(request: HttpRequest, cluster: Cluster) -> dict[str, Any]:
    """The form's choice and its preview, or the sentence why there is none."""
    typed = request.POST if request.method == "POST" else request.GET
    step = cluster.gpu_type.gpus_per_node
    shown: dict[str, Any] = {
        "cluster": cluster,
        "step": step,
        "kind": "reclaim" if typed.get("kind") == "reclaim" else "drill",
        "gpus": typed.get("gpus") or str(step),
        "found": None,
        "problem": None,
    }
    try:
        gpus = whole_number(shown["gpus"], "gpus", "What is taken back")
        shown["found"] = previewing.of_gpus(cluster, gpus, timezone.now())
    except MENDABLE as error:
        shown["problem"] = error
    return shown


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
