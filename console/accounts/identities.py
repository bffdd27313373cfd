"""Who a subject of an issuer is here. Issuer and subject make a person; an e-mail address never does.

allauth keeps the pair in one row (`SocialAccount`): the uid is `issuer|subject`, so that a provider that is pointed at another
issuer cannot hand one person's account to another with the same subject.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.socialaccount.models import SocialAccount
from django.db import IntegrityError, transaction

from console.accounts.changes import apply_claims, rules_for
from console.accounts.models import User
from console.accounts.oidc.config import Provider
from console.accounts.roles import without_reason


def uid(issuer: str, subject: str) -> str:
    return f"{issuer}|{subject}"


def find(provider_id: str, issuer: str, subject: str) -> SocialAccount | None:
    found: SocialAccount | None = (
        SocialAccount.objects.select_related("user").filter(provider=provider_id, uid=uid(issuer, subject)).first()
    )
    return found


def find_or_create(provider_id: str, issuer: str, subject: str, claims: Mapping[str, Any]) -> SocialAccount:
    """A person we have not seen is made, without any role. Two first requests at once make one person."""
    account = find(provider_id, issuer, subject)
    if account is not None:
        return account
    wishes = [str(claims.get("preferred_username") or ""), subject, "user"]
    try:
        with transaction.atomic():
            user = User(
                username=get_account_adapter().generate_unique_username(wishes), email=str(claims.get("email") or "")[:254]
            )
            user.first_name, _, user.last_name = (part[:150] for part in str(claims.get("name") or "").partition(" "))
            user.set_unusable_password()
            user.save()
            made: SocialAccount = SocialAccount.objects.create(user=user, provider=provider_id, uid=uid(issuer, subject))
            return made
    except IntegrityError:
        account = find(provider_id, issuer, subject)
        if account is None:
            raise
        return account


def vouched(provider: Provider, claims: Mapping[str, Any], now: datetime) -> User:
    """The person of claims that were verified, made on first sight, with the roles that their groups give now."""
    account = find_or_create(provider.id, provider.issuer, claims["sub"], claims)
    if float(claims["iat"]) > account.extra_data.get("applied_iat", 0):
        apply_claims(account, without_reason(claims), provider.groups_claim, rules_for(provider), now)
    user: User = account.user
    return user
