"""What every page needs around it: where one can go, who one is, and whether automation runs.

One query (the switch); who one is and what one may is already on the request (`AccessMiddleware`).
"""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from console.accounts import queries as people
from console.accounts.access import Actor
from console.capacity.models import Automation


@dataclass(frozen=True)
class NavItem:
    title: str
    href: str
    current: bool
    key: str  # after g, on the keyboard


@dataclass(frozen=True)
class Switch:
    """The stop switch as the top bar says it."""

    on: bool
    title: str
    may_flip: bool


@dataclass(frozen=True)
class Shell:
    name: str
    nav: tuple[NavItem, ...]
    automation: Switch | None
    came_from: str = ""  # the page of ours that led here, for a way back

    @property
    def initial(self) -> str:
        return self.name[:1]

    @property
    def helpers(self) -> list[str]:
        """Who can give a role: asked for only by the page that refuses."""
        return [f"{one.get_username()} ({one.email})" if one.email else one.get_username() for one in people.administrators(3)]


def may_flip(actor: Actor) -> bool:
    """The switch stops every pool of every project, so it is for fleet operators."""
    return actor.fleet_operator


def switch(row: Automation | None, actor: Actor) -> Switch:
    if row is None or row.on:
        return Switch(True, "Refill, drains and repairs run by themselves", may_flip(actor))
    since = f" since {row.changed_at:%H:%M} UTC" if row.changed_at else ""
    why = f": “{row.why}”" if row.why else ""
    return Switch(False, f"Stopped{since} by {row.changed_by or 'somebody'}{why}", may_flip(actor))


def shell(request: HttpRequest) -> dict[str, Shell]:
    """Context processor: `shell` in every template. Who is not signed in, or has no role, sees no way to go."""
    actor: Actor = getattr(request, "actor", Actor())
    if not actor.has_any_role:
        return {"shell": Shell(actor.name if actor.signed_in else "", (), None)}
    nav = [NavItem("Clusters", "/", request.path == "/" or request.path.startswith("/clusters/"), "c")]
    if actor.fleet_operator:
        here = request.path == "/capacity" or request.path.startswith("/capacity/")
        nav.append(NavItem("Capacity", "/capacity", here, "p"))
    here = request.path == "/webhooks" or request.path.startswith("/webhooks/")
    nav.append(NavItem("Webhooks", "/webhooks", here, "h"))
    return {"shell": Shell(actor.name, tuple(nav), switch(Automation.objects.first(), actor), came_from(request))}


def came_from(request: HttpRequest) -> str:
    """The address of the page before, if it is one of ours and another than this."""
    before = request.headers.get("Referer", "")
    ours = url_has_allowed_host_and_scheme(before, {request.get_host()}, require_https=request.is_secure())
    return before if ours and before != request.build_absolute_uri() else ""
