"""The door: one button a provider (in the demo, one a person), and the way out."""

from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from console.accounts import sealing
from console.accounts.access import public
from console.accounts.models import SignIn
from console.accounts.oidc import config
from console.accounts.oidc.discovery import published
from console.accounts.oidc.refusal import ProviderDown
from console.http import API_PREFIXES


def safe_next(wanted: str) -> str:
    """Where to go after sign-in: a page of ours, never an API address (mozilla-django-oidc#363) and never another site."""
    ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if ours and not wanted.startswith(API_PREFIXES) else settings.LOGIN_REDIRECT_URL


@public
@require_safe
def sign_in(request: HttpRequest) -> HttpResponse:
    providers = [config.of_app(app) for app in config.apps()]
    found = {"providers": providers, "next": safe_next(request.GET.get("next", "")), "actor": request.actor}  # type: ignore[attr-defined]
    return render(request, "accounts/sign_in.html", found)


@public
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session here, then sends the browser to end the provider's; without that, one click would sign back in."""
    sign_in = SignIn.objects.filter(session_key=request.session.session_key or "").first()
    get_adapter(request).logout(request)
    return HttpResponseRedirect(_provider_sign_out(sign_in) or f"{reverse('signed_out')}?only=here")


def _provider_sign_out(sign_in: SignIn | None) -> str | None:
    """None where the provider has no address for it, or cannot be asked: then the page says so."""
    provider = config.by_id(sign_in.provider_id) if sign_in else None
    if sign_in is None or provider is None:
        return None
    try:
        address = published(provider).endpoints().get("end_session_endpoint")
    except ProviderDown:
        return None
    if not address:
        return None
    asked = {
        "id_token_hint": sealing.opened(sign_in.id_token),
        "client_id": provider.client_id,
        "post_logout_redirect_uri": settings.PUBLIC_URL + reverse("signed_out"),
    }
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"


@public
@require_safe
def signed_out(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/signed_out.html", {"only_here": request.GET.get("only") == "here"})
