"""A small console for these tests: the real door, and one view of each rule behind it."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from console.accounts.access import fleet, public, signed_in


def echo(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request.actor.name}: {request.method}")


urlpatterns = [
    path("", include("console.accounts.urls")),
    path("", signed_in(lambda request: echo(request))),
    path("open/", public(lambda request: echo(request))),
    path("pools/", fleet(lambda request: echo(request))),
    path("forgotten/", lambda request: echo(request)),
    path("v1/echo", signed_in(lambda request: echo(request))),
]
