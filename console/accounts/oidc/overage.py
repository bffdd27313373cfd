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
from console.accounts.oidc.verify import require_storable
from console.accounts.roles import WHY, points, without_reason

# Groups within groups too, as in the token's own list; 999 is the most that Graph puts on a page.
QUESTION = "/me/transitiveMemberOf?$select=id&$top=999"
MOST_PAGES = 10
LONGEST = 4.0  # seconds for all pages together: a person is waiting, or a task that may last 20
ASK_AGAIN = 60.0  # seconds that a Graph which did not answer is left alone: others wait for it too
GROUP = "#microsoft.graph.group"  # roles of the directory and administrative units stand in the same list


@dataclass
class NotGiven(Exception):
    """Graph did not give the groups. `why` ends a sentence about it."""

    why: str


_left_alone: dict[str, float] = {}  # until when, by the provider's id


def followed(claims: Mapping[str, Any], provider: Provider, access_token: str) -> Mapping[str, Any]:
    """The claims with the groups in place of the pointer to them; where that fails, with the pointer and why."""
    own = without_reason(claims)
    if not points(own, provider.groups_claim):
        return own
    try:
        groups = {provider.groups_claim: list(_groups(provider, access_token))}
        require_storable(groups)
        return {**own, **groups}
    except NotGiven as error:
        return {**own, WHY: error.why}


def _groups(provider: Provider, access_token: str) -> Iterator[str]:
    """The ids of all groups of the person whose token it is. Raises NotGiven, also where there are too many pages."""
    if not provider.graph:
        raise NotGiven("no Microsoft Graph is known for this issuer (HALFTIDE_OIDC_GRAPH_URL)")
    if time.monotonic() < _left_alone.get(provider.id, 0.0):
        raise NotGiven("Microsoft Graph did not answer a moment ago")
    url, ends = provider.graph + QUESTION, time.monotonic() + LONGEST
    for _ in range(MOST_PAGES):
        page = _page(provider, url, access_token, ends - time.monotonic())
        yield from (entry["id"] for entry in page["value"] if _is_group(entry))
        url = page.get("@odata.nextLink", "")
        if not url:
            return
        if not isinstance(url, str) or not url.startswith(_origin(provider.graph)):
            raise NotGiven("Microsoft Graph named a next page that is not its own")
    raise NotGiven(f"Microsoft Graph gave more than {MOST_PAGES} pages")


def _origin(address: str) -> str:
    """Scheme, host and the first slash of the path: what every address of the same server begins with."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}/"


def _page(provider: Provider, url: str, access_token: str, seconds: float) -> Mapping[str, Any]:
    try:
        answer = http().get(url, headers={"Authorization": f"Bearer {access_token}"}, timeout=max(seconds, 0.01))
        found = answer.json()
    except httpx.TransportError as error:
        _left_alone[provider.id] = time.monotonic() + ASK_AGAIN
        raise NotGiven(f"Microsoft Graph does not answer ({type(error).__name__})") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise NotGiven(f"Microsoft Graph answered with something else ({type(error).__name__})") from error
    if answer.status_code in (401, 403):
        raise NotGiven(
            f"Microsoft Graph refused them ({answer.status_code}): the application there needs the delegated permission User.Read"
        )
    if answer.status_code != 200 or not isinstance(found, dict) or not isinstance(found.get("value"), list):
        raise NotGiven(f"Microsoft Graph answered with something else ({answer.status_code})")
    return found


def _is_group(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry.get("@odata.type", GROUP) == GROUP
