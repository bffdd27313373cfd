"""What this provider says about a person: a subject that is the user name, and groups in every token."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from allauth.idp.oidc.adapter import DefaultOIDCAdapter
from allauth.idp.oidc.models import Client, PrivateKey
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import Group

from console.idp import environment


@cache
def signing_key() -> PrivateKey:
    return PrivateKey(pem=environment.KEY_FILE.read_text(encoding="ascii"))


class Adapter(DefaultOIDCAdapter):  # type: ignore[misc]
    def get_issuer(self) -> str:
        return environment.ISSUER  # fixed: whoever asks under another name must not get tokens for it

    def list_private_keys(self, **when: Any) -> list[PrivateKey]:  # noqa: ARG002  (one key, always active)
        return [signing_key()]

    def get_user_sub(self, client: Client, user: AbstractBaseUser) -> str:  # noqa: ARG002
        return user.get_username()

    def get_user_by_sub(self, client: Client, sub: str) -> AbstractBaseUser | None:  # noqa: ARG002
        return get_user_model().objects.filter(username=sub, is_active=True).first()

    def get_claims(
        self, purpose: str, user: AbstractBaseUser, client: Client, scopes: Iterable[str], **kwargs: Any
    ) -> dict[str, Any]:
        claims: dict[str, Any] = super().get_claims(purpose, user, client, scopes, **kwargs)
        return {**claims, "groups": groups_of(user)}

    def populate_access_token(
        self,
        access_token: dict[str, Any],
        *,
        client: Client,
        user: AbstractBaseUser,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Also good at the console's API, so it names its audience as ID tokens do."""
        access_token.setdefault("aud", client.id)
        access_token["azp"] = client.id
        access_token["groups"] = groups_of(user)

    def populate_server_metadata(self, data: dict[str, Any]) -> None:
        data["scopes_supported"] = [*data["scopes_supported"], "offline_access", "groups"]


def groups_of(user: AbstractBaseUser) -> list[str]:
    return sorted(Group.objects.filter(user__pk=user.pk).values_list("name", flat=True))
