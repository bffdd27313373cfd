"""Signing in where something that ends TLS stands in front, and with the cookies that a browser sends on the way back."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = "console.example"
FORGED = {
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "ftp",
    "x-forwarded-port": "81",
    "forwarded": "host=evil.example",
}


@pytest.fixture
def behind(stub, settings) -> Client:
    """As the proxy sends it on: plain http, the public name, and whatever its client wrote besides."""
    settings.PUBLIC_URL, settings.PUBLIC_HOST = f"https://{HOST}", HOST
    settings.CSRF_TRUSTED_ORIGINS = [settings.PUBLIC_URL]
    settings.ALLOWED_HOSTS = [HOST]
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    return Client(enforce_csrf_checks=True, headers={"host": HOST, **FORGED})


def begin(client: Client, origin: str = f"https://{HOST}"):
    client.get("/sign-in/")
    form = {"csrfmiddlewaretoken": client.cookies["halftide_csrf"].value, "next": "/"}
    return client.post("/oidc/stub/login/", form, headers={"origin": origin})


def test_the_provider_is_asked_to_send_people_back_to_the_public_https_address(behind: Client) -> None:
    """The request came over plain http and with forged headers (mozilla/mozilla-django-oidc#417, makeplane/plane#7834)."""
    answer = begin(behind)
    assert answer.status_code == 302
    asked = parse_qs(urlsplit(answer["Location"]).query)
    assert asked["redirect_uri"] == [f"https://{HOST}/oidc/stub/login/callback/"]


def test_another_sites_form_is_refused_all_the_same(behind: Client) -> None:
    assert begin(behind, "https://evil.example").status_code == 403


def test_the_cookies_come_back_with_the_person_and_go_nowhere_in_the_clear(behind: Client) -> None:
    """A Strict cookie is not sent on the way back from the provider, and with it the attempt is lost
    (mozilla/mozilla-django-oidc#497, oauth2-proxy/oauth2-proxy#1663); nor is a Lax one with a form that the provider posts."""
    answer = begin(behind)
    cookie = answer.cookies["halftide_session"]
    assert (cookie["samesite"], cookie["secure"], cookie["httponly"]) == ("Lax", True, True)
    assert "response_mode" not in parse_qs(urlsplit(answer["Location"]).query)  # the default: back by a plain link


def test_a_full_sign_in_works_with_what_a_browser_sends_from_another_site(idp, browser) -> None:
    """mozilla/mozilla-django-oidc#497: only Lax cookies travel with the link that leads back."""
    browser.console.get("/sign-in/", {"next": "/"})
    token = browser.console.cookies["halftide_csrf"].value
    form = {"csrfmiddlewaretoken": token, "login_hint": "ada", "next": "/"}
    url = browser.console.post("/oidc/demo/login/", form)["Location"]
    while "/oidc/demo/login/callback/" not in url:
        answer = browser.outside.get(url)
        url = str(answer.url.join(answer.headers["Location"]))
    for name, cookie in list(browser.console.cookies.items()):
        if cookie["samesite"] not in ("Lax", "None"):
            del browser.console.cookies[name]
    assert browser.go(url).content == b"ada: GET"


def test_a_public_address_below_a_path_is_named_at_the_start() -> None:
    """mozilla/mozilla-django-oidc#409: found at the start, and not by the first person who signs in."""
    world = {**os.environ, "HALFTIDE_PUBLIC_URL": f"https://{HOST}/halftide", "DJANGO_SETTINGS_MODULE": "console.settings"}
    said = subprocess.run(
        [sys.executable, "-c", "import console.settings"], env=world, cwd=ROOT, capture_output=True, check=False
    )
    assert said.returncode
    assert re.search(rb"HALFTIDE_PUBLIC_URL is a host of its own, without a path", said.stderr)
