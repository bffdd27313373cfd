"""The page of one kind of startup script: its text in the editor, its versions, what a version changed."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.clusters.access import get_cluster
from console.pages import overview
from console.pages.asking import actor_of
from console.pages.scripts import shown
from console.pages.scripts.asking import optional_number
from console.scripts.kinds import NODE_INIT, kind_named


@signed_in
@require_safe
def first(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    """The tab leads to the kind that every cluster has."""
    cluster = get_cluster(actor_of(request), cluster_id)
    return redirect("script", cluster_id=cluster.pk, kind=NODE_INIT.name)


def show(request: HttpRequest, cluster_id: UUID, kind: str, status: int = 200, **more: Any) -> HttpResponse:
    """The page, or after a save that did not work the page with what was typed: `more` stands in for what is kept."""
    found = overview.opened(actor_of(request), cluster_id)
    wanted = [optional_number(request, name) for name in ("version", "against", "before")]
    context = shown.page(found, kind_named(found.cluster, kind), *wanted)
    said = {name: optional_number(request, name) for name in ("saved", "same")}
    response = render(request, "pages/scripts.html", {**context, **said, **more}, status=status)
    # A copy that a browser kept would show yesterday's text as today's.
    patch_cache_control(response, no_store=True)
    return response
