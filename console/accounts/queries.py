"""What other rooms ask about people: roles, and re-checks of many people at once."""

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session

from console.accounts.access import Actor
from console.accounts.models import Grant, Role, User

Held = tuple[UUID | None, int | None, bool]  # project (None: every), role, fleet operator


def held_by(user: User) -> list[Held]:
    """Every grant of a person, in one query."""
    return list(Grant.objects.filter(user=user).values_list("project_id", "role", "fleet_operator"))


def who_may_see(pairs: Iterable[tuple[int, UUID]]) -> set[tuple[int, UUID]]:
    """Of (user id, project id) pairs those where the person is active and has a role now; one query for all of them."""
    asked = set(pairs)
    if not asked:
        return set()
    held: set[tuple[int, UUID | None]] = set(
        Grant.objects.filter(user_id__in={user for user, _ in asked}, user__is_active=True, role__isnull=False).values_list(
            "user_id", "project_id"
        )
    )
    return {(user, project) for user, project in asked if (user, project) in held or (user, None) in held}


def open_sessions(keys: Collection[str], now: datetime) -> set[str]:
    """Of these session keys those that are not signed out, refused or over; one query for all of them."""
    if not keys:
        return set()
    return set(Session.objects.filter(session_key__in=keys, expire_date__gt=now).values_list("session_key", flat=True))


def administrators(limit: int = 5) -> list[User]:
    """Whom somebody without a role can ask: people who are administrators everywhere, the longest-serving first."""
    found = User.objects.filter(grants__role=Role.ADMIN, grants__project=None, is_active=True)
    return list(found.distinct().order_by("date_joined")[:limit])


def sayings(actor: Actor) -> list[str]:
    """What each identity provider's last word about this person's groups came to, as sentences."""
    found = SocialAccount.objects.filter(user=actor.user).values_list("extra_data__said", flat=True)
    return [said for said in found if said]
