"""Messages on their way, against a real receiver: tries, pauses, kills, races, and what a receiver can tell from a header."""

import json
import logging
import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from console.accounts.models import AuditRow
from console.timeline.models import Entry
from console.webhooks import sending, services
from console.webhooks.models import Delivery, Webhook
from console.webhooks.sending import claim, send_due, settle
from console.webhooks.signing import DELIVERY, SIGNATURE, signature
from console.webhooks.tries import Answer
from tests.pages import world as pages
from tests.webhooks import world
from tests.webhooks.receiver import Receiver
from tests.webhooks.world import NOW, SECRET, a_cluster, a_webhook, after, happens, send, side_by_side, sweep, told

State = Delivery.State
WAITING, SENDING, DELIVERED, FAILED = State.WAITING, State.SENDING, State.DELIVERED, State.FAILED


def a_message(webhook: Webhook, due: float = 0, **more: Any) -> Delivery:
    fields = {"group": "targets", "summary": "s", "body": '{"version": 1}', "made_at": NOW, "due_at": after(due), **more}
    return Delivery.objects.create(webhook=webhook, **fields)


def test_from_the_ledger_to_the_receiver(cluster: Any, receiver: Receiver) -> None:
    webhook = a_webhook(cluster, receiver.url)
    happens(cluster, "TargetChanged", "Preemptible target from 8 to 64", at=after(1))
    for second in (2, 12):
        sweep(second)
    assert send(12) == 1
    (message,) = told(webhook)
    assert (message.state, message.status, message.tries, message.due_at, message.problem) == (DELIVERED, 200, 1, None, "")
    (got,) = receiver.got
    assert json.loads(got.body)["entries"][0]["message"] == "Preemptible target from 8 to 64"
    assert got.headers[DELIVERY] == json.loads(got.body)["id"] == str(message.pk)
    assert got.headers[SIGNATURE] == signature([SECRET], after(12), got.body)
    assert got.headers["Content-Type"] == "application/json"
    assert send(14) == 0


def test_five_tries_and_then_it_is_given_up_with_the_reason(cluster: Any, receiver: Receiver) -> None:
    webhook = a_webhook(cluster, receiver.url)
    message = a_message(webhook)
    receiver.answers = [(500, {}, b"try later")] * 9
    looks = (0, 4.9, 5, 34.9, 35, 154.9, 155, 754.9, 755, 9000)
    assert [moment for moment in looks if send(moment)] == [0, 5, 35, 155, 755]
    message.refresh_from_db()
    assert (message.state, message.tries, message.problem) == (FAILED, 5, "The receiver has a fault of its own (500).")
    assert [line["said"] for line in message.log] == ["try later"] * 5
    assert {got.headers[DELIVERY] for got in receiver.got} == {str(message.pk)}
    webhook.refresh_from_db()
    assert (webhook.failing_since, webhook.said_failing_at) == (NOW, after(755))
    assert webhook.on  # never switched off silently


def test_the_timeline_says_once_that_it_fails_and_once_that_it_works_again(cluster: Any, receiver: Receiver) -> None:
    other = a_cluster("atlas-serve")
    a_cluster("borealis-eval", "borealis")
    webhook = a_webhook(cluster, receiver.url)
    receiver.answers = [(500, {}, b"")] * 4
    for second in range(4):
        a_message(webhook, second, tries=4)
        send(second)
    assert [entry.stream_id for entry in Entry.objects.filter(reason="WebhookFailing")] == sorted([cluster.pk, other.pk], key=str)
    for second in range(4, 8):
        a_message(webhook, second)
        send(second)
    said = Entry.objects.filter(reason="WebhookRecovered")
    assert said.count() == 2
    assert "It failed since 2026-11-12 14:02:00 UTC." in said[0].message
    webhook.refresh_from_db()
    assert (webhook.failing_since, webhook.said_failing_at, webhook.problem) == (None, None, "")


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_asks_for_a_pause_gets_one_for_all_its_messages(cluster: Any, receiver: Receiver, status: int) -> None:
    webhook = a_webhook(cluster, receiver.url)
    first = a_message(webhook)
    a_message(webhook, 1)
    receiver.answers = [(status, {"Retry-After": "90"}, b"")]
    assert [send(second) for second in (0, 1, 60, 89)] == [1, 0, 0, 0]
    assert [send(second) for second in (90, 91, 92)] == [1, 1, 0]
    first.refresh_from_db()
    assert (first.state, first.tries) == (DELIVERED, 2)


def test_a_redirect_is_not_followed(cluster: Any, receiver: Receiver) -> None:
    message = a_message(a_webhook(cluster, receiver.url))
    receiver.answers = [(302, {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}, b"")]
    send(0)
    message.refresh_from_db()
    assert (message.state, message.status) == (WAITING, 302)
    assert "redirect" in message.problem
    assert [got.path for got in receiver.got] == ["/hook/T0/B0/a-secret-path"]


def test_a_receiver_that_says_nothing_is_given_up_on_in_time(
    cluster: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.webhooks.post.LIMIT", 0.3)
    receiver.hang = threading.Event()
    message = a_message(a_webhook(cluster, receiver.url))
    send(0)
    message.refresh_from_db()
    assert (message.state, message.problem) == (WAITING, "No answer within 0.3 s.")


def test_only_the_beginning_of_an_answer_is_read_and_kept(cluster: Any, receiver: Receiver) -> None:
    message = a_message(a_webhook(cluster, receiver.url))
    receiver.answers = [(400, {}, b"x" * 5_000_000)]
    send(0)
    message.refresh_from_db()
    assert message.log[0]["said"] == "x" * 300


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("http://127.0.0.1:9/x", "No connection to 127.0.0.1"),
        ("https://127.0.0.1:{port}/x", "certificate|no TLS"),
        ("https://10.0.0.1/x", "Not sent. 10.0.0.1 is private"),
        ("https://169.254.169.254/latest/meta-data", "Not sent. 169.254.169.254 is link-local"),
    ],
)
def test_what_cannot_be_reached_is_said_in_words(cluster: Any, receiver: Receiver, address: str, says: str) -> None:
    message = a_message(a_webhook(cluster, address.format(port=receiver.port)))
    send(0)
    message.refresh_from_db()
    assert message.status is None
    assert any(word in message.problem for word in says.split("|")), message.problem


def test_a_worker_killed_in_mid_send_sends_it_again_under_the_same_id(cluster: Any, receiver: Receiver) -> None:
    webhook = a_webhook(cluster, receiver.url)
    message = a_message(webhook)

    class KilledError(BaseException):
        """As SIGKILL would: nothing after the sending happens."""

    async def dies_after(*arguments: Any) -> Answer:
        await sending.post(*arguments)
        raise KilledError

    with pytest.raises(KilledError):
        send_due(NOW, dies_after)
    message.refresh_from_db()
    assert (message.state, message.tries) == (SENDING, 1)
    assert [send(second) for second in (1, 20, 29)] == [0, 0, 0]
    assert send(30) == 1
    message.refresh_from_db()
    assert (message.state, message.tries) == (DELIVERED, 2)
    assert [got.headers[DELIVERY] for got in receiver.got] == [str(message.pk)] * 2
    assert "not known" in message.log[0]["problem"]


def test_a_last_try_that_was_cut_off_ends_it(cluster: Any, receiver: Receiver) -> None:
    """Else a message that kills its worker would go round for ever."""
    webhook = a_webhook(cluster, receiver.url)
    message = a_message(webhook, state=SENDING, tries=5)
    assert send(0) == 0
    message.refresh_from_db()
    assert (message.state, message.due_at) == (FAILED, None)
    assert "not known" in message.problem
    assert receiver.got == []
    webhook.refresh_from_db()
    assert webhook.said_failing_at == NOW


def test_a_worker_that_was_frozen_cannot_write_any_more(cluster: Any, receiver: Receiver) -> None:
    message = a_message(a_webhook(cluster, receiver.url))
    (mine,) = claim(NOW)
    assert send(31) == 1
    settle(mine, sending.Tried(Answer(500, "late"), 9), after(32), 0.5)
    message.refresh_from_db()
    assert (message.state, message.problem) == (DELIVERED, "")


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_a_message_once(receiver: Receiver) -> None:
    """Fifteen rounds: what one is taking the other passes over."""
    pages.an_installation()
    cluster = a_cluster()
    webhooks = [a_webhook(cluster, receiver.url, name=f"hook-{n}") for n in range(2)]
    for turn in range(15):
        for webhook in webhooks:
            a_message(webhook, turn)
        side_by_side(partial(send, turn))
    for second in range(15, 20):
        send(second)  # a row that both passed over waits for the next look
    ids = [got.headers[DELIVERY] for got in receiver.got]
    assert len(ids) == len(set(ids)) == Delivery.objects.count() == 30
    assert set(Delivery.objects.values_list("state", "tries")) == {(DELIVERED, 1)}


def test_a_webhook_gets_one_message_at_a_time_the_oldest_first(cluster: Any, receiver: Receiver) -> None:
    one, two = a_webhook(cluster, receiver.url), a_webhook(cluster, receiver.url, name="two")
    messages = [a_message(webhook, -age) for webhook in (one, two) for age in (1, 3, 2)]
    assert [send(second) for second in range(4)] == [2, 2, 2, 0]
    order = [got.headers[DELIVERY] for got in receiver.got]
    assert [order.index(str(message.pk)) // 2 for message in messages] == [2, 0, 1, 2, 0, 1]


def test_for_a_day_after_a_rotation_both_secrets_sign(cluster: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook, admin = a_webhook(cluster, receiver.url), world.an_admin()
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    secret = services.rotate(admin, webhook)
    for due in (0, timedelta(hours=24).total_seconds()):
        a_message(webhook, due)
        send(due)
    first, second = receiver.got
    assert first.headers[SIGNATURE] == signature([secret, SECRET], NOW, first.body)
    assert second.headers[SIGNATURE] == signature([secret], after(86400), second.body)


def test_a_test_is_tried_once_and_says_nothing_of_the_webhook_unless_it_arrives(cluster: Any, receiver: Receiver) -> None:
    webhook, admin = a_webhook(cluster, receiver.url, failing_since=NOW, said_failing_at=NOW), world.an_admin()
    receiver.answers = [(500, {}, b"")]
    for state in (FAILED, DELIVERED):
        message = services.send_test(admin, webhook)
        assert services.send_test(admin, webhook) == message  # a second click is not a second message
        Delivery.objects.filter(pk=message.pk).update(due_at=NOW)
        send(0)
        message.refresh_from_db()
        assert (message.state, message.tries) == (state, 1)
    webhook.refresh_from_db()
    assert webhook.said_failing_at is None
    assert json.loads(receiver.got[0].body)["type"] == "test"


def test_resent_by_hand_it_is_the_same_message_with_all_its_tries(cluster: Any, receiver: Receiver) -> None:
    webhook, admin = a_webhook(cluster, receiver.url), world.an_admin()
    message = a_message(webhook, tries=4)
    receiver.answers = [(500, {}, b"")]
    send(0)
    services.resend(admin, webhook, message)
    Delivery.objects.filter(pk=message.pk).update(due_at=after(1))
    send(1)
    message.refresh_from_db()
    assert (message.state, message.tries, message.resent_by) == (DELIVERED, 1, admin.name)
    assert [got.headers[DELIVERY] for got in receiver.got] == [str(message.pk)] * 2
    assert receiver.got[0].body == receiver.got[1].body


def test_address_and_secret_are_in_no_log_no_trail_no_entry_and_no_answer_that_is_kept(
    cluster: Any, receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receivers repeat the path they do not know; errors of libraries carry the whole address."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    admin = world.an_admin()
    wish = services.Wish("chat", receiver.url, ["warnings"])
    webhook, secret = services.create(admin, cluster.project, "slack", wish)
    receiver.answers = [(404, {}, b"Cannot POST /hook/T0/B0/a-secret-path")] * 9
    services.edit(admin, webhook, services.Wish("chat two", receiver.url, ["warnings"], cluster.pk))
    a_message(webhook, tries=4)
    send(0)
    rotated = services.rotate(admin, webhook)
    services.send_test(admin, webhook)
    send(1)
    services.switch(admin, webhook, on=False)
    webhook.refresh_from_db()
    kept = [
        caplog.text,
        str(list(AuditRow.objects.values_list("before", "after", "subject"))),
        str(list(Entry.objects.values_list("message", "data"))),
        str(list(Delivery.objects.values())),
        str(list(Webhook.objects.values())),
    ]
    assert AuditRow.objects.count() == 5
    assert Entry.objects.filter(reason="WebhookFailing").exists()
    for text in kept:
        for hidden in ("a-secret-path", secret, rotated):
            assert hidden not in text
    services.delete(admin, webhook)
    assert not Webhook.objects.exists()


def test_a_key_that_was_lost_is_said_and_nothing_is_sent(cluster: Any, receiver: Receiver, settings: Any) -> None:
    message = a_message(a_webhook(cluster, receiver.url))
    settings.ENCRYPTION_KEY = "another"
    send(0)
    message.refresh_from_db()
    assert "HALFTIDE_ENCRYPTION_KEY" in message.problem
    assert receiver.got == []
