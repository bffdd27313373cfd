"""Who asks, who may, and the trail of what they did: the doors by which other rooms enter `accounts`."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from console.accounts import queries
from console.accounts.access import Actor
from console.accounts.changes import audit as audit
from console.accounts.changes import grant as grant
from console.accounts.models import ApiKey, Project, Role, User
from console.accounts.oidc.bearer import user_for_token
from console.http import NotSignedIn

KEY_PREFIX = "ht_"
LAST_USED_EVERY = timedelta(minutes=1)
NO_CREDENTIALS = "Send an API key as `Authorization: Bearer …`. An administrator of the project can give you one."


def actor_from(user: User, held: Iterable[queries.Held], address: str | None) -> Actor:
    """The highest role in each project and everywhere, out of all grants of a person."""
    roles: dict[UUID | None, Role] = {}
    fleet = user.fleet_operator
    for project, role, operates in held:
        fleet = fleet or operates
        if role is not None:
            roles[project] = max(roles.get(project, Role.VIEWER), Role(role))
    everywhere = roles.pop(None, None)
    return Actor(
        user=user,
        address=address,
        everywhere=everywhere,
        roles={project: role for project, role in roles.items() if project is not None},
        fleet_operator=fleet,
    )


def actor_for_session(user: Any, address: str | None) -> Actor:
    """Of `request.user` or a socket's user, signed in or not; one query."""
    if not isinstance(user, User) or not user.is_active:
        return Actor(address=address)
    return actor_from(user, queries.held_by(user), address)


def fingerprint(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def key_role(key: Role, owner: Role | None) -> Role | None:
    """A key never does more than its owner may now; without an owner's role it does nothing."""
    return None if owner is None else min(key, owner)


def key_operates_fleet(owner: Actor, role: Role) -> bool:
    """Whether a key may do what fleet operators may: its owner is one now, and the key itself (`role`, as it counts) may act.

    It stays in its project all the same: a cluster of another one is not there for it.
    """
    return owner.fleet_operator and role >= Role.OPERATOR


def actor_for_key(secret: str, address: str | None, now: datetime) -> Actor:
    """Raises NotSignedIn for a key that is unknown, revoked, or whose owner has lost the project."""
    key = (
        ApiKey.objects.select_related("owner")
        .filter(fingerprint=fingerprint(secret), revoked_at=None, owner__is_active=True)
        .first()
    )
    if key is None:
        raise NotSignedIn("This API key is unknown or was revoked. An administrator of the project can give you another.")
    owner = actor_from(key.owner, queries.held_by(key.owner), address)
    role = key_role(Role(key.role), owner.role_in(key.project_id))
    if role is None:
        raise NotSignedIn(f"The owner of the API key {key.name} has no role in its project any more, so the key has none either.")
    if key.last_used_at is None or now - key.last_used_at >= LAST_USED_EVERY:
        due = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_EVERY)
        ApiKey.objects.filter(due, pk=key.pk).update(last_used_at=now)
    operates = key_operates_fleet(owner, role)
    return Actor(user=key.owner, key=key, address=address, roles={key.project_id: role}, fleet_operator=operates)


def actor_for_authorization(header: str, address: str | None) -> Actor:
    """Of an `Authorization` header: an API key, or a token of an identity provider. Raises NotSignedIn."""
    scheme, _, credentials = header.strip().partition(" ")
    credentials = credentials.strip()
    if scheme.lower() != "bearer" or not credentials:
        raise NotSignedIn(NO_CREDENTIALS)
    if credentials.startswith(KEY_PREFIX) or credentials.count(".") != 2:
        return actor_for_key(credentials, address, timezone.now())
    user = user_for_token(credentials)
    return actor_for_session(user, address)


def create_key(
    actor: Actor | None, project: Project, owner: User, name: str, role: Role, now: datetime, secret: str | None = None
) -> tuple[ApiKey, str]:
    """A new key and its secret, which is stored nowhere. Only the demo gives `secret`: its manual prints its keys."""
    secret = secret or KEY_PREFIX + secrets.token_urlsafe(32)
    key, made = ApiKey.objects.update_or_create(
        fingerprint=fingerprint(secret),
        defaults={"project": project, "owner": owner, "name": name, "role": role, "revoked_at": None},
        create_defaults={"project": project, "owner": owner, "name": name, "role": role, "created_at": now},
    )
    if made:
        audit(actor, "key.create", name, project, after={"role": role.label, "owner": owner.get_username()})
    return key, secret
