"""Every API address with its rule: each route needs somebody with a role, and looks only into that one's projects.

Below the API's prefixes nothing falls through to the pages: what is not there is said as JSON, and so is a wrong method.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, include, path, re_path
from django.views.decorators.csrf import csrf_exempt

from console.accounts.access import public, signed_in
from console.api.errors import NotAllowed, unknown_address
from console.api.framework import api
from console.api.routes import compute, people
from console.http import answer

api.add_router("/v1/compute", compute)
api.add_router("", people)


def in_envelope(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The library answers a wrong method with bare text."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        allowed = ", ".join(sorted(response["Allow"].split(", ")))
        refused = answer(request, NotAllowed(f"{request.method} does nothing here; {allowed} does.", code="method_not_allowed"))
        refused["Allow"] = allowed
        return refused

    return answered


@public
@csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    return answer(request, unknown_address(request.path))


def route(pattern: URLPattern) -> URLPattern:
    return path(str(pattern.pattern), signed_in(in_envelope(pattern.callback)), name=pattern.name)


DOCUMENTS = {"openapi-json", "openapi-view"}  # public by the API's own setting: they hold nothing of anybody
patterns = [one for one in api.urls[0] if isinstance(one, URLPattern) and one.name != "api-root"]
documents = [one for one in patterns if one.name in DOCUMENTS]

urlpatterns = [
    path("", include((documents, "ninja"), namespace="api")),
    *(route(one) for one in patterns if one.name not in DOCUMENTS),
    re_path(r"^(?:v1|v3|api)/", nothing_here),
]
