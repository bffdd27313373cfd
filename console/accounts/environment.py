"""Identity providers that come from the environment: one of the company's, and in the demo the demo's own.

Read by settings, before Django stands; a role is its number (`accounts.models.Role`).
"""

from typing import Any
from urllib.parse import urlsplit

from console import env

ROLES = {"viewer": 1, "operator": 2, "admin": 3}
FLEET = "fleet"
GROUP_LIMIT = 200  # letters; what a grant keeps of where it came from
DEMO_PEOPLE = (
    ("ada", "Ada, admin"),
    ("olu", "Olu, operator"),
    ("vic", "Vic, viewer in one project"),
    ("fay", "Fay, in no group"),
)
DEMO_MAP = (
    "halftide-admins=admin",
    "halftide-admins=fleet",
    "halftide-operators=operator",
    "halftide-operators=fleet",
    "aurora-viewers=viewer@aurora",
)

Rules = list[dict[str, Any]]


def role_map(name: str, words: tuple[str, ...]) -> Rules:
    """`GROUP=ROLE` or `GROUP=ROLE@PROJECT`, ROLE one of viewer, operator, admin, fleet; PROJECT is the slug of one."""
    rules: Rules = []
    for word in words:
        group, equals, given = word.rpartition("=")
        role, _, project = given.partition("@")
        if not equals or not 0 < len(group) <= GROUP_LIMIT or (role not in ROLES and (role != FLEET or project)):
            raise env.SettingError(
                f"{name} must be a list such as `ml=operator,research=viewer@aurora,sre=fleet`; {word!r} is not of that form."
            )
        rules.append({"group": group, "role": ROLES.get(role), "project": project or None, "fleet_operator": role == FLEET})
    return rules


def from_environment() -> list[dict[str, Any]]:
    """The provider of HALFTIDE_OIDC_ISSUER as allauth wants it; none where that is unset."""
    if env.raw("HALFTIDE_OIDC_ISSUER") is None:
        return []
    rules = role_map("HALFTIDE_OIDC_ROLE_MAP", env.words("HALFTIDE_OIDC_ROLE_MAP"))
    admins = env.text("HALFTIDE_ADMIN_GROUP", "")
    if admins:
        rules += role_map("HALFTIDE_ADMIN_GROUP", (f"{admins}=admin", f"{admins}={FLEET}"))
    issuer = env.url("HALFTIDE_OIDC_ISSUER")
    return [
        {
            "provider_id": "sso",
            "name": env.text("HALFTIDE_OIDC_NAME", urlsplit(issuer).hostname or issuer),
            "client_id": env.text("HALFTIDE_OIDC_CLIENT_ID"),
            "secret": env.secret("HALFTIDE_OIDC_CLIENT_SECRET"),
            "settings": {
                "server_url": issuer,
                "groups_claim": env.text("HALFTIDE_OIDC_GROUPS_CLAIM", "groups"),
                "graph_url": env.url("HALFTIDE_OIDC_GRAPH_URL", schemes=("https",)).rstrip("/")
                if env.raw("HALFTIDE_OIDC_GRAPH_URL")
                else "",
                "rules": rules,
            },
        }
    ]


def demo(issuer: str) -> dict[str, Any]:
    """The demo's own provider, with a button for each person. Its client secret is made by `make up` for both processes."""
    return {
        "provider_id": "demo",
        "name": "the demo's identity provider",
        "client_id": "halftide",
        "secret": env.secret("HALFTIDE_OIDC_CLIENT_SECRET", "halftide-demo"),
        "settings": {"server_url": issuer, "rules": role_map("the demo's role map", DEMO_MAP), "people": DEMO_PEOPLE},
    }


def origins(apps: list[dict[str, Any]]) -> list[str]:
    """Where a form may lead in the end: browsers check the redirects after it against the policy too."""
    parts = [urlsplit(app["settings"]["server_url"]) for app in apps]
    return [f"{part.scheme}://{part.netloc}" for part in parts]
