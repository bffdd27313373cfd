"""The timeline page: what is wished for from the address, the rows that answer it, and the way to older and newer ones.

A wish that makes no sense is answered with what was typed and a sentence beside it, and with no rows: rows that ignore a filter
would be read as its answer.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.accounts.access import signed_in
from console.clusters.access import get_cluster
from console.http import BadInput, DomainError, NotFound
from console.pages import overview as page
from console.pages.asking import actor_of
from console.pages.days import place_of, read_place, rows_of, under_days
from console.timeline import filters, looks, queries
from console.timeline.filters import Filter
from console.timeline.models import Entry

ROWS = 100  # on the page when it opens, and in each piece that is loaded to it
AROUND = 40  # newer rows above an entry that a link opens


@dataclass(frozen=True)
class Asked:
    """A wish from an address: the filter, or what is wrong with it; and what was typed, in any case."""

    chosen: Filter
    typed: dict[str, str]
    problem: DomainError | None = None


def asked(request: HttpRequest) -> Asked:
    try:
        chosen = filters.parse(request.GET)
    except BadInput as error:
        return Asked(Filter(), filters.typed(request.GET), error)
    return Asked(chosen, filters.shown(chosen))


@signed_in
@require_safe
def timeline(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    found = page.opened(actor_of(request), cluster_id)
    wish, place = asked(request), read_place(request.GET.get("before", ""))
    entries, more, problem = list[Entry](), False, wish.problem
    if problem is None:
        try:
            entries, more = queries.older(found.cluster.stream, ROWS, wish.chosen, found.now, place)
        except DomainError as error:
            problem = error
    context = _context(found, wish.chosen, entries, more)
    context |= {"typed": wish.typed, "problem": problem, "past": place is not None}
    if problem is None:
        context |= lately_of(found.cluster.stream, wish.chosen, found.now)
    return render(request, "pages/timeline.html", context, status=problem.status if problem else 200)


@signed_in
@require_safe
def entry(request: HttpRequest, cluster_id: UUID, entry_id: int) -> HttpResponse:
    """One entry among its neighbours, whatever the filter was. One that retention took says when it went."""
    found = page.opened(actor_of(request), cluster_id)
    stream = found.cluster.stream
    row = Entry.objects.filter(stream=stream, pk=entry_id).first()
    if row is None:
        return _gone(request, found, entry_id)
    place = (row.at, row.pk)
    above, beyond = queries.newer(stream, AROUND, Filter(), found.now, place)
    below, more = queries.older(stream, ROWS - AROUND, Filter(), found.now, place)
    context = _context(found, Filter(), [*above, row, *below], more)
    context |= {"typed": {}, "past": beyond, "linked": row.pk, **lately_of(stream, Filter(), found.now)}
    return render(request, "pages/timeline.html", context)


def _gone(request: HttpRequest, found: page.Opened, entry_id: int) -> HttpResponse:
    """410 where retention took it, else 404."""
    note = queries.pruned(found.cluster.stream, entry_id)
    if note is None:
        raise NotFound(f"The timeline of {found.cluster.name} has no entry {entry_id}.")
    context = _context(found, Filter(), [], False)
    context |= {"typed": {}, "past": True, "pruned": note, "entry_id": entry_id}
    return render(request, "pages/timeline.html", context, status=410)


def _context(found: page.Opened, chosen: Filter, entries: list[Entry], more: bool) -> dict[str, Any]:
    """Constant in queries: the entries and their drains, three lists for the form, one mark."""
    stream = found.cluster.stream
    look = queries.last_look(found.actor.user.pk, stream) if found.actor.user else None
    return {
        **found.shown("timeline"),
        "days": under_days(entries, found.now),
        "more": more,
        "older": place_of(entries[-1]) if more else "",
        "chosen": chosen,
        "query": filters.query_of(chosen),
        "wish": json.dumps(filters.for_browser(chosen), ensure_ascii=False),
        "chips": filters.chips(chosen),
        "tabs": tabs(stream, chosen, found.now),
        "offer": offer(stream),
        "look": look,
        "kept_days": page.kept_days(),
    }


def lately_of(stream: UUID, chosen: Filter, now: datetime) -> dict[str, Any]:
    """The last 24 hours as the page draws them, and the wish that a live row must meet to be counted there too."""
    wish = json.dumps(filters.for_browser(filters.at_any_time(chosen)), ensure_ascii=False)
    return {"lately": queries.lately(stream, chosen, now), "lately_wish": wish}


@signed_in
@require_safe
def lately(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """The picture again: a page that stays open asks each 20 minutes, when another bar begins. 204 where none can be drawn."""
    cluster = get_cluster(actor_of(request), cluster_id)
    chosen = filters.parse(request.GET)
    drawn = lately_of(cluster.stream, chosen, timezone.now())
    if drawn["lately"] is None:
        return HttpResponse(status=204)
    context = {"cluster": cluster, "query": filters.query_of(chosen), **drawn}
    return render(request, "pages/_lately.html", context)


@dataclass(frozen=True)
class Tab:
    """A severity to choose with one press. `number`: how many there were in the last 24 hours."""

    value: str
    title: str
    query: str
    current: bool
    number: str = ""
    icon: str = ""


def tabs(stream: UUID, chosen: Filter, now: datetime) -> list[Tab]:
    found = [Tab("", "All", filters.query_of(replace(chosen, severity="")), not chosen.severity)]
    for severity in (Entry.Severity.WARNING, Entry.Severity.CRITICAL):
        number = queries.counted(stream, severity, now - timedelta(hours=24))
        shown = "99+" if number >= queries.MOST_COUNTED else str(number)
        query = filters.query_of(replace(chosen, severity=severity))
        found.append(Tab(severity, str(severity.label), query, chosen.severity == severity, shown, f"i-{severity}"))
    return found


def offer(stream: UUID) -> dict[str, Any]:
    """What the form's lists hold."""
    kinds = filters.ACTOR_WORDS.items()
    people = [(f"{kind}:{name}", f"key {name}" if kind == Entry.ActorKind.KEY else name) for kind, name in queries.actors(stream)]
    return {
        "reasons": queries.reasons(stream),
        "nodes": queries.nodes(stream),
        "classes": filters.CLASSES,
        "actors": [*((kind, word[0].upper() + word[1:]) for kind, word in kinds), *people],
        "lengths": filters.LENGTH_WORDS.items(),
    }


@signed_in
@require_safe
def rows(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """A piece of the list: the rows right before or after a place, of the same filter. The page's script puts them in."""
    cluster, now = get_cluster(actor_of(request), cluster_id), timezone.now()
    chosen = filters.parse(request.GET)
    below, above = read_place(request.GET.get("before", "")), read_place(request.GET.get("after", ""))
    if (below is None) == (above is None):
        raise BadInput("Rows are asked for before or after the place of a row that is there.", param="before")
    if above is not None:
        entries, more = queries.newer(cluster.stream, ROWS, chosen, now, above)
    else:
        entries, more = queries.older(cluster.stream, ROWS, chosen, now, below)
    return render(request, "pages/_rows.html", {"rows": rows_of(entries, now), "more": more})


@signed_in
@require_POST
def looked(request: HttpRequest, cluster_id: UUID) -> JsonResponse:
    """The page was seen up to an entry. It is a person's own mark, and changes nothing for anybody else."""
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id)
    typed = request.POST.get("entry", "")
    if not (typed.isascii() and typed.isdigit() and len(typed) < 19):
        raise BadInput("The entry is a number.", param="entry")
    moved = actor.user is not None and looks.look(actor.user.pk, cluster.stream, int(typed), timezone.now())
    return JsonResponse({"moved": moved})
