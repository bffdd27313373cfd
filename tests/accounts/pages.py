"""A small console for these tests: the real door, and one view of each rule behind it."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from console.accounts.access import fleet, public, signed_in


def forgotten(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request.actor.name}: {request.method}")


@signed_in
def home(request: HttpRequest) -> HttpResponse:
    return forgotten(request)


@public
def about(request: HttpRequest) -> HttpResponse:
    return forgotten(request)


@fleet
def pools(request: HttpRequest) -> HttpResponse:
    return forgotten(request)


urlpatterns = [
    path("", include("console.accounts.urls")),
    path("", home),
    path("about/", about),
    path("pools/", pools),
    path("forgotten/", forgotten),
    path("v1/echo", home),
    path("v1/about", about),
]
