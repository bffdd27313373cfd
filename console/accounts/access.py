"""What somebody may do, asked once per request and the same for pages, API and sockets.

Deny by default: a view says its rule with a decorator (`public`, `signed_in`, `fleet`), and `AccessMiddleware` refuses a
view that says none. Inside a project, the view's "fetch it or refuse" helper (`clusters.access`) checks the role.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from console.accounts.models import ApiKey, Role, User
from console.http import Forbidden

View = TypeVar("View", bound=Callable[..., Any])

PUBLIC, SIGNED_IN, FLEET = "public", "signed_in", "fleet"


@dataclass(frozen=True)
class Actor:
    """Who asks: a person in a browser, or an API key or bearer token of one. Nobody is `Actor()`."""

    user: User | None = None
    key: ApiKey | None = None
    address: str | None = None
    everywhere: Role | None = None  # a role in every project
    roles: Mapping[UUID, Role] = field(default_factory=dict)  # by project
    fleet_operator: bool = False

    @property
    def signed_in(self) -> bool:
        return self.user is not None

    @property
    def name(self) -> str:
        """As timelines and the audit trail say it: the key's name where a key was used, else the person's."""
        if self.key is not None:
            return self.key.name
        return self.user.get_username() if self.user is not None else "nobody"

    def role_in(self, project_id: UUID) -> Role | None:
        """The higher of the role in this project and the role everywhere; None where there is neither."""
        found = [role for role in (self.roles.get(project_id), self.everywhere) if role is not None]
        return max(found, default=None)

    def may(self, project_id: UUID, role: Role) -> bool:
        mine = self.role_in(project_id)
        return mine is not None and mine >= role

    @property
    def administers(self) -> bool:
        """Administrator of any project."""
        return Role.ADMIN in (self.everywhere, *self.roles.values())

    def require(self, project_id: UUID, role: Role) -> None:
        """Raise Forbidden with who can help unless the role is held."""
        if not self.may(project_id, role):
            raise Forbidden(
                f"This needs the role {role.label} in this project. An administrator of the project can give it to you."
            )

    @property
    def has_any_role(self) -> bool:
        return self.everywhere is not None or bool(self.roles) or self.fleet_operator


def _rule(name: str) -> Callable[[View], View]:
    def mark(view: View) -> View:
        view.access_rule = name  # type: ignore[attr-defined]
        return view

    return mark


def rule_of(view: Callable[..., object]) -> str | None:
    """The rule that a view's decorator left on it; None where there is none, and then the view is refused."""
    rule: str | None = getattr(view, "access_rule", None)
    return rule


public = _rule(PUBLIC)
signed_in = _rule(SIGNED_IN)
fleet = _rule(FLEET)
