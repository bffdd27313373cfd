"""Somebody in more groups than a token holds: Entra ID then sends a pointer, and Microsoft Graph has the list (DESIGN 8).

The address in the pointer is not followed: it often names an API that has been retired, and whoever it names would be given the
person's access token. We ask the Graph that belongs to the issuer, about the person whose token it is.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from console.accounts.oidc.config import Provider
from console.accounts.oidc.discovery import http

# Groups within groups too, as in the token's own list; 999 is the most that Graph puts on a page.
QUESTION = "/me/transitiveMemberOf?$select=id&$top=999"
MOST_PAGES = 30
LONGEST = 15.0  # seconds for all pages together; a person is waiting
GROUP = "#microsoft.graph.group"  # roles of the directory and administrative units stand in the same list

# Where the sentence is kept, beside the claims, for the person and the trail. Never the provider's own word.
WHY = "halftide_groups_not_given"


@dataclass
class NotGiven(Exception):
    """Graph did not give the groups. `why` ends a sentence about it."""

    why: str


def points(claims: Mapping[str, Any], claim: str) -> bool:
    """Whether the claim is left out and pointed to (OpenID Connect Core 5.6.2, "distributed claims")."""
    names = claims.get("_claim_names")
    return claim not in claims and isinstance(names, Mapping) and claim in names


def followed(claims: Mapping[str, Any], provider: Provider, access_token: str) -> Mapping[str, Any]:
    """The claims with the groups in place of the pointer to them; where that fails, with the pointer and why."""
    own = {name: value for name, value in claims.items() if name != WHY}
    if not points(own, provider.groups_claim):
        return own
    try:
        return {**own, provider.groups_claim: list(_groups(provider, access_token))}
    except NotGiven as error:
        return {**own, WHY: error.why}


def _groups(provider: Provider, access_token: str) -> Iterator[str]:
    """The ids of all groups of the person whose token it is. Raises NotGiven, also where there are too many pages."""
    if not provider.graph:
        raise NotGiven("no Microsoft Graph is known for this issuer (HALFTIDE_OIDC_GRAPH_URL)")
    url, ends = provider.graph + QUESTION, time.monotonic() + LONGEST
    for _ in range(MOST_PAGES):
        if time.monotonic() > ends:
            raise NotGiven(f"Microsoft Graph took longer than {LONGEST:g} seconds")
        page = _page(url, access_token)
        yield from (entry["id"] for entry in page["value"] if _is_group(entry))
        url = page.get("@odata.nextLink", "")
        if not url:
            return
        if not isinstance(url, str) or urlsplit(url)[:2] != urlsplit(provider.graph)[:2]:
            raise NotGiven("Microsoft Graph named a next page that is not its own")
    raise NotGiven(f"Microsoft Graph gave more than {MOST_PAGES} pages")


def _page(url: str, access_token: str) -> Mapping[str, Any]:
    try:
        answer = http().get(url, headers={"Authorization": f"Bearer {access_token}"})
        found = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise NotGiven(f"Microsoft Graph does not answer ({type(error).__name__})") from error
    if answer.status_code in (401, 403):
        raise NotGiven(
            f"Microsoft Graph refused them ({answer.status_code}): the application there needs the delegated permission User.Read"
        )
    if answer.status_code != 200 or not isinstance(found, dict) or not isinstance(found.get("value"), list):
        raise NotGiven(f"Microsoft Graph answered with something else ({answer.status_code})")
    return found


def _is_group(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry.get("@odata.type", GROUP) == GROUP
