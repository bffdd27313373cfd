"""Every API address with its rule: each route needs somebody with a role, and looks only into that one's projects.

Below the API's prefixes nothing falls through to the pages: what is not there is said as JSON, and so is a wrong method.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, include, path, re_path
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from console.accounts.access import public, signed_in
from console.api.drain_routes import router as drains
from console.api.errors import NotAllowed, unknown_address
from console.api.framework import api
from console.api.preview import previews
from console.api.routes import compute, people
from console.api.script_routes import router as scripts
from console.api.workload_routes import router as workloads
from console.http import answer

api.add_router("/v1/compute", previews)  # first: "preview" is no drain's id
api.add_router("/v1/compute", compute)
api.add_router("/v1/compute", drains)
api.add_router("/v1/compute", scripts)
api.add_router("/v1/compute", workloads)
api.add_router("", people)


def in_envelope(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """What the library leaves out: HEAD where there is GET (the server drops the body), and words for a wrong method.

    Answers hold live numbers and kubeconfigs, so nobody keeps a copy of them.
    """

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        method = request.method
        request.method = "GET" if method == "HEAD" else method
        response = view(request, *args, **kwargs)
        request.method = method
        patch_cache_control(response, no_store=True)
        if response.status_code != 405:
            return response
        allowed = ", ".join(sorted(response["Allow"].split(", ")))
        refused = answer(request, NotAllowed(f"{method} does nothing here; {allowed} does.", code="method_not_allowed"))
        refused["Allow"] = allowed
        return refused

    return answered


@public
@csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    return answer(request, unknown_address(request.path))


def route(pattern: URLPattern) -> URLPattern:
    return path(str(pattern.pattern), signed_in(in_envelope(pattern.callback)), name=pattern.name)


def document(pattern: URLPattern) -> URLPattern:
    """Open to everybody: it holds nothing of anybody."""
    view = csrf_exempt(in_envelope(require_GET(pattern.callback)))
    return path(str(pattern.pattern), public(view), name=pattern.name)


DOCUMENTS = {"openapi-json", "openapi-view"}
patterns = [one for one in api.urls[0] if isinstance(one, URLPattern) and one.name != "api-root"]
documents = [document(one) for one in patterns if one.name in DOCUMENTS]

urlpatterns = [
    path("", include((documents, "ninja"), namespace="api")),
    *(route(one) for one in patterns if one.name not in DOCUMENTS),
    re_path(r"^(?:v1|v3|api)/", nothing_here),
]
