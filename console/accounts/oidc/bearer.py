"""The provider's bearer tokens at the API, through mozilla-django-oidc's backend on our verifier.

The library's backend believes user info that an access token buys and matches people by e-mail. Ours keeps its order of steps
(claims → verified → known person or new one) and replaces each by the rule of this house: the verifier, issuer and subject.
"""

import time
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.utils import timezone
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from console.accounts import identities
from console.accounts.models import User
from console.accounts.oidc import config
from console.accounts.oidc.discovery import published
from console.accounts.oidc.refusal import Refused
from console.accounts.oidc.verify import Claims, unverified_issuer, verify


class BearerBackend(OIDCAuthenticationBackend):  # type: ignore[misc]
    """One provider's door. Never in AUTHENTICATION_BACKENDS: it is asked for bearer tokens only."""

    def __init__(self, provider: config.Provider) -> None:
        # Not the library's: it reads one provider's addresses from settings, and we have several, discovered.
        self.provider = provider
        self.UserModel = get_user_model()

    def verify_token(self, token: str, **kwargs: Any) -> Claims:
        return verify(token, self.provider, published(self.provider), time.time(), nonce=kwargs.get("nonce"))

    def get_userinfo(self, access_token: str, id_token: object, payload: object) -> Claims:  # noqa: ARG002  (the library's shape)
        return self.verify_token(access_token)

    def verify_claims(self, claims: Claims) -> bool:  # noqa: ARG002
        return True  # the verifier has refused every other kind by now

    def filter_users_by_claims(self, claims: Claims) -> QuerySet[User]:
        account = identities.find(self.provider.id, self.provider.issuer, claims["sub"])
        return User.objects.filter(pk=account.user_id) if account else User.objects.none()

    def create_user(self, claims: Claims) -> User:
        return identities.vouched(self.provider, claims, timezone.now())

    def update_user(self, user: User, claims: Claims) -> User:  # noqa: ARG002
        return self.create_user(claims)


def user_for_token(token: str) -> User:
    """The person of a bearer token, made on first sight without any role. Raises Refused, or ProviderDown."""
    provider = config.by_issuer(unverified_issuer(token))
    user: User | None = BearerBackend(provider).get_or_create_user(token, None, None)
    if user is None or not user.is_active:
        raise Refused("This account was closed in Halftide.", "An administrator can open it again.")
    return user
