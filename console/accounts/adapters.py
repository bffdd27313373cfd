"""Where allauth asks us: what happens after a sign-in, and where its own pages would be (we mount none of them)."""

from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthError
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from requests import RequestException

from console.accounts import sessions
from console.accounts.models import User
from console.accounts.refusals import refuse

EMAIL_LIMIT = 254  # letters; RFC 5321

# What happened, and what an administrator should look at.
NO_SUCH_ATTEMPT = (
    "This sign-in was already finished, or began in another browser or more than ten minutes ago. Start again.",
    "If it always happens: the browser must keep the cookie of HALFTIDE_PUBLIC_URL until it comes back.",
)
CANCELLED = (
    "You cancelled at the identity provider. Nothing was changed.",
    "If you did not: the provider denied access to this application.",
)
NO_TOKEN_ANSWER = (
    "The identity provider does not answer. Try again in a minute.",
    "From the machine Halftide runs on, the provider's token address must answer within 5 seconds.",
)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002  (the library's shape)
        return False  # nobody makes a local account for themselves

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Says nothing: being on the page is the message."""

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        look_at = f"An administrator can open {user.get_username()} again."
        return refuse(request, "This account was closed in Halftide.", look_at, 403)

    def logout(self, request: HttpRequest) -> None:
        """Also when somebody signs in over another person's session."""
        sessions.end(request.session.session_key, "signed out", request.actor)  # type: ignore[attr-defined]
        super().logout(request)

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        sessions.begin(request, user, kwargs["signal_kwargs"]["sociallogin"], timezone.now())
        return response


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:  # noqa: ARG002
        return True  # whoever a provider vouches for gets an account, without any role

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: Any) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        address = sociallogin.account.extra_data["id_token"].get("email")
        user.email = address if isinstance(address, str) and len(address) <= EMAIL_LIMIT else ""
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: str = "",
        exception: Exception | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> None:
        """The library's own refusals: a state that is not ours, cancelled, a code that bought no token."""
        if "state" not in (extra_context or {}):
            # Whatever the address says beside it is not the provider's word then, so none of it is shown.
            raise ImmediateHttpResponse(refuse(request, *NO_SUCH_ATTEMPT, trail=False))
        if error == AuthError.CANCELLED:
            raise ImmediateHttpResponse(refuse(request, *CANCELLED))
        if isinstance(exception, RequestException):
            raise ImmediateHttpResponse(refuse(request, *NO_TOKEN_ANSWER, status=503))
        if exception is not None:
            look_at = (
                "Compare HALFTIDE_OIDC_CLIENT_ID, HALFTIDE_OIDC_CLIENT_SECRET and the callback address "
                f"{settings.PUBLIC_URL}{provider.get_callback_url()} with the provider's client."
            )
            raise ImmediateHttpResponse(refuse(request, "The identity provider gave no token for this sign-in.", look_at))
        said = request.GET.get("error_description") or request.GET.get("error") or "nothing more"
        raise ImmediateHttpResponse(refuse(request, "The identity provider refused the sign-in.", f"It said: {said[:300]}"))
