"""What groups give is written, and taken, without touching what people gave."""

from datetime import UTC, datetime

import pytest
from allauth.socialaccount.models import SocialAccount

from console.accounts.changes import apply_claims, grant
from console.accounts.models import AuditRow, Grant, Project, Role, User
from console.accounts.roles import Rule
from console.accounts.services import actor_for_session

NOW = datetime(2026, 11, 1, 9, tzinfo=UTC)
RULES = [Rule("admins", Role.ADMIN), Rule("ops", Role.OPERATOR), Rule("sre", fleet_operator=True)]


@pytest.fixture
def account(db) -> SocialAccount:
    user = User.objects.create(username="kim")
    return SocialAccount.objects.create(user=user, provider="sso", uid="https://issuer|kim")


def sign_in(account: SocialAccount, at: int, **claims: object):
    return apply_claims(account, {"iat": at, **claims}, "groups", RULES, NOW)


def held(account: SocialAccount) -> set[tuple[int | None, str]]:
    return set(Grant.objects.filter(user=account.user).values_list("role", "origin"))


def test_leaving_a_group_takes_what_it_gave_and_nothing_else(account):
    """IBM/mcp-context-forge#2331 kept the rights; pulsejet/nextcloud-oidc-login#204 took those given by hand too."""
    aurora = Project.objects.create(name="Aurora", slug="aurora")
    grant(None, account.user, aurora, Role.VIEWER, NOW)
    sign_in(account, 1, groups=["admins", "ops"])
    assert held(account) == {(Role.ADMIN, "admins"), (Role.OPERATOR, "ops"), (Role.VIEWER, "command line")}
    sign_in(account, 2, groups=["ops"])
    assert held(account) == {(Role.OPERATOR, "ops"), (Role.VIEWER, "command line")}
    actor = actor_for_session(account.user, None)
    assert actor.everywhere == Role.OPERATOR
    assert actor.roles == {aurora.id: Role.VIEWER}


def test_a_deleted_rule_gives_nothing_at_the_next_sign_in(account):
    sign_in(account, 1, groups=["admins"])
    apply_claims(account, {"iat": 2, "groups": ["admins"]}, "groups", [], NOW)
    assert held(account) == set()


def test_a_missing_claim_leaves_roles_and_is_kept_as_a_sentence(account):
    sign_in(account, 1, groups=["admins"])
    outcome = sign_in(account, 2)
    assert held(account) == {(Role.ADMIN, "admins")}
    account.refresh_from_db()
    assert account.extra_data["said"] == outcome.said


def test_an_older_token_changes_nothing(account):
    sign_in(account, 5, groups=[])
    sign_in(account, 4, groups=["admins"])
    assert held(account) == set()


def test_another_providers_groups_are_left_alone(account):
    other = SocialAccount.objects.create(user=account.user, provider="other", uid="https://other|kim")
    sign_in(account, 1, groups=["admins"])
    sign_in(other, 1, groups=[])
    assert held(account) == {(Role.ADMIN, "admins")}


def test_fleet_operator_comes_and_goes_with_its_group(account):
    sign_in(account, 1, groups=["sre"])
    assert actor_for_session(account.user, None).fleet_operator
    sign_in(account, 2, groups=[])
    assert not actor_for_session(account.user, None).fleet_operator


def test_each_change_leaves_one_row_in_the_trail_and_no_change_none(account):
    sign_in(account, 1, groups=["ops"])
    sign_in(account, 2, groups=["ops"])
    row = AuditRow.objects.get(action="grants.from_groups")
    assert row.actor == "kim"
    assert (row.before, row.after) == ({"grants": []}, {"grants": ["operator everywhere from ops"]})
