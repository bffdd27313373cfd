"""allauth's OpenID Connect provider, with what it leaves out: a nonce, PKCE always, and our verifier for the ID token.

allauth keeps what it is good at: a state per attempt (two tabs do not disturb each other), the code exchange, the accounts.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any

from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from console.accounts import identities
from console.accounts.oidc import config, overage
from console.accounts.oidc.client import user_info
from console.accounts.oidc.discovery import published
from console.accounts.oidc.refusal import Refused
from console.accounts.oidc.verify import verify

HINT_LIMIT = 200  # letters of a login hint that are passed on
SCOPES = ("openid", "profile", "email")
GRAPH_SCOPE = "User.Read"  # what reading one's own groups at Microsoft Graph takes
WELCOME_SCOPES = ("offline_access", "groups")  # asked for only where the provider lists them; some refuse unknown scopes


class Adapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Talks to the provider in one sign-in. `nonce` is set from the attempt's state when the browser comes back."""

    nonce = ""

    @property
    def about(self) -> config.Provider:
        return config.of_app(self.get_provider().app)

    @property
    def openid_config(self) -> dict[str, Any]:
        return dict(published(self.about).endpoints())

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:  # noqa: ARG002  (the library's shape)
        """Always under the canonical address: a proxy's internal name must not leak (mozilla/mozilla-django-oidc#417)."""
        return f"{settings.PUBLIC_URL}{reverse('openid_connect_callback', kwargs={'provider_id': self.provider_id})}"

    def complete_login(self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any) -> SocialLogin:  # noqa: ARG002
        raw = kwargs["response"].get("id_token")
        if not isinstance(raw, str):
            look_at = "The client there must be an OpenID Connect one, with the scope `openid`."
            raise Refused("The identity provider sent no ID token.", look_at)
        provider = self.about
        claims = verify(raw, provider, published(provider), time.time(), nonce=self.nonce)
        about_person = user_info(published(provider).endpoints(), token.token, claims["sub"])
        # User info, with the signed ID token's word above it; groups often stand in only one of the two.
        told = overage.followed({**about_person, **claims}, provider, token.token)
        login = self.get_provider().sociallogin_from_response(request, {"id_token": told})
        login.raw_id_token = raw
        return login


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """One button of the sign-in page."""

    pkce_enabled_default = True
    oauth2_adapter_class = Adapter

    def get_default_scope(self) -> list[str]:
        about = config.of_app(self.app)
        supported = published(about).endpoints().get("scopes_supported") or ()
        return [*SCOPES, *(scope for scope in WELCOME_SCOPES if scope in supported), *([GRAPH_SCOPE] if about.graph else [])]

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:  # noqa: ARG002
        return self.get_scope()  # type: ignore[no-any-return]

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, str]:  # noqa: ARG002
        """Only a hint whom to sign in; a link must not choose any other parameter of the request to the provider."""
        hint = request.POST.get("login_hint", "")[:HINT_LIMIT]
        return {**self.get_auth_params(), **({"login_hint": hint} if hint else {})}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Never `process=connect`: linking two identities is not something a request parameter may start."""
        return {**super().get_redirect_from_request_kwargs(request), "process": AuthProcess.LOGIN}

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: object = None, **kwargs: Any
    ) -> HttpResponse:
        nonce = secrets.token_urlsafe(24)
        params = {**(kwargs.pop("auth_params", None) or {}), "nonce": nonce}
        response: HttpResponse = super().redirect(request, process, next_url, data, auth_params=params, nonce=nonce, **kwargs)
        return response

    def extract_uid(self, data: Mapping[str, Any]) -> str:
        return identities.uid(data["id_token"]["iss"], data["id_token"]["sub"])

    def extract_common_fields(self, data: Mapping[str, Any]) -> dict[str, Any]:
        person = data["id_token"]
        found = {"username": person.get("preferred_username"), "name": person.get("name")}
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def extract_email_addresses(self, data: Mapping[str, Any]) -> list[Any]:  # noqa: ARG002
        """None: the library would look for an account with the same one. An address is only shown (mcdonc/klangk#166)."""
        return []
