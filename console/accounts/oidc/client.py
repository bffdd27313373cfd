"""The two questions we ask a provider about a person: user info, and a refresh."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from console.accounts.oidc.config import Provider
from console.accounts.oidc.discovery import LIMIT, http
from console.accounts.oidc.refusal import ProviderDown, Refused
from console.accounts.oidc.verify import require_storable


@dataclass(frozen=True)
class Refreshed:
    """`refresh_token` is empty where the old one stays good."""

    access_token: str
    id_token: str
    refresh_token: str


class Revoked(Exception):
    """The provider no longer vouches for this session: the person was removed, or signed out there."""


def user_info(endpoints: Mapping[str, Any], access_token: str, subject: str) -> Mapping[str, Any]:
    """What the provider tells about a person; nothing where it has no such endpoint.

    Raises Refused where it is about somebody else (OpenID Connect Core 5.3.2), ProviderDown where it does not answer.
    """
    url = endpoints.get("userinfo_endpoint")
    if not url:
        return {}
    try:
        response = http().get(str(url), headers={"Authorization": f"Bearer {access_token}"})
        response.raise_for_status()
        found = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise ProviderDown(
            "The identity provider did not say who you are. Try again in a minute.",
            f"{url} must answer within {LIMIT:g} seconds with JSON ({type(error).__name__}).",
        ) from error
    if not isinstance(found, dict) or found.get("sub") != subject:
        raise Refused(
            "The identity provider's two answers are about two people.",
            f"The `sub` that {url} gives must equal that of the ID token.",
        )
    require_storable(found)
    return found


def refresh(provider: Provider, endpoints: Mapping[str, Any], refresh_token: str) -> Refreshed:
    """Ask again for somebody's tokens. Raises Revoked only where the provider says that the grant is over.

    Everything else (our own client refused, too many requests, no answer) is ProviderDown: it says nothing of the person.
    """
    url = str(endpoints.get("token_endpoint"))
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    methods = endpoints.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    auth: httpx.Auth = httpx.BasicAuth(provider.client_id, provider.secret)
    if "client_secret_post" in methods:
        form, auth = form | {"client_id": provider.client_id, "client_secret": provider.secret}, httpx.Auth()
    try:
        response = http().post(url, data=form, auth=auth)
        found = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise _no_refresh(url, type(error).__name__) from error
    said = found.get("error") if isinstance(found, dict) else None
    if response.status_code == 400 and said == "invalid_grant":
        raise Revoked
    if response.status_code != 200 or not isinstance(found, dict) or "access_token" not in found:
        raise _no_refresh(url, f"{response.status_code} {str(said)[:60]}")
    return Refreshed(*(str(found.get(name) or "") for name in ("access_token", "id_token", "refresh_token")))


def _no_refresh(url: str, why: str) -> ProviderDown:
    return ProviderDown("The identity provider could not be asked again.", f"{url} answered: {why}.")
