"""The two addresses of a sign-in: away to the provider, and back. Everything that goes wrong ends on one refusal page."""

from typing import Any

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from console.accounts.access import public
from console.accounts.oidc.provider import Adapter
from console.accounts.oidc.refusal import ProviderDown, Refused
from console.accounts.refusals import refuse


class CallbackView(OAuth2CallbackView):  # type: ignore[misc]
    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        """The library hands the attempt's state to nobody; the nonce in it has to reach the verifier."""
        state, refusal = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce") or ""
        return state, refusal


@public
@require_POST
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """POST, so that no other site can start a sign-in in this browser."""
    return _through(request, OAuth2LoginView, provider_id)


@public
@require_GET
def finish(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _through(request, CallbackView, provider_id)


def _through(request: HttpRequest, view: Any, provider_id: str) -> HttpResponse:
    try:
        response: HttpResponse = view.adapter_view(Adapter(request, provider_id))(request)
        return response
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except (Refused, ProviderDown) as error:
        return refuse(request, error.message, error.look_at, error.status)
