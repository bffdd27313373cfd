"""Above 200 groups Entra ID sends a pointer in place of the list; Microsoft Graph has it, page by page."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.utils import timezone

from console.accounts import environment, revalidation
from console.accounts.models import AuditRow, Grant, Role, SignIn
from console.accounts.oidc import config, overage
from console.accounts.roles import WHY
from tests.accounts.stub import Stub
from tests.accounts.test_forged_tokens import through_the_browser
from tests.accounts.test_revalidation import later

FIRST = f"/v1.0{overage.QUESTION}"
POINTER = {
    "groups": None,
    "_claim_names": {"groups": "src1"},
    "_claim_sources": {"src1": {"endpoint": "https://retired.example/me"}},
}


@pytest.fixture
def entra(stub: Stub, settings) -> Stub:
    """The stub is Microsoft Graph too, with 250 groups on three pages; `ml` is on the last."""
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["graph_url"] = f"{stub.issuer}/v1.0"
    overage._left_alone.clear()
    names = [f"group-{number}" for number in range(249)] + ["ml"]
    for number, path in enumerate((FIRST, "/v1.0/page-2", "/v1.0/page-3")):
        page = {"value": [{"@odata.type": overage.GROUP, "id": name} for name in names[number * 100 : number * 100 + 100]]}
        stub.graph[path] = (200, {**page, **({"@odata.nextLink": f"{stub.issuer}/v1.0/page-{number + 2}"} if number < 2 else {})})
    return stub


def sign_in(stub: Stub, browser, **changes):
    """An hour ago, so that what the provider says next is newer."""
    issued = int(stub.claims()["iat"]) - changes.pop("ago", 0)
    return through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce, **changes, iat=issued)))


def test_the_groups_of_all_pages_give_their_roles(entra, browser):
    """argoproj/argo-cd PR#27397 and IBM/mcp-context-forge#2201: the pointer was read as "in no group"."""
    assert sign_in(entra, browser, **POINTER).status_code == 302
    assert Grant.objects.get().role == Role.OPERATOR
    assert browser.console.get("/").status_code == 200
    assert [entra.hits[path] for path in (FIRST, "/v1.0/page-2", "/v1.0/page-3")] == [1, 1, 1]


def test_a_list_that_fits_is_not_asked_for(entra, browser):
    sign_in(entra, browser)
    assert entra.hits[FIRST] == 0
    assert Grant.objects.get().role == Role.OPERATOR


@pytest.mark.parametrize(
    ("page", "answer", "said"),
    [
        (FIRST, (403, {"error": {"code": "Authorization_RequestDenied"}}), "refused them (403)"),
        (FIRST, (401, {}), "refused them (401)"),
        (FIRST, (503, {}), "something else (503)"),
        (FIRST, (200, {"value": "many"}), "something else (200)"),
        ("/v1.0/page-2", (500, {}), "something else (500)"),
        (FIRST, (200, {"value": [], "@odata.nextLink": "https://evil.example/v1.0/page-2"}), "not its own"),
        (FIRST, (200, {"value": [], "@odata.nextLink": 7}), "not its own"),
        (FIRST, (200, {"value": [], "@odata.nextLink": "https://["}), "not its own"),
    ],
)
def test_groups_that_are_not_given_change_no_role_and_are_said(page, answer, said, entra, browser, settings):
    """OctopusDeploy/Issues#8388: who could not be looked up lost every role."""
    settings.ROOT_URLCONF = "console.urls"
    sign_in(entra, browser, ago=60)
    entra.graph[page] = answer
    assert sign_in(entra, browser, **POINTER).status_code == 302
    assert Grant.objects.get().role == Role.OPERATOR
    told = browser.console.get("/").content.decode()
    assert "so your roles stay as they were" in told
    assert said in told
    assert said in AuditRow.objects.filter(action="session.begin").latest("at").after["groups"]
    assert "stay as they were" not in browser.console.get("/").content.decode()  # once is enough


def test_a_graph_that_does_not_answer_is_left_alone_for_a_minute(entra, browser, settings):
    """A queue of people who sign in, or whose sessions are checked, must not wait for it one after another."""
    sign_in(entra, browser, ago=60)
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["graph_url"] = "http://127.0.0.1:9/v1.0"
    sign_in(entra, browser, **POINTER, ago=30)
    assert "does not answer (ConnectError)" in SocialAccount.objects.get().extra_data["said"]
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["graph_url"] = f"{entra.issuer}/v1.0"
    sign_in(entra, browser, **POINTER)
    assert "a moment ago" in SocialAccount.objects.get().extra_data["said"]
    assert entra.hits[FIRST] == 0
    assert Grant.objects.get().role == Role.OPERATOR


def test_a_group_with_half_a_letter_is_refused_as_in_a_token(entra, browser):
    entra.graph[FIRST] = (200, {"value": [{"id": "a\x00b"}]})
    assert "a letter that is none" in sign_in(entra, browser, **POINTER).content.decode()


def test_no_groups_at_all_is_no_notice_at_each_sign_in(entra, browser, settings):
    """Roles may be given by hand, and then no groups claim is nothing to be told of."""
    settings.ROOT_URLCONF = "console.urls"
    sign_in(entra, browser, ago=60)
    sign_in(entra, browser, groups=None)
    assert "stay as they were" not in browser.console.get("/").content.decode()


def test_a_graph_that_never_ends_is_left(entra, browser):
    entra.graph[FIRST] = (200, {"value": [], "@odata.nextLink": f"{entra.issuer}{FIRST}"})
    sign_in(entra, browser, **POINTER)
    assert entra.hits[FIRST] == overage.MOST_PAGES
    assert f"more than {overage.MOST_PAGES} pages" in SocialAccount.objects.get().extra_data["said"]
    assert not Grant.objects.exists()


def test_roles_of_the_directory_in_the_same_list_are_no_groups(entra, browser):
    entra.graph[FIRST] = (200, {"value": [{"@odata.type": "#microsoft.graph.directoryRole", "id": "ml"}, {"id": 7}, "ml"]})
    sign_in(entra, browser, **POINTER)
    assert not Grant.objects.exists()


def test_the_list_is_asked_for_again_when_the_session_is(entra, browser):
    sign_in(entra, browser, **POINTER, ago=60)
    entra.id_token = entra.sign(entra.claims(**POINTER))
    entra.graph["/v1.0/page-3"] = (200, {"value": []})
    assert revalidation.run(later()) == 1
    assert not Grant.objects.exists()
    assert SignIn.objects.get().checked_at > timezone.now()


def test_a_provider_cannot_write_our_reason(entra, browser):
    entra.userinfo[WHY] = "call 555-0100"
    sign_in(entra, browser, **POINTER, **{WHY: "call 555-0100"})
    assert "555" not in SocialAccount.objects.get().extra_data["said"]


def test_without_a_graph_the_pointer_alone_is_said(stub, browser):
    sign_in(stub, browser, **POINTER)
    assert "HALFTIDE_OIDC_GRAPH_URL" in SocialAccount.objects.get().extra_data["said"]


def test_entra_ids_clouds_have_a_graph_each_and_another_may_be_named(monkeypatch):
    for name, value in (("ISSUER", "https://login.microsoftonline.com/t/v2.0"), ("CLIENT_ID", "c"), ("CLIENT_SECRET", "hush")):
        monkeypatch.setenv(f"HALFTIDE_OIDC_{name}", value)
    assert graph() == "https://graph.microsoft.com/v1.0"
    monkeypatch.setenv("HALFTIDE_OIDC_ISSUER", "https://login.microsoftonline.us/t/v2.0")
    assert graph() == "https://graph.microsoft.us/v1.0"
    monkeypatch.setenv("HALFTIDE_OIDC_GRAPH_URL", "https://dod-graph.microsoft.us/v1.0/")
    assert graph() == "https://dod-graph.microsoft.us/v1.0"
    monkeypatch.delenv("HALFTIDE_OIDC_GRAPH_URL")
    monkeypatch.setenv("HALFTIDE_OIDC_ISSUER", "https://corp.okta.example")
    assert graph() == ""


def graph() -> str:
    [app] = environment.from_environment()
    return config.of_app(type("App", (), app)).graph
