"""Open sessions are asked about again: refusal ends them, silence ends nothing, new groups count."""

from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from console.accounts import revalidation, sealing
from console.accounts.models import AuditRow, Grant, Role, SignIn
from console.accounts.tasks import revalidate_sessions
from tests.accounts.test_forged_tokens import through_the_browser


@pytest.fixture
def open_session(stub, browser) -> SignIn:
    through_the_browser(stub, browser, lambda nonce: stub.sign(stub.claims(**nonce, iat=stub.claims()["iat"] - 30)))
    assert browser.console.get("/").status_code == 200
    stub.forms.clear()
    stub.id_token = stub.sign(stub.claims())
    return SignIn.objects.get()


def later(minutes: float = 16):
    return timezone.now() + timedelta(minutes=minutes)


def test_nothing_is_asked_before_a_quarter_of_an_hour(stub, open_session):
    assert revalidation.run(later(14)) == 0
    assert stub.forms == []


def test_a_good_answer_keeps_the_session_and_the_new_refresh_token(stub, open_session, browser):
    before = sealing.opened(open_session.refresh_token)
    now = later()
    assert revalidation.run(now) == 1
    assert parse_qs(stub.forms[0])["refresh_token"] == [before]
    open_session.refresh_from_db()
    assert (open_session.checked_at, open_session.due_at) == (now, now + timedelta(minutes=15))
    assert browser.console.get("/").status_code == 200
    stub.token_answer = (200, {"access_token": "opaque", "id_token": stub.id_token, "refresh_token": "third"})
    revalidation.run(now + timedelta(minutes=16))
    open_session.refresh_from_db()
    assert sealing.opened(open_session.refresh_token) == "third"


def test_refresh_tokens_are_stored_sealed(open_session):
    assert sealing.opened(open_session.refresh_token) == "next"
    assert "next" not in open_session.refresh_token


def test_new_groups_count_at_the_next_question(stub, open_session, browser):
    """IBM/mcp-context-forge#2331: removed at the provider, still an administrator here."""
    assert Grant.objects.get().role == Role.OPERATOR
    stub.id_token = stub.sign(stub.claims(groups=[]))
    revalidation.run(later())
    assert not Grant.objects.exists()
    assert browser.console.get("/").status_code == 403


def test_a_refusal_ends_the_session_everywhere(stub, open_session, browser):
    stub.token_answer = (400, {"error": "invalid_grant"})
    revalidation.run(later())
    assert not SignIn.objects.exists()
    assert not Session.objects.filter(session_key=open_session.session_key).exists()
    assert browser.console.get("/").status_code == 302
    assert AuditRow.objects.get(action="session.end").after == {"why": "the identity provider no longer vouches for it"}


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}),
        (503, {"error": "invalid_grant"}),
        (401, {"error": "invalid_client"}),
        (429, {}),
        (200, {}),
        (400, {"error": "invalid_request"}),
    ],
)
def test_anything_but_a_plain_refusal_ends_nothing(answer, stub, open_session, browser):
    stub.token_answer = answer
    now = later()
    revalidation.run(now)
    open_session.refresh_from_db()
    assert open_session.unreachable_since == now
    assert open_session.due_at == now + timedelta(minutes=1)
    assert browser.console.get("/").status_code == 200
    stub.token_answer = None
    revalidation.run(now + timedelta(minutes=2))
    open_session.refresh_from_db()
    assert open_session.unreachable_since is None


def test_a_provider_that_does_not_answer_is_asked_once_a_run(stub, open_session):
    for number in range(5):
        SignIn.objects.create(
            session_key=f"s{number}", user=open_session.user, provider_id="stub", subject="kim", refresh_token=sealing.seal("r"),
            started_at=open_session.started_at, checked_at=open_session.checked_at, due_at=open_session.due_at,
        )  # fmt: skip
    stub.token_answer = (500, {})
    assert revalidation.run(later()) == 1
    assert len(stub.forms) == 1
    assert SignIn.objects.exclude(unreachable_since=None).count() == 6


@pytest.mark.parametrize("changes", [{"sub": "root"}, {"aud": "other"}, {"exp": 1}])
def test_an_answer_that_must_not_be_believed_ends_the_session(changes, stub, open_session):
    stub.id_token = stub.sign(stub.claims(**changes))
    revalidation.run(later())
    assert not SignIn.objects.exists()


def test_an_answer_without_an_id_token_is_judged_by_user_info(stub, open_session):
    stub.token_answer = (200, {"access_token": "opaque"})
    stub.userinfo = {"sub": "kim", "groups": ["sre"]}
    revalidation.run(later())
    (grant,) = Grant.objects.all()
    assert (grant.origin, grant.fleet_operator, grant.role) == ("sre", True, None)
    assert sealing.opened(SignIn.objects.get().refresh_token) == "next"


def test_a_session_is_taken_by_one_run_only(open_session):
    now = later()
    assert [row.pk for row in revalidation.take(now)] == [open_session.pk]
    assert revalidation.take(now) == []
    assert revalidation.take(now + timedelta(minutes=2)) != [], "a run that died must not keep it for ever"


def test_a_run_takes_a_bounded_batch(open_session, monkeypatch):
    monkeypatch.setattr(revalidation, "BATCH", 2)
    for number in range(4):
        SignIn.objects.create(
            session_key=f"s{number}", user=open_session.user, provider_id="stub", subject="kim",
            started_at=open_session.started_at, checked_at=open_session.checked_at, due_at=open_session.due_at,
        )  # fmt: skip
    assert len(revalidation.take(later())) == 2


def test_without_a_refresh_token_nothing_is_asked(stub, browser):
    stub.token_answer = (200, {"access_token": "opaque"})
    browser.console.get("/sign-in/")

    def answer(nonce):
        token = stub.sign(stub.claims(**nonce))
        stub.token_answer = (200, {"access_token": "opaque", "id_token": token})
        return token

    through_the_browser(stub, browser, answer)
    assert SignIn.objects.get().due_at is None
    assert revalidation.run(later(600)) == 0


def test_the_task_has_the_name_that_beat_calls(db):
    assert revalidate_sessions.name == "accounts.revalidate_sessions"
    revalidate_sessions()


def test_against_the_real_provider_leaving_a_group_and_being_closed(idp, browser):
    browser.sign_in("vic")
    idp.leave_groups("vic")
    SignIn.objects.update(due_at=timezone.now())
    # The provider's clock counts in seconds; a token of the same second as the sign-in is not newer.
    Grant.objects.get().user.socialaccount_set.update(extra_data={})
    assert revalidation.run(timezone.now()) == 1
    assert browser.console.get("/").status_code == 403
    idp.execute("UPDATE auth_user SET is_active = false WHERE username = 'vic'")
    SignIn.objects.update(due_at=timezone.now())
    revalidation.run(timezone.now())
    idp.execute("UPDATE auth_user SET is_active = true WHERE username = 'vic'")
    assert browser.console.get("/").status_code == 302
    assert not SignIn.objects.exists()
