"""Search over pages, clusters, nodes and entries: a page of its own, and the same hits as JSON for the palette on every page."""

from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.http import wants_json
from console.pages.asking import actor_of
from console.pages.finding import find


@signed_in
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    found = find(actor_of(request), request.GET.get("q", ""))
    if wants_json(request):
        return JsonResponse(asdict(found))
    return render(request, "pages/search.html", {"found": found})
