"""Observe or act: the form of a cluster's page. A plain form on purpose: what the page offers changes with the answer."""

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console.accounts.access import signed_in
from console.accounts.models import Role
from console.capacity import services
from console.clusters.access import get_cluster
from console.http import Conflict, Unprocessable
from console.pages.asking import actor_of
from console.pages.views import show_overview


@signed_in
@require_POST
def mode(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    """Back to the page; without the confirmation, the page with the sentence beside the field."""
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id, Role.ADMIN)
    try:
        services.set_mode(actor, cluster, request.POST.get("mode", ""), request.POST.get("confirm", ""))
    except (Conflict, Unprocessable) as error:
        return show_overview(request, cluster_id, mode_problem=error)
    return redirect("cluster", cluster_id=cluster.pk)
