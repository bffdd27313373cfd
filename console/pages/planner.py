"""The checkpoint planner of a cluster: will a save end in time, and how often should one be made. A GET form, without scripts."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.pages import overview as page
from console.pages import planning
from console.pages.asking import actor_of
from console.workloads import planner as plans
from console.workloads import queries
from console.workloads.facts import Owner
from console.workloads.words import length

LOOKS = {
    plans.Verdict.FITS: ("tide", "i-check"),
    plans.Verdict.TIGHT: ("amber", "i-warning"),
    plans.Verdict.DOES_NOT_FIT: ("red", "i-x"),
}
WORDS = {plans.Verdict.FITS: "Fits", plans.Verdict.TIGHT: "Tight", plans.Verdict.DOES_NOT_FIT: "Does not fit"}


@dataclass(frozen=True)
class Plan:
    """One save as the page shows it. Shares are of the window, in percent, for the bar."""

    title: str
    save: plans.Save

    @property
    def word(self) -> str:
        return WORDS[self.save.verdict]

    @property
    def look(self) -> str:
        return LOOKS[self.save.verdict][0]

    @property
    def icon(self) -> str:
        return LOOKS[self.save.verdict][1]

    @property
    def seconds(self) -> str:
        return said(self.save.seconds)

    @property
    def share(self) -> str:
        return f"{self.save.share * 100:,.0f} %" if self.save.left > 0 else ""

    @property
    def scale(self) -> float:
        """The bar's right end: the window, or the save where that is longer, up to three windows."""
        return min(max(self.save.window, self.save.step_seconds + self.save.seconds), 3 * self.save.window)

    @property
    def bar(self) -> dict[str, str]:
        whole, step = self.scale, min(self.save.step_seconds, self.scale)
        saving = min(self.save.seconds, whole - step)
        return {"step": _percent(step, whole), "save": _percent(saving, whole), "end": _percent(self.save.window, whole)}


def _hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%"


def said(seconds: float) -> str:
    """22 s, 0.4 s, 3,600 s: seconds throughout, because the window is in seconds."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


@signed_in
@require_safe
def planner(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    found = page.opened(actor_of(request), cluster_id)
    every = sorted(queries.owners(found.cluster, found.now), key=lambda owner: (owner.namespace, owner.name))
    chosen = _chosen(every, request.GET.get("workload", ""))
    window = settings.DRAIN_WINDOW
    filled = planning.defaults(window) | (planning.of_workload(chosen, window) if chosen else {})
    form = planning.PlanForm.of(request.GET.dict(), filled, window)
    past = queries.history(found.cluster, found.now)
    shown = _plans(form)
    worst = shown[-1].save if shown else None
    context = {
        **found.shown("planner"),
        "form": form,
        "owners": [owner for owner in every if owner.active][:MOST_CHOICES],
        "chosen": chosen,
        "plans": shown,
        "window": window,
        "past": past,
        "per_node": length(past.per_node) if past.per_node else "",
        "looked_back": length(past.looked_back),
        "node_hours": _hours(past.node_time),
        "fewest": plans.FEWEST,
        "short": past.looked_back < plans.SHORTEST,
        "interval": _interval(worst, past, form),
    }
    return render(request, "pages/planner.html", context, status=400 if form.errors else 200)


MOST_CHOICES = 200  # workloads to choose from; the others are linked from their own pages


def _chosen(every: list[Owner], typed: str) -> Owner | None:
    try:
        wanted = UUID(typed)
    except ValueError:
        return None
    return next((owner for owner in every if owner.id == wanted), None)


def _plans(form: planning.PlanForm) -> list[Plan]:
    """At full speed and, where that is another, on a bad day."""
    if not form.whole:
        return []
    slower = form.numbers["slower"]
    full = Plan("At full speed", form.plan(1))
    return [full, Plan(f"{slower:g} times slower", form.plan(slower))] if slower > 1 else [full]


def _interval(save: plans.Save | None, past: plans.History, form: planning.PlanForm) -> dict[str, str] | None:
    found = plans.interval(save.seconds, past, int(form.numbers["nodes"])) if save else None
    if found is None:
        return None
    return {
        "every": length(found.every),
        "between": length(found.between),
        "lost": f"{found.lost * 100:.1f} %" if found.lost < 1 else "",
    }
