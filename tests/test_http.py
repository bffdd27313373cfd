"""One envelope for every failure of the API, one page for every failure of a page; also when it is ours."""

from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import Client


@pytest.fixture
def down() -> object:
    """The database is gone when the first thing asks it, which is who is there."""
    with patch("console.accounts.middleware.actor_of", side_effect=OperationalError("connection refused")):
        yield


def test_a_lost_database_is_an_envelope_under_the_api(down: object) -> None:
    answer = Client(raise_request_exception=False).get("/v1/compute/clusters")
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "server_error"
    assert "connection refused" not in answer.content.decode()


def test_a_lost_database_is_a_page_that_helps_elsewhere(down: object) -> None:
    answer = Client(raise_request_exception=False).get("/")
    assert answer.status_code == 500
    assert answer["Content-Type"].startswith("text/html")
    assert b"<h1" in answer.content
