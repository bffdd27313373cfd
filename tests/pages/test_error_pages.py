"""A page that refuses says what happened, what to do, who can help, and a way back."""

import json
import logging
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import Client

from console.accounts.models import Role
from console.capacity.models import Pool
from console.logs import JsonFormatter
from tests.pages import world


def test_nothing_there_offers_a_way_back_to_our_own_pages_only(pool: Pool, vic: Client) -> None:
    gone = "/clusters/00000000-0000-4000-8000-000000000000"
    page = vic.get(gone, headers={"Referer": "http://testserver/?q=aurora"})
    assert page.status_code == 404
    assert 'href="http://testserver/?q=aurora"' in page.content.decode()
    assert "old link" in page.content.decode()
    for elsewhere in ("https://example.com/", "//example.com", "javascript:alert(1)", f"http://testserver{gone}"):
        assert "Back to where you were" not in vic.get(gone, headers={"Referer": elsewhere}).content.decode()
    assert "There is nothing at this address" in vic.get("/nowhere").content.decode()


def test_a_refusal_names_who_can_help_and_its_request(pool: Pool, ada: Client, vic: Client) -> None:
    page = vic.get("/clusters/new", headers={"X-Request-ID": "proxy-0123456789"})
    assert page.status_code == 403
    assert "Who can help: ada" in page.content.decode()
    assert "proxy-0123456789" in page.content.decode()


@pytest.mark.parametrize("given", ["<script>", "short", "a" * 65, "two words"])
def test_an_id_that_makes_no_sense_is_not_repeated(db: None, client: Client, given: str) -> None:
    answer = client.get("/healthz", headers={"X-Request-ID": given})
    assert answer.headers["X-Request-ID"] != given
    assert len(answer.headers["X-Request-ID"]) == 16


def test_a_fault_of_ours_is_found_in_the_log_under_the_id_on_the_page(db: None, caplog: pytest.LogCaptureFixture) -> None:
    with patch("console.accounts.middleware.actor_of", side_effect=OperationalError("connection refused")):
        page = Client(raise_request_exception=False).get("/")
    found = page.headers["X-Request-ID"]
    assert found in page.content.decode()
    assert "connection refused" not in page.content.decode()
    line = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert json.loads(JsonFormatter().format(line))["request_id"] == found


def test_a_form_from_an_earlier_sign_in_and_a_request_that_cannot_be_read_are_pages(pool: Pool) -> None:
    eve = world.browser(world.a_person("eve", Role.ADMIN), enforce_csrf_checks=True)
    page = eve.post("/automation", {"on": "0", "why": "x"})
    assert page.status_code == 403
    assert "load the page again" in page.content.decode()
    strange = eve.get("/", headers={"Host": "elsewhere.example"})
    assert strange.status_code == 400
    assert "HALFTIDE_ALLOWED_HOSTS" in strange.content.decode()
