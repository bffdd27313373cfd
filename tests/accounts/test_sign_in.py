"""Signing in and out against a real identity provider over HTTP."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session

from console.accounts.models import AuditRow, Grant, Role, SignIn, User


def test_one_click_signs_in_with_the_role_of_ones_group(idp, browser):
    page = browser.sign_in("ada")
    assert page.content == b"ada: GET"
    (everywhere,) = Grant.objects.filter(role__isnull=False)
    assert (everywhere.role, everywhere.project, everywhere.origin) == (Role.ADMIN, None, "halftide-admins")
    assert Grant.objects.filter(user__username="ada", fleet_operator=True).exists()
    account = SocialAccount.objects.get()
    assert account.uid == f"{idp.issuer}|ada"
    assert account.extra_data["id_token"]["groups"] == ["halftide-admins"]
    assert AuditRow.objects.filter(action="session.begin", actor="ada").exists()


def test_sign_in_leads_to_where_one_wanted_to_go(idp, browser):
    assert browser.go("/pools/?a=1").status_code == 200
    assert browser.visited[-1].endswith("/sign-in/?next=%2Fpools%2F%3Fa%3D1")
    page = browser.sign_in("olu", "/pools/?a=1")
    assert page.content == b"olu: GET"
    assert browser.visited[-1].endswith("/pools/?a=1")


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "/v1/echo", "javascript:alert(1)"])
def test_sign_in_leads_to_no_other_site_and_to_no_api_address(idp, browser, wanted):
    """mozilla/mozilla-django-oidc#363: after sign-in people saw raw JSON."""
    page = browser.console.get("/sign-in/", {"next": wanted}).content.decode()
    assert 'name="next" value="/"' in page


def test_the_request_to_the_provider_carries_state_nonce_and_a_code_challenge(idp, browser):
    browser.sign_in("vic")
    asked = next(url for url in browser.visited if "/authorize?" in url)
    assert all(f"{name}=" in asked for name in ("state", "nonce", "code_challenge"))
    assert "code_challenge_method=S256" in asked
    assert "redirect_uri=http%3A%2F%2F127.0.0.1%3A18000%2Foidc%2Fdemo%2Flogin%2Fcallback%2F" in asked
    assert "offline_access" in asked


def test_who_is_in_no_group_is_told_whom_to_ask(idp, browser):
    browser.sign_in("ada")
    browser.sign_out()
    page = browser.sign_in("fay")
    assert page.status_code == 403
    text = page.content.decode()
    assert "no role was given to you yet" in text
    assert "Ada Lovelace" in text
    assert "ada@demo.example" in text
    assert "The provider says you are in no group." in text


def test_another_person_signs_in_in_the_same_browser(idp, browser):
    browser.sign_in("ada")
    first = SignIn.objects.get().session_key
    page = browser.sign_in("olu")
    assert page.content == b"olu: GET"
    assert SignIn.objects.get().user.username == "olu"
    assert not Session.objects.filter(session_key=first).exists()
    assert set(Grant.objects.filter(user__username="olu").values_list("role", flat=True)) == {Role.OPERATOR, None}


def test_sign_out_ends_both_sessions(idp, browser):
    """pennersr/django-allauth#3104: only the local session ended, and one click signed the previous person in again."""
    browser.sign_in("ada")
    page = browser.sign_out()
    assert "You are signed out." in page.content.decode()
    assert "Only here" not in page.content.decode()
    assert browser.console.get("/").status_code == 302
    # Without a hint the provider asks who it is, instead of sending ada back.
    provider = browser.post("/oidc/demo/login/", next="/")
    assert "/sign-in/?next=" in browser.visited[-1]
    assert 'name="password"' in provider.text
    assert not SignIn.objects.exists()
    assert not Session.objects.filter(session_key__in=[s.session_key for s in SignIn.objects.all()]).exists()


def test_a_name_and_a_password_sign_in_at_the_provider(idp, browser):
    browser.console.get("/sign-in/")
    page = browser.post("/oidc/demo/login/", next="/")
    where = browser.visited[-1]
    form = {"username": "vic", "csrfmiddlewaretoken": browser.outside.cookies["halftide_idp_csrf"]}
    assert "'none'" in page.headers["Content-Security-Policy"]
    refused = browser.outside.post(where, data={**form, "password": "wrong"})
    assert refused.status_code == 400
    assert "No such name with this password." in refused.text
    back = browser.outside.post(where, data={**form, "password": "demo"})
    assert browser.go(idp.issuer + back.headers["Location"]).status_code in (200, 404)


def test_two_tabs_do_not_disturb_each_other(idp, browser):
    """mozilla/mozilla-django-oidc PR#345: one slot for the state made the first tab fail."""
    browser.console.get("/sign-in/")
    token = browser.console.cookies["halftide_csrf"].value
    starts = [
        browser.console.post(
            "/oidc/demo/login/", {"login_hint": "ada", "next": f"/?tab={tab}", "csrfmiddlewaretoken": token}
        ).headers["Location"]
        for tab in (1, 2)
    ]
    for tab, start in enumerate(starts, 1):
        assert browser.go(start).content == b"ada: GET"
        assert browser.visited[-1].endswith(f"/?tab={tab}")


def test_an_answer_is_good_once(idp, browser):
    browser.sign_in("ada")
    callback = next(url for url in browser.visited if "/login/callback/" in url)
    again = browser.go(callback)
    assert again.status_code == 401
    assert "already finished" in again.content.decode()
    assert not AuditRow.objects.filter(action="session.refused").exists(), "anybody could fill the trail"


def test_a_hundred_unfinished_sign_ins_leave_a_small_session_and_a_working_door(idp, browser):
    browser.console.get("/sign-in/")
    token = browser.console.cookies["halftide_csrf"].value
    for _ in range(100):
        browser.console.post("/oidc/demo/login/", {"login_hint": "ada", "csrfmiddlewaretoken": token})
    assert len(Session.objects.get().session_data) < 20_000
    assert browser.sign_in("ada").content == b"ada: GET"


def test_starting_a_sign_in_needs_a_form_of_ours(idp, browser):
    browser.console.get("/sign-in/")
    assert browser.console.post("/oidc/demo/login/", {"login_hint": "ada"}).status_code == 403
    assert browser.console.get("/oidc/demo/login/").status_code == 405


def test_a_request_cannot_add_parameters_scopes_or_linking(idp, browser):
    browser.console.get("/sign-in/")
    token = browser.console.cookies["halftide_csrf"].value
    answer = browser.console.post(
        "/oidc/demo/login/?auth_params=redirect_uri%3Dhttp%253A%252F%252Fevil.example&scope=evil&process=connect",
        {"csrfmiddlewaretoken": token},
    )
    assert "evil" not in answer.headers["Location"]
    assert User.objects.count() == 0


def test_a_closed_account_is_refused_and_says_so(idp, browser):
    browser.sign_in("olu")
    browser.sign_out()
    User.objects.update(is_active=False)
    page = browser.sign_in("olu")
    assert page.status_code == 403
    assert "This account was closed in Halftide." in page.content.decode()
    assert browser.console.get("/").status_code == 302


def test_the_same_name_at_another_issuer_is_another_person(idp, browser, settings):
    """mcdonc/klangk#166: an e-mail typed at a second provider handed over the administrator's account."""
    User.objects.create(username="ada", email="ada@demo.example")
    browser.sign_in("ada")
    assert SocialAccount.objects.get().user.username != "ada"
    assert User.objects.filter(email="ada@demo.example").count() == 2


def test_a_session_ends_twelve_hours_after_it_began_whatever_it_does(idp, browser):
    browser.sign_in("ada")
    end = Session.objects.get(session_key=SignIn.objects.get().session_key).expire_date
    session = browser.console.session
    session["something"] = 1
    session.save()
    assert Session.objects.get(session_key=session.session_key).expire_date == end
