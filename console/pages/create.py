"""Creating a cluster: where, what, how much, what it costs, and what the pool can give now, before anything is asked for."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from console.accounts.access import Actor, signed_in
from console.accounts.models import Project, Role
from console.capacity import services
from console.capacity.drawing.money import amount, rate
from console.capacity.models import Pool
from console.capacity.queries import Offer, offer
from console.clusters.queries import FREE, prices
from console.http import BadInput, Conflict, Forbidden, Unprocessable
from console.pages.asking import actor_of
from console.pages.forms import CreateForm

MENDABLE = (BadInput, Conflict, Unprocessable)


@dataclass(frozen=True)
class Preview:
    """What the choice means. `elsewhere`: the regions that have this GPU type, where the chosen one has not."""

    offer: Offer | None
    region: str
    gpu_type: str
    elsewhere: tuple[str, ...]
    standard: int
    preemptible: int
    gpus_per_node: int
    standard_rate: str
    preemptible_rate: str
    standard_cost: str
    preemptible_cost: str
    total: str

    @property
    def short(self) -> int:
        """GPUs of the choice that the pool cannot give now."""
        return max(0, self.standard + self.preemptible - (self.offer.free_gpus if self.offer else 0))


def projects_of(actor: Actor) -> list[Project]:
    """Where the actor may create: administrators of the project."""
    return [project for project in Project.objects.order_by("name") if actor.may(project.pk, Role.ADMIN)]


def pools() -> list[Pool]:
    return list(Pool.objects.select_related("region", "gpu_type").order_by("region_id", "gpu_type_id"))


def preview_of(form: CreateForm, known: list[Pool], now: datetime) -> Preview:
    """From what is typed so far; a number that is none counts as 0, its fault is said beside its field."""
    region, gpu_type = form.typed["region"], form.typed["gpu_type"]
    chosen = next((pool for pool in known if (pool.region_id, pool.gpu_type_id) == (region, gpu_type)), None)
    trial = CreateForm(form.typed)
    standard, preemptible = trial.gpus("standard", ""), trial.gpus("preemptible", "")
    price = prices(now).get(gpu_type, FREE)
    costs = standard * price.on_demand, preemptible * price.preemptible
    return Preview(
        offer=offer(chosen) if chosen else None,
        region=region,
        gpu_type=gpu_type,
        elsewhere=tuple(pool.region_id for pool in known if pool.gpu_type_id == gpu_type),
        standard=standard,
        preemptible=preemptible,
        gpus_per_node=chosen.gpu_type.gpus_per_node if chosen else 8,
        standard_rate=rate(price.on_demand),
        preemptible_rate=rate(price.preemptible),
        standard_cost=amount(costs[0]),
        preemptible_cost=amount(costs[1]),
        total=amount(sum(costs, Decimal(0))),
    )


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def new_cluster(request: HttpRequest) -> HttpResponse:
    actor, known = actor_of(request), pools()
    projects = projects_of(actor)
    if not projects:
        raise Forbidden("Clusters are created by administrators of a project. One of them can create it, or make you one.")
    form = CreateForm.of(request.POST or request.GET, _defaults(projects, known))
    if request.method == "POST":
        made = _create(actor, form, projects)
        if made is not None:
            return redirect("cluster", cluster_id=made)
    context = {
        "form": form,
        "project_options": [(str(project.pk), project.name) for project in projects],
        "region_options": sorted({pool.region_id: f"{pool.region_id}, {pool.region.title}" for pool in known}.items()),
        "type_options": [(name, name) for name in sorted({pool.gpu_type_id for pool in known})],
        "preview": preview_of(form, known, timezone.now()),
    }
    return render(request, "pages/create.html", context, status=422 if form.errors else 200)


@signed_in
@require_safe
def preview(request: HttpRequest) -> HttpResponse:
    """The price and the pool beside the form, while it is being filled in."""
    form = CreateForm.of(request.GET, {})
    return render(request, "pages/_preview.html", {"preview": preview_of(form, pools(), timezone.now())})


def _defaults(projects: list[Project], known: list[Pool]) -> dict[str, str]:
    first = known[0] if known else None
    return {
        "project": str(projects[0].pk),
        "region": first.region_id if first else "",
        "gpu_type": first.gpu_type_id if first else "",
        "standard": str(first.gpu_type.gpus_per_node if first else 8),
        "preemptible": "0",
    }


def _create(actor: Actor, form: CreateForm, projects: list[Project]) -> UUID | None:
    """The new cluster's id, or None with the faults noted on the form."""
    name = form.name()
    standard = form.gpus("standard", "Standard GPUs")
    preemptible = form.gpus("preemptible", "Preemptible GPUs")
    project = next((one for one in projects if str(one.pk) == form.typed["project"]), None)
    if project is None:
        form.errors["project"] = "Choose one of your projects."
    if form.errors or project is None:
        return None
    region, gpu_type = form.typed["region"], form.typed["gpu_type"]
    try:
        return services.create_cluster(actor, project, name, region, gpu_type, standard, preemptible).pk
    except MENDABLE as error:
        form.refuse(error)
        return None
