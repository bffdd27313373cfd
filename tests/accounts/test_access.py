"""Who gets in: pages, API and background requests, each with the answer it can use."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from console.accounts.models import Grant, Project, Role, User
from tests.accounts.conftest import HOST

NOW = datetime(2026, 11, 1, 9, tzinfo=UTC)


@pytest.fixture
def signed_in(console, client) -> Client:
    client.defaults["HTTP_HOST"] = HOST
    user = User.objects.create(username="kim")
    project = Project.objects.create(name="Aurora", slug="aurora")
    Grant.objects.create(user=user, project=project, role=Role.VIEWER, source="person", origin="ada", granted_at=NOW)
    client.force_login(user)
    return client


@pytest.fixture
def nobody(console, client) -> Client:
    client.defaults["HTTP_HOST"] = HOST
    return client


def test_a_page_leads_to_sign_in_and_back(nobody):
    answer = nobody.get("/?a=1")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/sign-in/?next=%2F%3Fa%3D1")


@pytest.mark.parametrize(
    "headers", [{"HX-Request": "true"}, {"Accept": "application/json"}], ids=["htmx", "a script of the page"]
)
def test_a_background_request_gets_401_and_no_redirect(nobody, headers):
    """mozilla/mozilla-django-oidc#363: a poll was sent across origins to the provider."""
    answer = nobody.get("/", headers=headers)
    assert answer.status_code == 401


def test_a_form_sent_after_the_session_ended_gets_401_and_no_redirect(nobody):
    """mozilla/mozilla-django-oidc#348: what was typed was gone."""
    assert nobody.post("/", headers={"Accept": "application/json"}).status_code == 401


def test_the_api_answers_in_json_without_a_session(nobody):
    answer = nobody.get("/v1/echo")
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"


def test_a_view_without_a_rule_opens_for_nobody(signed_in, nobody):
    assert signed_in.get("/forgotten/", headers={"Accept": "application/json"}).status_code == 403


def test_pools_are_for_fleet_operators(signed_in):
    ask = {"Accept": "application/json"}
    assert signed_in.get("/pools/", headers=ask).status_code == 403
    User.objects.update(fleet_operator=True)
    assert signed_in.get("/pools/", headers=ask).status_code == 200


def test_a_lost_role_closes_the_page_with_the_next_request(signed_in):
    assert signed_in.get("/").status_code == 200
    Grant.objects.all().delete()
    assert signed_in.get("/").status_code == 403


def test_a_closed_account_is_out_with_the_next_request(signed_in):
    User.objects.update(is_active=False)
    assert signed_in.get("/").status_code == 302


def test_a_cookie_reads_the_api_and_changes_nothing_there(signed_in):
    """The API has no form check, so another site could make a signed-in browser send a change."""
    assert signed_in.get("/v1/echo").status_code == 200
    assert signed_in.post("/v1/echo").status_code == 401


@pytest.mark.parametrize("header", ["Basic a2ltOmtpbQ==", "Bearer", "Bearer ", "ht_x", "Bearer ht_unknown", "Bearer é"])
def test_credentials_that_are_no_good_are_refused_even_where_everybody_may_read(signed_in, header):
    assert signed_in.get("/v1/about", headers={"Authorization": header}).status_code == 401


def test_another_name_of_this_machine_leads_to_the_canonical_one_before_sign_in(console, client):
    answer = client.get("/sign-in/?next=/x/", headers={"host": "localhost:18000"})
    assert (answer.status_code, answer.headers["Location"]) == (302, f"http://{HOST}/sign-in/?next=/x/")


def test_an_api_call_under_another_name_is_answered_where_it_came(console, client):
    assert client.get("/v1/about", headers={"host": "localhost:18000"}).status_code == 200


def test_a_signed_in_page_is_kept_by_no_shared_cache(signed_in):
    assert "private" in signed_in.get("/").headers["Cache-Control"]


def test_the_actor_costs_one_query_beside_session_and_user(signed_in, django_assert_num_queries):
    with django_assert_num_queries(3):
        signed_in.get("/")
    with django_assert_num_queries(0):
        Client(headers={"host": HOST}).get("/about/")
