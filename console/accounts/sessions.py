"""A browser session from sign-in to its end: at most 12 hours (setting), and only as long as the provider vouches for it."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest

from console import live
from console.accounts import sealing
from console.accounts.access import Actor
from console.accounts.changes import apply_claims, audit, rules_for
from console.accounts.models import SignIn, User
from console.accounts.oidc import config
from console.accounts.roles import points


def due_after(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.REVALIDATE_EVERY)


def begin(request: HttpRequest, user: User, login: Any, now: datetime) -> None:
    """The provider has vouched for a person: keep what asking again needs, and give the roles of their groups."""
    provider = config.of_app(login.provider.app)
    address = request.actor.address  # type: ignore[attr-defined]
    request.session.set_expiry(now + timedelta(seconds=settings.SESSION_COOKIE_AGE))
    request.session.save()
    refresh_token = login.token.token_secret or ""
    claims = login.account.extra_data["id_token"]
    with transaction.atomic():
        SignIn.objects.update_or_create(
            session_key=request.session.session_key,
            defaults={
                "user": user,
                "provider_id": provider.id,
                "subject": claims["sub"],
                "refresh_token": sealing.seal(refresh_token),
                "id_token": sealing.seal(login.raw_id_token),
                "started_at": now,
                "checked_at": now,
                "due_at": due_after(now) if refresh_token else None,
                "unreachable_since": None,
            },
        )
        outcome = apply_claims(login.account, claims, provider.groups_claim, rules_for(provider), now, address)
        who = Actor(user=user, address=address)
        audit(who, "session.begin", user.get_username(), after={"provider": provider.id, "groups": outcome.said})
    if points(claims, provider.groups_claim):
        messages.warning(request, outcome.said)


def end(session_key: str | None, why: str, actor: Actor | None = None) -> SignIn | None:
    """End one session everywhere at once: pages and API by its row, open sockets by the nudge. Returns what it was."""
    if not session_key:
        return None
    with transaction.atomic():
        sign_in = SignIn.objects.select_related("user").filter(session_key=session_key).first()
        Session.objects.filter(session_key=session_key).delete()
        if sign_in is not None:
            SignIn.objects.filter(session_key=session_key).delete()
            audit(actor, "session.end", sign_in.user.get_username(), after={"why": why})
        live.access_changed_on_commit()
    return sign_in
