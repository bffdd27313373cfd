"""A provider from the environment: what is accepted, and the one sentence for what is not."""

import pytest
from django.core.management import CommandError, call_command

from console.accounts import environment
from console.accounts.models import AuditRow, Grant, Role
from console.accounts.oidc import config
from console.env import SettingError


def test_a_role_map_names_groups_roles_and_projects():
    assert environment.role_map("X", ("ml team=operator", "cn=a,ou=b=viewer@aurora", "sre=fleet")) == [
        {"group": "ml team", "role": 2, "project": None, "fleet_operator": False},
        {"group": "cn=a,ou=b", "role": 1, "project": "aurora", "fleet_operator": False},
        {"group": "sre", "role": None, "project": None, "fleet_operator": True},
    ]


@pytest.mark.parametrize("word", ["ml", "ml=", "=viewer", "ml=boss", "ml=Viewer", "ml=fleet@aurora", "ml=viewer aurora"])
def test_a_role_map_that_makes_no_sense_is_refused_with_an_example(word):
    with pytest.raises(SettingError, match=r"HALFTIDE_OIDC_ROLE_MAP must be a list such as"):
        environment.role_map("HALFTIDE_OIDC_ROLE_MAP", (word,))


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("ISSUER", "https://corp.okta.example/oauth2/default"),
        ("CLIENT_ID", "0oa1"),
        ("CLIENT_SECRET", "hush"),
        ("NAME", "Okta"),
        ("ROLE_MAP", "ml=operator"),
    ):
        monkeypatch.setenv(f"HALFTIDE_OIDC_{name}", value)
    monkeypatch.setenv("HALFTIDE_ADMIN_GROUP", "admins")


def test_one_provider_comes_from_the_environment(company, monkeypatch):
    (app,) = environment.from_environment()
    assert (app["provider_id"], app["name"], app["client_id"], app["secret"]) == ("sso", "Okta", "0oa1", "hush")
    assert [(rule["group"], rule["role"]) for rule in app["settings"]["rules"]] == [("ml", 2), ("admins", 3), ("admins", None)]
    assert environment.origins([app]) == ["https://corp.okta.example"]
    monkeypatch.delenv("HALFTIDE_OIDC_CLIENT_SECRET")
    with pytest.raises(SettingError, match="HALFTIDE_OIDC_CLIENT_SECRET"):
        environment.from_environment()


def test_no_issuer_means_no_provider(monkeypatch):
    monkeypatch.delenv("HALFTIDE_OIDC_ISSUER", raising=False)
    assert environment.from_environment() == []


def test_a_provider_that_signs_with_a_shared_secret_is_refused(stub, settings):
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["algorithm"] = "HS256"
    with pytest.raises(ValueError, match="HS256"):
        config.by_id("stub")


def test_the_first_administrator_is_made_before_signing_in(stub, browser, capsys):
    call_command("grant", stub.issuer, "kim", "admin")
    assert "kim is admin everywhere." in capsys.readouterr().out
    assert AuditRow.objects.get(action="grant.give").actor == "Halftide"
    from_page = browser.console.get("/sign-in/").content.decode()
    assert "Continue with Stub" in from_page
    grant = Grant.objects.get()
    assert (grant.role, grant.project, grant.user.get_username()) == (Role.ADMIN, None, "kim")


def test_a_grant_for_an_unknown_issuer_or_project_is_refused_with_what_there_is(stub):
    with pytest.raises(CommandError, match=stub.issuer):
        call_command("grant", f"{stub.issuer}/", "kim", "admin")
    with pytest.raises(CommandError, match="no project with the slug nope"):
        call_command("grant", stub.issuer, "kim", "viewer", project="nope")


def test_without_a_provider_the_door_says_what_to_set(console, browser):
    assert "HALFTIDE_OIDC_ISSUER" in browser.console.get("/sign-in/").content.decode()
