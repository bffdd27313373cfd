"""Every request gets its actor, and every view without a rule is refused: deny by default, in one place.

Under the API's prefixes a browser's cookie only reads: whatever changes something there carries a key or token, so that no
other site can make a signed-in browser do it (the API has no CSRF check of its own).
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import patch_cache_control

from console.accounts import queries, rules
from console.accounts.access import FLEET, PUBLIC, Actor
from console.accounts.services import NO_CREDENTIALS, actor_for_authorization, actor_for_session
from console.http import API_PREFIXES, DomainError, Forbidden, NotSignedIn, answer, wants_json

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class AccessMiddleware:
    """Sets `request.actor`; asks for sign-in, refuses who may not, and tells people without any role whom to ask."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            request.actor = actor_of(request)  # type: ignore[attr-defined]
        except DomainError as error:
            request.actor = Actor(address=address_of(request))  # type: ignore[attr-defined]
            return answer(request, error)
        response = self.get_response(request)
        if request.actor.signed_in:  # type: ignore[attr-defined]
            # What a person saw must not come back from a cache after they signed out.
            patch_cache_control(response, private=True)
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponseBase],
        args: tuple[Any, ...],  # noqa: ARG002  (Django's shape)
        kwargs: dict[str, Any],  # noqa: ARG002
    ) -> HttpResponseBase | None:
        actor: Actor = request.actor  # type: ignore[attr-defined]
        rule = rules.rule_for(view, request.resolver_match)
        elsewhere = canonical(request, actor)
        if elsewhere is not None:
            return elsewhere
        if rule == PUBLIC:
            return None
        if not actor.signed_in:
            return ask_to_sign_in(request)
        if rule is None:
            return answer(request, Forbidden("Nobody may open this address: it has no rule yet. This is a fault of Halftide."))
        if not actor.has_any_role:
            return no_role(request, actor)
        if rule == FLEET and not actor.fleet_operator:
            return answer(request, Forbidden("This is for fleet operators. An administrator can make you one."))
        return None


def address_of(request: HttpRequest) -> str | None:
    """Where the request came from; None behind a Unix socket. Forwarding headers are the web server's business."""
    return request.META.get("REMOTE_ADDR") or None


def actor_of(request: HttpRequest) -> Actor:
    """Raises NotSignedIn for credentials that are no good; none at all are nobody's."""
    address = address_of(request)
    if request.path.startswith(API_PREFIXES):
        header = request.headers.get("Authorization")
        if header:
            return actor_for_authorization(header, address)
        if request.method not in SAFE:
            return Actor(address=address)
    return actor_for_session(request.user, address)


def canonical(request: HttpRequest, actor: Actor) -> HttpResponse | None:
    """A signed-out page under another host name moves to the canonical one: cookies and the provider know only that."""
    pages = request.method == "GET" and not request.path.startswith((*API_PREFIXES, "/healthz", "/readyz", "/metrics"))
    if not pages or actor.signed_in or request.get_host() == settings.PUBLIC_HOST:
        return None
    return HttpResponseRedirect(settings.PUBLIC_URL + request.get_full_path())


def ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """A page moves to sign-in and comes back after it; whatever runs in the background gets 401 (mozilla-django-oidc#363)."""
    if request.path.startswith(API_PREFIXES):
        return answer(request, NotSignedIn(NO_CREDENTIALS))
    if request.method == "GET" and not request.headers.get("HX-Request") and not wants_json(request):
        return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': request.get_full_path()})}")
    return answer(request, NotSignedIn("You are signed out. Sign in again, in this tab or another; what you typed stays here."))


def no_role(request: HttpRequest, actor: Actor) -> HttpResponse:
    error = Forbidden("You are signed in, but no role was given to you yet. An administrator can.")
    if wants_json(request):
        return answer(request, error)
    found = {"actor": actor, "administrators": queries.administrators(), "sayings": queries.sayings(actor)}
    return render(request, "accounts/no_role.html", found, status=error.status)
