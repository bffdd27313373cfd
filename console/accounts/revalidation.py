"""Sessions are asked about again, server to server: whoever left the company loses the page they have open (DESIGN 8).

Three answers: still good (new claims, new roles), over (the session ends), no answer (nothing changes, and it is kept since
when). Only the provider's plain "invalid_grant" is "over": an outage there must not sign everybody out here.
"""

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from console.accounts import identities, sealing, sessions
from console.accounts.changes import apply_claims, rules_for
from console.accounts.models import SignIn
from console.accounts.oidc import client, config, overage
from console.accounts.oidc.discovery import published
from console.accounts.oidc.refusal import ProviderDown, Refused
from console.accounts.oidc.verify import verify

BATCH = 100  # sessions a run takes
RUN_SECONDS = 5.0  # after that a run leaves the rest to the next; one question more may take 14, and a task has 20
ASK_AGAIN = timedelta(seconds=60)  # after no answer, and for whom a run that died had taken

log = logging.getLogger(__name__)


def take(now: datetime) -> list[SignIn]:
    """The sessions that are due, each to one run only: whoever takes a row moves its `due_at` in the same statement."""
    with transaction.atomic():
        due = SignIn.objects.select_for_update(skip_locked=True).filter(due_at__lte=now).order_by("due_at")
        rows = list(due[:BATCH])
        SignIn.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=now + ASK_AGAIN)
    return rows


def run(now: datetime) -> int:
    """Ask about everything that is due. A provider that does not answer is not asked again in this run."""
    began, silent, asked = time.monotonic(), set[str](), 0
    for row in take(now):
        if time.monotonic() - began > RUN_SECONDS:
            break
        if row.provider_id in silent:
            _no_answer(row, now)
            continue
        asked += 1
        try:
            check(row, now)
        except ProviderDown as error:
            silent.add(row.provider_id)
            log.warning("provider_silent", extra={"provider": row.provider_id, "look_at": error.look_at})
            _no_answer(row, now)
    return asked


def check(row: SignIn, now: datetime) -> None:
    """Ask the provider about one session. Raises ProviderDown where it gives no answer."""
    provider = config.by_id(row.provider_id)
    if provider is None:
        sessions.end(row.session_key, f"the identity provider {row.provider_id} is no longer set up")
        return
    old = sealing.opened(row.refresh_token)
    if not old:
        sessions.end(row.session_key, "its refresh token cannot be read: HALFTIDE_ENCRYPTION_KEY has changed")
        return
    try:
        refreshed = client.refresh(provider, published(provider).endpoints(), old)
        # The old token may be worth nothing from now on, so the new one is kept before anything else can fail.
        SignIn.objects.filter(pk=row.pk).update(refresh_token=sealing.seal(refreshed.refresh_token or old))
        claims = claims_of(provider, refreshed, row.subject)
    except client.Revoked:
        sessions.end(row.session_key, "the identity provider no longer vouches for it")
        return
    except Refused as error:
        sessions.end(row.session_key, error.message)
        return
    account = identities.find(provider.id, provider.issuer, row.subject)
    if account is not None:
        apply_claims(account, claims, provider.groups_claim, rules_for(provider), now)
    kept: dict[str, Any] = {"checked_at": now, "due_at": sessions.due_after(now), "unreachable_since": None}
    if refreshed.id_token:
        kept["id_token"] = sealing.seal(refreshed.id_token)
    SignIn.objects.filter(pk=row.pk).update(**kept)


def claims_of(provider: config.Provider, refreshed: client.Refreshed, subject: str) -> Mapping[str, Any]:
    """What the provider says now. Raises Refused where it is about somebody else (OpenID Connect Core 12.2)."""
    about_person = client.user_info(published(provider).endpoints(), refreshed.access_token, subject)
    if not refreshed.id_token:
        # Allowed by the standard: then user info is all there is.
        return overage.followed({**about_person, "iat": time.time()}, provider, refreshed.access_token)
    claims = verify(refreshed.id_token, provider, published(provider), time.time())
    if claims["sub"] != subject:
        raise Refused("The identity provider's answer is about somebody else.", "The `sub` after a refresh must not change.")
    return overage.followed({**about_person, **claims}, provider, refreshed.access_token)


def _no_answer(row: SignIn, now: datetime) -> None:
    SignIn.objects.filter(pk=row.pk, unreachable_since=None).update(unreachable_since=now)


def forget_finished(now: datetime) -> None:
    """Rows whose browser session is over leave nothing to ask about."""
    SignIn.objects.filter(
        started_at__lt=now - timedelta(hours=73)
    ).delete()  # the longest session the setting allows, and an hour


def revalidate() -> int:
    now = timezone.now()
    forget_finished(now)
    return run(now)
