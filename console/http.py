"""Domain errors and the one place that turns them into an answer.

A view or service raises what went wrong, with the sentence a person can act on; this middleware renders it once, as JSON
in the API's envelope (`{"error": {"message", "type", "param", "code"}}`, DESIGN 12) or as a page. No view has a `try`.
"""

import re
import uuid
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone

API_PREFIXES = ("/v1/", "/v3/", "/api/")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{8,64}")


class DomainError(Exception):
    """Something a person asked for cannot be done. `message` says what happened and what to do about it."""

    status = 400
    type = "invalid_request_error"
    title = "That did not work"

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, **state: Any) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.state = state  # what a page or client needs to go on, such as the newer value in a conflict


class BadInput(DomainError):
    """The request's text or numbers make no sense (400)."""


class NotSignedIn(DomainError):
    status = 401
    type = "authentication_error"
    title = "Sign in first"


class Forbidden(DomainError):
    """Known, but not for this role (403). The message names who can help."""

    status = 403
    type = "permission_error"
    title = "Your role does not allow that"


class NotFound(DomainError):
    """Not there, or not for this person to know about (404)."""

    status = 404
    type = "not_found_error"
    title = "Not found"


class Conflict(DomainError):
    """Somebody was faster, or the state does not allow it (409). `state` carries the newer values."""

    status = 409
    type = "conflict_error"
    title = "It changed meanwhile"


class PreconditionFailed(DomainError):
    status = 412
    type = "precondition_failed"
    title = "It changed meanwhile"


class Unprocessable(DomainError):
    """Well-formed, but not a value this thing can have (422). The message names the nearest good ones."""

    status = 422
    title = "That value does not fit"


class Unavailable(DomainError):
    """Something Halftide needs does not answer (503). Nothing was changed."""

    status = 503
    type = "service_unavailable"
    title = "Not reachable just now"


def wants_json(request: HttpRequest) -> bool:
    """API paths always speak JSON; elsewhere the caller's Accept header decides."""
    if request.path.startswith(API_PREFIXES):
        return True
    accept = request.headers.get("Accept", "")
    return "application/json" in accept and "text/html" not in accept


def envelope(error: DomainError) -> dict[str, Any]:
    """The error shape of the API, with `state` beside the four fixed fields."""
    fixed = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    return {"error": {**fixed, **error.state}}


def answer(request: HttpRequest, error: DomainError) -> HttpResponse:
    """One domain error as JSON or as a page; both carry the same sentence and status."""
    if wants_json(request):
        response: HttpResponse = JsonResponse(envelope(error), status=error.status)
    else:
        response = render(request, "error.html", {"error": error}, status=error.status)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="halftide"'
    return response


def broken(request: HttpRequest) -> HttpResponse:
    """Something of ours failed (500), the database perhaps: the envelope on API paths, elsewhere a page that needs nothing."""
    if not wants_json(request):
        found = {"request_id": getattr(request, "request_id", ""), "now": timezone.now()}
        return HttpResponse(render_to_string("500.html", found), status=500)
    error = DomainError("Halftide failed to answer this. Nothing was changed; try again in a moment.", code="internal")
    return JsonResponse({"error": {**envelope(error)["error"], "type": "server_error"}}, status=500)


class RequestIdMiddleware:
    """Each request has an id, the proxy's where it gave a sound one: in the answer, on error pages and in the log."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-ID", "")
        request.request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex[:16]  # type: ignore[attr-defined]
        response = self.get_response(request)
        response["X-Request-ID"] = request.request_id  # type: ignore[attr-defined]
        return response


class ErrorMiddleware:
    """Turns domain errors (and Django's own 403 and 404) into answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, DomainError):
            return answer(request, exception)
        if isinstance(exception, PermissionDenied):
            return answer(request, Forbidden("You may not do that. An administrator of the project can help."))
        if isinstance(exception, Http404):
            return answer(request, NotFound("There is nothing at this address."))
        return None
