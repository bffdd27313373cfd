"""The Workloads tab: what runs on the nodes, by who started it, sorted by what needs a person first; and one workload by itself.

It is live as the other tabs are: rows come through the socket, and the browser applies the page's filter to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.clusters.models import Cluster, Workload
from console.http import NotFound
from console.pages import overview as page
from console.pages.asking import actor_of
from console.pages.days import under_days
from console.timeline import queries as ledger
from console.workloads import commands, queries
from console.workloads.recipes import recipes
from console.workloads.rows import Line, line_of, render_row

ROWS = 100  # on one page
VERDICTS = 100  # of the last day, on a workload's own page
ENTRIES = 50


@dataclass(frozen=True)
class Filter:
    """What the page shows, as the address has it."""

    namespace: str
    text: str
    trouble: bool

    @classmethod
    def of(cls, request: HttpRequest) -> "Filter":
        asked = request.GET
        return cls(asked.get("namespace", "")[:63], asked.get("q", "").strip()[:200], asked.get("show") == "trouble")

    @property
    def any(self) -> bool:
        return bool(self.namespace or self.text or self.trouble)

    def lets(self, line: Line) -> bool:
        if self.namespace and line.owner.namespace != self.namespace:
            return False
        return self.text.lower() in line.text and (line.trouble or not self.trouble)


@signed_in
@require_safe
def workloads(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    found = page.opened(actor_of(request), cluster_id)
    cluster, chosen = found.cluster, Filter.of(request)
    every = _lines(cluster, found.now)
    lines = [line for line in every if chosen.lets(line)]
    number, pages = _page(request.GET.get("page", "0"), len(lines))
    shown = lines[number * ROWS : (number + 1) * ROWS]
    context = {
        **found.shown("workloads"),
        "filter": chosen,
        "rows": [render_row(cluster, line) for line in shown],
        "namespaces": sorted({line.owner.namespace for line in every}),
        "total": len(every),
        "matching": len(lines),
        "trouble": sum(line.trouble for line in every),
        "page": number,
        "pages": pages,
        "rows_per_page": ROWS,
        "recipes": recipes(cluster.name, found.picture.step, settings.DRAIN_WINDOW),
    }
    return render(request, "pages/workloads.html", context)


@signed_in
@require_safe
def workload(request: HttpRequest, cluster_id: UUID, workload_id: UUID) -> HttpResponse:
    found = page.opened(actor_of(request), cluster_id)
    cluster = found.cluster
    owner = next(iter(queries.owners(cluster, found.now, [workload_id])), None)
    if owner is None:
        raise _missing(cluster, workload_id)
    line = line_of(cluster, owner, found.now)
    met = queries.met(cluster, owner, found.now, VERDICTS)
    about = {pod.uid for pod in owner.pods} | {one.verdict.pod_uid for one in met}
    entries = ledger.about(cluster.stream, about, {one.drain.pk for one in met}, found.now - queries.DAY, ENTRIES)
    context: dict[str, Any] = {
        **found.shown("workloads"),
        "line": line,
        "owner": owner,
        "row": render_row(cluster, line),
        "verdicts": met,
        "days": under_days(entries, found.now),
        "clear": commands.clear(cluster.name, owner),
        "excused": sum(pod.excused for pod in owner.pods),
        "day": queries.DAY,
    }
    return render(request, "pages/workload.html", context)


def _lines(cluster: Cluster, now: datetime) -> Sequence[Line]:
    return sorted((line_of(cluster, owner, now) for owner in queries.owners(cluster, now)), key=lambda line: line.sort)


def _page(typed: str, rows: int) -> tuple[int, Sequence[int]]:
    """The page asked for, held to those there are, and their numbers (none where one holds all)."""
    last = max(0, rows - 1) // ROWS
    number = min(int(typed), last) if typed.isascii() and typed.isdigit() and len(typed) < 6 else 0
    return number, range(last + 1) if last else ()


def _missing(cluster: Cluster, workload_id: UUID) -> NotFound:
    if Workload.objects.filter(cluster=cluster, pk=workload_id).exists():
        return NotFound("This workload has no pod with a GPU, and none on a GPU node, so there is nothing to say of it here.")
    return NotFound("There is no such workload here. What is gone for more than a day is not kept.")
