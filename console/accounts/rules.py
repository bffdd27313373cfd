"""The rule of every view: what its decorator says, or, for views of a library that carry none, this one table."""

from collections.abc import Callable

from django.urls import ResolverMatch

from console.accounts.access import PUBLIC, rule_of

BY_NAME = {
    "openid_connect_login": PUBLIC,  # POST only: starts a sign-in
    "openid_connect_callback": PUBLIC,  # the provider sends the browser back here
}


def rule_for(view: Callable[..., object], match: ResolverMatch | None) -> str | None:
    """None means refused."""
    return rule_of(view) or BY_NAME.get(match.view_name if match else "")
