"""The Capacity page: pools, who holds what, drills, quotas. For fleet operators, across all projects. `taking` has its form.

The page asks for its parts each five seconds (`parts`): a pool changes a few times a minute, so a socket of its own would carry
little, and a poll says honestly how fresh it is. Whatever a person can press stands outside the parts and is never redrawn.
"""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.accounts.access import Actor, fleet
from console.capacity import fleet as fleets
from console.capacity import queries, services
from console.http import DomainError, NotFound
from console.pages import capacity_rows as rows
from console.pages.asking import MENDABLE, actor_of, id_of, optional_number


@fleet
@require_safe
def capacity(request: HttpRequest) -> HttpResponse:
    return show_capacity(request)


def show_capacity(request: HttpRequest, problem: DomainError | None = None) -> HttpResponse:
    """The page, or the page with what was wrong with a quota beside what was typed."""
    actor, now = actor_of(request), timezone.now()
    found = fleets.read(now, id_of(request.GET.get("pool", "")))
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
    found = fleets.read(now, id_of(request.GET.get("pool", "")))
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
@require_POST
def quota(request: HttpRequest) -> HttpResponseBase:
    """A project's own quota; an empty field gives it the setting's again."""
    project = id_of(request.POST.get("project", ""))
    if project is None:
        raise NotFound("There is no project with this id.", param="project")
    try:
        gpus = optional_number(request.POST.get("gpus", "").strip(), "gpus", "A quota")
        services.set_quota(actor_of(request), project, gpus)
    except MENDABLE as error:
        return show_capacity(request, error)
    return redirect("/capacity#quotas")
