"""What we know of an identity provider, read once out of allauth's app row (from settings or the database)."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp

from console.accounts.oidc.refusal import Refused

# Never an HS algorithm: its key would be the client secret, which the provider and every copy of our settings know.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})

# Which Microsoft Graph belongs to which of Entra ID's clouds, by the issuer's host (Microsoft's "national cloud deployments").
GRAPHS = {
    "login.microsoftonline.com": "https://graph.microsoft.com/v1.0",
    "login.microsoftonline.us": "https://graph.microsoft.us/v1.0",
    "login.partner.microsoftonline.cn": "https://microsoftgraph.chinacloudapi.cn/v1.0",
}


@dataclass(frozen=True)
class WrittenRule:
    """A group rule as settings have it: the project by its slug, None for every project; role None: fleet operator only."""

    group: str
    role: int | None = None
    project: str | None = None
    fleet_operator: bool = False


@dataclass(frozen=True)
class Provider:
    """One client registration at one issuer. `issuer` is compared exactly, letter for letter (OpenID Connect Discovery 4.3)."""

    id: str
    name: str
    issuer: str
    client_id: str
    secret: str
    groups_claim: str = "groups"
    algorithm: str = "RS256"  # the one algorithm its tokens may carry
    rules: tuple[WrittenRule, ...] = ()
    graph: str = ""  # where Microsoft Graph is, for people in more groups than a token holds; empty where there is none
    people: tuple[tuple[str, str], ...] = ()  # the demo's: login hint and label, one button each

    @property
    def discovery_url(self) -> str:
        return self.issuer.rstrip("/") + "/.well-known/openid-configuration"


def of_app(app: Any) -> Provider:
    """Raises ValueError where the row names an algorithm we would not trust."""
    algorithm = app.settings.get("algorithm", Provider.algorithm)
    if algorithm not in ALGORITHMS:
        raise ValueError(f"{app.provider_id}: {algorithm} is not an algorithm that ID tokens may be signed with")
    return Provider(
        id=app.provider_id,
        name=app.name,
        issuer=app.settings["server_url"],
        client_id=app.client_id,
        secret=app.secret,
        groups_claim=app.settings.get("groups_claim", Provider.groups_claim),
        algorithm=algorithm,
        rules=tuple(WrittenRule(**rule) for rule in app.settings.get("rules", ())),
        graph=app.settings.get("graph_url") or GRAPHS.get(urlsplit(app.settings["server_url"]).hostname or "", ""),
        people=tuple((hint, label) for hint, label in app.settings.get("people", ())),
    )


def apps() -> list[SocialApp]:
    """Every provider, in the order in which the sign-in page shows them."""
    return list(get_adapter().list_apps(None, provider="openid_connect"))


def by_id(provider_id: str) -> Provider | None:
    return next((of_app(app) for app in apps() if app.provider_id == provider_id), None)


def by_issuer(issuer: object) -> Provider:
    """Raises Refused for an issuer that nobody set up."""
    for app in apps():
        provider = of_app(app)
        if provider.issuer == issuer:
            return provider
    raise Refused(
        "This token comes from an identity provider that Halftide does not know.",
        "Compare the token's `iss` with HALFTIDE_OIDC_ISSUER: they must be equal letter for letter, a last slash included.",
    )
