"""A drill's report as a page. For everybody who may see the cluster."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.capacity.drains.entries import span
from console.capacity.models import PodVerdict, Reclaim
from console.capacity.reclaims import drills
from console.capacity.reclaims.drill import NodeLine, Totals
from console.clusters.access import get_cluster_for_fleet
from console.http import NotFound
from console.pages.asking import actor_of

STEPS = ("cordoned", "told", "last_pod_gone", "removed", "replaced")
Verdict = PodVerdict.Verdict
WORDS = {
    Verdict.STOPPING: "stopping",
    Verdict.FINISHED: "finished",
    Verdict.KILLED: "killed",
    Verdict.BUDGET_OVERRIDDEN: "budget overridden",
    Verdict.NEVER_STOPPED: "never stopped",
    Verdict.UNKNOWN: "unknown",
    Verdict.BLOCKED: "held by a budget",
}
LOOKS = {Verdict.KILLED: "red", Verdict.NEVER_STOPPED: "red", Verdict.BUDGET_OVERRIDDEN: "amber", Verdict.STOPPING: "amber"}


@dataclass(frozen=True)
class Row:
    """A node, or the slowest of all, with its steps in words."""

    name: str
    gpus: int
    steps: tuple[tuple[str, str], ...]  # label, length
    away: str
    by: str = ""


@dataclass(frozen=True)
class PodRow:
    name: str
    namespace: str
    node: str
    verdict: str
    look: str
    exit_code: int | None
    used: str
    checkpoint: str


@signed_in
@require_safe
def drill(request: HttpRequest, cluster_id: UUID, reclaim_id: UUID) -> HttpResponse:
    cluster = get_cluster_for_fleet(actor_of(request), cluster_id)
    reclaim = Reclaim.objects.filter(cluster=cluster, pk=reclaim_id, drill=True).first()
    if reclaim is None:
        raise NotFound(f"{cluster.name} has no such drill.")
    found = drills.read(reclaim, timezone.now())
    totals = found.report.totals
    shown = {
        "cluster": cluster,
        "drill": found,
        "totals": totals,
        "rows": [_row(node) for node in found.report.nodes],
        "slowest": _all(totals, "Slowest"),
        "before": _all(found.before, "The drill before") if found.before is not None else None,
        "pods": [row for node in found.report.nodes for row in _pods(node)],
        "verdicts": [(number, WORDS[Verdict(verdict)]) for verdict, number in totals.verdicts.items()],
    }
    return render(request, "pages/drill.html", shown)


def _row(node: NodeLine) -> Row:
    return Row(node.node_name, node.gpus, _steps(node), f"{node.gpu_minutes_away:g}", node.replaced_by or "")


def _all(totals: Totals, name: str) -> Row:
    return Row(name, totals.gpus, _steps(totals), f"{totals.gpu_minutes_away:g}")


def _steps(line: NodeLine | Totals) -> tuple[tuple[str, str], ...]:
    return tuple((step.replace("_", " ").capitalize(), _length(getattr(line, step))) for step in STEPS)


def _length(seconds: float | None) -> str:
    """A tenth of a second counts for the first ones only."""
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if seconds < 10 else span(round(seconds))


def _pods(node: NodeLine) -> list[PodRow]:
    return [
        PodRow(
            name=pod.pod,
            namespace=pod.namespace,
            node=node.node_name,
            verdict=WORDS[Verdict(pod.verdict)],
            look=LOOKS.get(Verdict(pod.verdict), ""),
            exit_code=pod.exit_code,
            used=f"{_length(pod.seconds)} of {span(pod.of_seconds)}" if pod.seconds is not None else "–",
            checkpoint="none" if pod.checkpoint_minutes is None else f"{pod.checkpoint_minutes:g} min",
        )
        for pod in node.pods
    ]
