"""Who a subject of an issuer is here. Issuer and subject make a person; an e-mail address never does.

allauth keeps the pair in one row (`SocialAccount`): the uid is `issuer|subject`, so that a provider that is pointed at another
issuer cannot hand one person's account to another with the same subject.
"""

from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.socialaccount.models import SocialAccount
from django.db import IntegrityError, transaction

from console.accounts.models import User


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
            user = User(username=get_account_adapter().generate_unique_username(wishes), email=str(claims.get("email") or ""))
            user.set_unusable_password()
            user.save()
            made: SocialAccount = SocialAccount.objects.create(user=user, provider=provider_id, uid=uid(issuer, subject))
            return made
    except IntegrityError:
        account = find(provider_id, issuer, subject)
        if account is None:
            raise
        return account
