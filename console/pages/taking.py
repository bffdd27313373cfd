"""Taking GPUs back: what it would cost, by number or by name, and the form that begins it.

A person decides by what the preview shows. So the form carries the very nodes that were named, all of them or none go, and a key
of its own: sent twice, it takes once.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.accounts.access import fleet, signed_in
from console.capacity import services
from console.capacity.reclaims import drills, previewing
from console.clusters.access import get_cluster_for_fleet
from console.clusters.models import Cluster
from console.http import BadInput, DomainError, NotFound
from console.pages.asking import MENDABLE, actor_of, id_of, names_of, whole_number


@dataclass(frozen=True)
class Choice:
    """What the form asks for, as typed: a number of GPUs (`by` is gpus) or these nodes (`by` is nodes), a drill or a reclaim."""

    kind: str
    by: str
    typed_gpus: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, typed: QueryDict, step: int) -> "Choice":
        """`step` is a node's GPUs, the least that can be asked for. A link may say only `nodes`."""
        names = tuple(names_of(typed.getlist("nodes")))
        by = typed.get("by") or ("nodes" if names else "gpus")
        kind = "reclaim" if typed.get("kind") == "reclaim" else "drill"
        return cls(kind, "nodes" if by == "nodes" else "gpus", typed.get("gpus") or str(step), names)

    @property
    def gpus(self) -> int | None:
        """None where nodes are named. Raises BadInput."""
        return whole_number(self.typed_gpus, "gpus", "What is taken back") if self.by == "gpus" else None

    @property
    def nodes(self) -> list[str] | None:
        """None where a number is asked for. Raises BadInput for none at all, and for more than a preview shows."""
        if self.by != "nodes":
            return None
        if not self.names:
            raise BadInput("Name the nodes that would go: tick them, or write their names.", param="nodes")
        if len(self.names) > previewing.MOST_NODES:
            raise BadInput(f"Name 1 to {previewing.MOST_NODES} nodes at once, not {len(self.names)}.", param="nodes")
        return list(self.names)


@fleet
@require_safe
def would(request: HttpRequest) -> HttpResponse:
    """What the card's form would take, drawn beside it as it is filled in; without scripts the page of the same."""
    cluster_id = id_of(request.GET.get("cluster", ""))
    if cluster_id is None:
        raise NotFound("Choose a cluster.", param="cluster")
    cluster = get_cluster_for_fleet(actor_of(request), cluster_id)
    if not request.headers.get("HX-Request"):
        return redirect(f"/clusters/{cluster.pk}/preview?{request.GET.urlencode()}")
    return render(request, "pages/capacity_would.html", _asked(request.GET, cluster))


@signed_in
@require_safe
def preview(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """What would be lost, pod by pod: for everybody who may see the cluster; only fleet operators can go on from it."""
    return _show(request, get_cluster_for_fleet(actor_of(request), cluster_id), request.GET)


def _show(request: HttpRequest, cluster: Cluster, typed: QueryDict, problem: DomainError | None = None) -> HttpResponse:
    context = {**_asked(typed, cluster), "may_take": actor_of(request).fleet_operator}
    context["problem"] = problem or context["problem"]
    choices, names = previewing.choices(cluster), context["choice"].names
    context["choices"] = [(name, name in names) for name in choices]
    context["others"] = ", ".join(name for name in names if name not in choices)
    status = context["problem"].status if context["problem"] else 200
    return render(request, "pages/preview.html", context, status=status)


@fleet
@require_POST
def take(request: HttpRequest, cluster_id: UUID) -> HttpResponseBase:
    """Reclaim or drill, confirmed. A drill leads to its report."""
    actor = actor_of(request)
    cluster = get_cluster_for_fleet(actor, cluster_id)
    choice = Choice.of(request.POST, cluster.gpu_type.gpus_per_node)
    key = request.POST.get("key") or None
    try:
        taken = services.reclaim(actor, cluster, choice.gpus, choice.nodes, choice.kind == "drill", key, whole=True)
    except MENDABLE as error:
        return _show(request, cluster, request.POST, error)
    if taken.drill:
        return redirect(drills.page_of(taken))
    # A fleet operator without a role in the project has no cluster page to go to.
    return redirect("capacity" if actor.role_in(cluster.project_id) is None else f"/clusters/{cluster.pk}")


def _asked(typed: QueryDict, cluster: Cluster) -> dict[str, Any]:
    """The form's choice and its preview, or the sentence why there is none."""
    step = cluster.gpu_type.gpus_per_node
    choice = Choice.of(typed, step)
    shown: dict[str, Any] = {"cluster": cluster, "step": step, "choice": choice, "key": uuid4(), "found": None, "problem": None}
    try:
        gpus, nodes, now = choice.gpus, choice.nodes, timezone.now()
        if nodes is not None:
            shown["found"] = previewing.of_nodes(cluster, nodes, now)
        elif gpus is not None:
            shown["found"] = previewing.of_gpus(cluster, gpus, now)
    except MENDABLE as error:
        shown["problem"] = error
    return shown
