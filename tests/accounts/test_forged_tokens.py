"""One table of forged tokens, fed to both doors: the browser's sign-in and the API's bearer tokens."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount

from console.accounts.models import AuditRow, Grant, Role, SignIn, User
from console.accounts.oidc.discovery import published
from tests.accounts.stub import CLIENT, KEY, OTHER_KEY, Stub, by_hand, new_key, public_pem

Forge = Callable[[Stub, dict[str, Any]], str]


def claims(**changes: Any) -> Forge:
    return lambda stub, more: stub.sign(stub.claims(**{**more, **changes}))


def now() -> int:
    return int(time.time())


FORGED: dict[str, tuple[Forge, str]] = {
    "another audience": (claims(aud="somebody-else"), "made for another application"),
    "no audience": (claims(aud=None), "made for another application"),
    "an audience that contains ours as text": (claims(aud=f"x{CLIENT}x"), "made for another application"),
    "another party": (claims(azp="somebody-else"), "handed to another application"),
    "two audiences and no party": (claims(aud=[CLIENT, "somebody-else"]), "handed to another application"),
    "another issuer": (claims(iss="https://evil.example"), ""),
    "another tenant of the issuer": (lambda s, m: s.sign(s.claims(**m, iss=f"{s.issuer}/tenant")), ""),
    "the issuer with a slash too many": (lambda s, m: s.sign(s.claims(**m, iss=f"{s.issuer}/")), ""),
    "no issuer": (claims(iss=None), ""),
    "no expiry": (claims(exp=None), "lacks `exp`"),
    "an expiry that is text": (claims(exp="tomorrow"), "lacks `exp`"),
    "an expiry beyond all numbers": (claims(exp=10**400), "lacks `exp`"),
    "no time of issue": (claims(iat=None), "lacks `iat`"),
    "no subject": (claims(sub=None), "whom it is about"),
    "an empty subject": (claims(sub=""), "whom it is about"),
    "a subject that is too long": (claims(sub="x" * 256), "whom it is about"),
    "a name with a NUL": (claims(name="a\x00b"), "a letter that is none"),
    "a group with half a letter": (claims(groups=["\ud83d"]), "a letter that is none"),
    "expired": (claims(iat=now() - 900, exp=now() - 120), "has expired"),
    "from the future": (claims(iat=now() + 600, exp=now() + 900), "from the future"),
    "not yet valid": (claims(nbf=now() + 600), "from the future"),
    "no signature": (lambda s, m: by_hand({"alg": "none"}, s.claims(**m), None), "signed in a way"),
    "None in capitals": (lambda s, m: by_hand({"alg": "NONE", "kid": "one"}, s.claims(**m), None), "signed in a way"),
    "HMAC with the public key": (
        lambda s, m: by_hand({"alg": "HS256", "kid": "one"}, s.claims(**m), public_pem(KEY)),
        "signed in a way",
    ),
    "HMAC with the client's secret": (
        lambda s, m: by_hand({"alg": "HS256", "kid": "one"}, s.claims(**m), b"hush"),
        "signed in a way",
    ),
    "RS256 in the header, HMAC in truth": (
        lambda s, m: by_hand({"alg": "RS256", "kid": "one"}, s.claims(**m), public_pem(KEY)),
        "does not fit any key",
    ),
    "an unknown key": (lambda s, m: s.sign(s.claims(**m), OTHER_KEY, kid="two"), "does not fit any key"),
    "a known key's name on another key": (lambda s, m: s.sign(s.claims(**m), OTHER_KEY), "does not fit any key"),
    "a changed claim": (lambda s, m: swapped(s.sign(s.claims(**m)), s.sign(s.claims(**m, sub="root"))), "does not fit any key"),
    "a logout token": (lambda s, m: s.sign(s.claims(**m), typ="logout+jwt"), "ends sessions"),
}


def swapped(good: str, other: str) -> str:
    """One token's claims under another's signature."""
    return ".".join((other.split(".")[0], other.split(".")[1], good.split(".")[2]))


def through_the_browser(stub: Stub, browser, make: Callable[[dict[str, Any]], str]):
    """A sign-in whose answer is the token that `make` builds, given the nonce that was asked for."""
    browser.console.get("/sign-in/")
    token = browser.console.cookies["halftide_csrf"].value
    begun = browser.console.post("/oidc/stub/login/", {"csrfmiddlewaretoken": token})
    asked = parse_qs(urlsplit(begun.headers["Location"]).query)
    stub.id_token = make({"nonce": asked["nonce"][0]})
    return browser.console.get("/oidc/stub/login/callback/", {"code": "c", "state": asked["state"][0]})


@pytest.mark.parametrize("name", FORGED)
def test_the_sign_in_refuses(name, stub, browser):
    forge, said = FORGED[name]
    page = through_the_browser(stub, browser, lambda nonce: forge(stub, nonce))
    assert page.status_code == 401
    text = page.content.decode()
    assert "What an administrator should look at" in text
    assert said.replace("'", "&#x27;") in text
    assert not SignIn.objects.exists()
    assert not User.objects.exists()
    assert browser.console.get("/").status_code == 302
    assert AuditRow.objects.get().action == "session.refused"


@pytest.mark.parametrize("name", FORGED)
def test_the_api_refuses(name, stub, client):
    forge, said = FORGED[name]
    answer = client.get("/v1/echo", headers={"Authorization": f"Bearer {forge(stub, {})}"})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert said in answer.json()["error"]["message"]
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [{}, {"aud": [CLIENT]}, {"azp": CLIENT}, {"aud": [CLIENT, "b"], "azp": CLIENT}],
    ids=["plain", "audience in a list", "with its party", "two audiences with a party"],
)
def test_both_doors_accept_a_good_token(changes, stub, browser, client):
    page = through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce, **changes)))
    assert page.status_code == 302
    assert browser.console.get("/").content.endswith(b": GET")
    answer = client.get("/v1/echo", headers={"Authorization": f"Bearer {stub.sign(stub.claims(**changes))}"})
    assert answer.status_code == 200
    assert User.objects.count() == 1, "both doors must mean the same person"


@pytest.mark.parametrize("apart", [-50, -11, 11, 50])
def test_clocks_may_be_apart_by_some_seconds(apart, stub, browser, client):
    """SecObserve/SecObserve#3775: a provider 11 s ahead made every sign-in fail."""
    shifted = {"iat": now() + apart, "exp": now() + apart + (0 if apart < 0 else 300)}
    assert through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce, **shifted))).status_code == 302
    answer = client.get("/v1/echo", headers={"Authorization": f"Bearer {stub.sign(stub.claims(**shifted))}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("nonce", ["another", "", None])
def test_the_sign_in_refuses_an_answer_to_another_question(nonce, stub, browser):
    page = through_the_browser(stub, browser, lambda _: stub.sign(stub.claims(nonce=nonce)))
    assert page.status_code == 401
    assert "belongs to another sign-in" in page.content.decode()


def test_user_info_about_somebody_else_is_refused(stub, browser):
    stub.userinfo = {"sub": "root", "groups": ["ml"]}
    page = through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce)))
    assert page.status_code == 401
    assert "about two people" in page.content.decode()


def test_no_id_token_is_refused(stub, browser):
    page = through_the_browser(stub, browser, lambda _: "")
    assert page.status_code == 401


@pytest.mark.parametrize("token", ["a.b.c", "..", "é.é.é", "e30.e30.e30"])
def test_what_is_no_token_at_all_is_refused_at_the_api(token, stub, client):
    answer = client.get("/v1/echo", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401


def test_a_rotated_key_works_at_once_and_the_old_one_no_longer(stub, client):
    """openfga/openfga#3099: keys cached at the start made every sign-in fail after a rotation."""
    first = stub.sign(stub.claims())
    assert client.get("/v1/echo", headers={"Authorization": f"Bearer {first}"}).status_code == 200
    fresh = new_key()
    stub.keys = {"two": fresh}
    for _ in range(10):
        rotated = stub.sign(stub.claims(), fresh, kid="two")
        assert client.get("/v1/echo", headers={"Authorization": f"Bearer {rotated}"}).status_code == 200
    assert client.get("/v1/echo", headers={"Authorization": f"Bearer {first}"}).status_code == 401
    assert stub.hits["/jwks_uri"] == 2


@pytest.mark.parametrize("email", [{}, {"email": ""}, {"email": None}, {"email": "root@corp.example", "email_verified": "false"}])
def test_an_address_makes_nobody_somebody_else(email, stub, browser):
    """coder/coder#4472: an empty address matched an account that had none either; morelitea PR#666: an unverified one."""
    for name, address in (("a", ""), ("b", ""), ("root", "root@corp.example")):
        User.objects.create(username=name, email=address)
    stub.userinfo = {"sub": "kim", **email}
    page = through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce)))
    assert page.status_code == 302
    assert User.objects.count() == 4
    assert SocialAccount.objects.get().user.username not in ("a", "b", "root")


def test_groups_in_a_bearer_token_give_and_take_roles_but_an_older_token_brings_nothing_back(stub, client):
    """IBM/mcp-context-forge#2331: removal at the provider left the rights."""
    older = stub.sign(stub.claims(iat=now() - 30))
    assert client.get("/v1/echo", headers={"Authorization": f"Bearer {older}"}).status_code == 200
    assert Grant.objects.get().role == Role.OPERATOR
    newer = stub.sign(stub.claims(groups=[]))
    assert client.get("/v1/echo", headers={"Authorization": f"Bearer {newer}"}).status_code == 403
    assert client.get("/v1/echo", headers={"Authorization": f"Bearer {older}"}).status_code == 403
    assert not Grant.objects.exists()


def begin(browser) -> str:
    """Start a sign-in; returns its state."""
    browser.console.get("/sign-in/")
    token = browser.console.cookies["halftide_csrf"].value
    begun = browser.console.post("/oidc/stub/login/", {"csrfmiddlewaretoken": token})
    return parse_qs(urlsplit(begun.headers["Location"]).query)["state"][0]


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ({"error": "access_denied"}, 401, "You cancelled at the identity provider"),
        ({"error": "server_error", "error_description": "<b>out of order</b>"}, 401, "&lt;b&gt;out of order&lt;/b&gt;"),
    ],
)
def test_the_providers_own_refusal_is_shown_as_text(answer, status, said, stub, browser):
    page = browser.console.get("/oidc/stub/login/callback/", {"state": begin(browser), **answer})
    assert page.status_code == status
    assert said in page.content.decode()


def test_nothing_that_a_made_up_link_says_is_shown(stub, browser):
    page = browser.console.get("/oidc/stub/login/callback/", {"state": "x", "error": "e", "error_description": "call 555-0100"})
    assert page.status_code == 401
    assert "555-0100" not in page.content.decode()


def test_a_wrong_secret_and_a_silent_provider_are_told_apart(stub, browser):
    stub.token_answer = (401, {"error": "invalid_client"})
    page = browser.console.get("/oidc/stub/login/callback/", {"state": begin(browser), "code": "c"})
    assert page.status_code == 401
    assert "HALFTIDE_OIDC_CLIENT_SECRET" in page.content.decode()
    state = begin(browser)
    stub.discovery = {"issuer": "https://somebody.else"}
    published.cache_clear()
    page = browser.console.get("/oidc/stub/login/callback/", {"state": state, "code": "c"})
    assert page.status_code == 503
    assert "https://somebody.else" in page.content.decode()


@pytest.mark.parametrize("end", [None, "down"])
def test_sign_out_without_an_address_for_it_says_so(end, stub, browser):
    """pennersr/django-allauth#3104: a provider without an end of session must not break the way out."""
    through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce)))
    if end == "down":
        stub.discovery = {"issuer": "https://somebody.else"}
        published.cache_clear()
    page = browser.sign_out()
    assert page.status_code == 200
    assert "Only here" in page.content.decode()
    assert not SignIn.objects.exists()
    assert browser.console.get("/").status_code == 302
