"""From the ledger to one message a burst: nothing lost, nothing twice, nothing from before."""

import json
import threading
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from console.timeline.changes import change
from console.timeline.models import Entry
from console.webhooks import retention, services, sweeping
from console.webhooks.models import Burst, Delivery, Told, Webhook
from tests.pages import world as pages
from tests.webhooks import world
from tests.webhooks.world import NOW, a_cluster, a_webhook, after, happens, preempted, side_by_side, sweep, sweeps, told

URL = "https://hooks.example.com/services/T0/B0/xyz"


def test_twenty_nodes_at_once_are_one_message_that_knows_every_entry(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL)
    entries = preempted(cluster, 20, after(1))
    sweeps(30, begin=2)
    (message,) = told(webhook)
    assert message.summary == "20 nodes of aurora-train were preempted (160 GPUs), deadline 14:07 UTC"
    assert (message.entries, message.first_entry, message.last_entry) == (20, entries[0].pk, entries[-1].pk)
    assert set(message.told.values_list("entry", flat=True)) == {entry.pk for entry in entries}
    body = json.loads(message.body)
    assert (body["count"], len(body["entries"]), body["group"], body["id"]) == (20, 20, "preemptions", str(message.pk))
    assert message.made_at == after(12)  # ten seconds after it was read


def test_a_list_is_cut_and_the_numbers_are_of_all(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL, kind="slack")
    preempted(cluster, 75, after(1))
    sweeps(20)
    (message,) = told(webhook)
    assert "75 nodes of aurora-train were preempted (600 GPUs)" in message.summary
    assert "… and 65 more" in json.loads(message.body)["text"]
    assert message.told.count() == 75


def test_a_new_webhook_begins_at_now_and_not_at_history(cluster: Any) -> None:
    old = happens(cluster, "TogetherPreempted", at=after(-60))
    webhook = a_webhook(cluster, URL)
    with change(after(1)) as made:  # something old that changes now is still old
        made.save(cluster.stream, old, "count")
    sweeps(20)
    assert told(webhook) == []


def test_an_entry_that_changes_later_is_told_once(cluster: Any) -> None:
    """A repeat of a Kubernetes Event, or a line that is kept up to date, comes by again under a new revision."""
    webhook = a_webhook(cluster, URL)
    entry = happens(cluster, "WaitingForCapacity", at=after(1), severity="warning")
    for second in range(2, 80, 19):
        with change(after(second)) as made:
            entry.count += 1
            made.save(cluster.stream, entry, "count")
        sweep(second)
    sweeps(120, begin=80, every=20)
    assert [message.entries for message in told(webhook)] == [1]


def test_entries_of_other_groups_and_projects_are_not_told(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL, groups=["targets"])
    happens(cluster, "NodeReady", at=after(1))
    happens(cluster, "TogetherPreempted", at=after(1), severity="warning")
    happens(a_cluster("borealis-eval", "borealis"), "TargetChanged", at=after(1))
    wanted = happens(cluster, "TargetChanged", at=after(1))
    sweeps(20)
    assert [message.first_entry for message in told(webhook)] == [wanted.pk]


def test_a_webhook_of_one_cluster_hears_only_of_that(cluster: Any) -> None:
    other = a_cluster("atlas-serve")
    webhook = a_webhook(cluster, URL, alone=True)
    happens(other, "TargetChanged", at=after(1))
    sweeps(20)
    assert told(webhook) == []


def test_one_cause_in_many_clusters_is_one_message(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL)
    clusters = [cluster, *(a_cluster(f"more-{n}") for n in range(5))]
    for one in clusters:
        happens(one, "AutomationStopped", "Automation stopped by ada: rack move", at=after(1))
    sweeps(20)
    (message,) = told(webhook)
    assert message.summary.startswith("Automation was stopped in ")
    assert message.summary.endswith(" and 3 more")
    assert message.entries == 6


def test_a_cluster_that_is_new_is_heard_from_its_first_entry(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL)
    late = a_cluster("made-later")
    happens(late, "TargetChanged", at=after(1))
    sweeps(20)
    assert [message.entries for message in told(webhook)] == [1]


def test_an_outages_flood_is_no_flood_of_messages(cluster: Any) -> None:
    """Ten minutes of warnings: after the first ones a message each three minutes, and every entry is in one of them."""
    webhook = a_webhook(cluster, URL, groups=["warnings"])
    for second in range(0, 600, 9):
        with change(after(second)) as made:
            for _ in range(3):
                made.entry(cluster.stream, "NodeNotReady", "gpu-1 is not Ready", severity="warning")
        sweep(second)
    sweeps(900, begin=600, every=60)
    messages = told(webhook)
    assert len(messages) <= 5
    assert sum(message.entries for message in messages) == Told.objects.filter(delivery__isnull=False).count() == 201
    assert not Told.objects.filter(delivery=None).exists()


def test_what_did_not_fit_into_one_step_comes_with_the_next(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.webhooks.reading.MOST_ENTRIES", 7)
    webhook = a_webhook(cluster, URL)
    entries = preempted(cluster, 20, after(1))
    sweeps(30)
    assert set(Told.objects.values_list("entry", flat=True)) == {entry.pk for entry in entries}
    assert [message.entries for message in told(webhook)] == [20]


def test_of_many_clusters_everything_is_read_once_however_little_fits_into_a_step(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.webhooks.reading.MOST_ENTRIES", 4)
    monkeypatch.setattr("console.webhooks.reading.MOST_STREAMS", 2)
    webhook = a_webhook(cluster, URL)
    clusters = [cluster, *(a_cluster(f"more-{n}") for n in range(4))]
    entries = [entry for one in clusters for entry in preempted(one, 3, after(1))]
    sweeps(40, begin=2)
    assert set(Told.objects.values_list("entry", flat=True)) == {entry.pk for entry in entries}
    assert sum(message.entries for message in told(webhook)) == 15


def test_a_sweep_asks_as_much_for_eight_busy_clusters_as_for_one(cluster: Any) -> None:
    """An installation's streams move all the time; what is read of them for a webhook is one query."""
    clusters = [cluster, *(a_cluster(f"more-{n}") for n in range(7))]
    a_webhook(cluster, URL)

    def queries(busy: list[Any], moment: float) -> int:
        for one in busy:
            happens(one, "TogetherPreempted", at=after(moment), severity="warning")
        with CaptureQueriesContext(connection) as seen:
            sweep(moment + 1)
        return len(seen)

    queries(clusters, 1)
    assert queries(clusters, 3) == queries(clusters[:1], 5)


@pytest.mark.django_db(transaction=True)
def test_an_entry_committed_late_is_not_passed_over() -> None:
    """A long transaction that began first and commits last: its number is taken at its end, so nobody has read past it."""
    pages.an_installation()
    cluster = a_cluster()
    webhook = a_webhook(cluster, URL)
    began, go = threading.Event(), threading.Event()
    late: list[int] = []

    def slow() -> None:
        with change(after(1)) as made:
            entry = made.entry(cluster.stream, "WaitingForCapacity", severity="warning", message="slow")
            entry.save()  # as `waits` does: the id is taken long before the number
            began.set()
            go.wait(10)
        late.append(entry.pk)
        connections.close_all()

    thread = threading.Thread(target=slow)
    thread.start()
    assert began.wait(10)
    quick = happens(cluster, "TargetChanged", at=after(2))
    sweep(3)
    go.set()
    thread.join(10)
    sweeps(40, begin=4)
    assert {message.first_entry for message in told(webhook)} == {quick.pk, late[0]}
    assert late[0] < quick.pk


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_a_time_tell_everything_once() -> None:
    pages.an_installation()
    cluster = a_cluster()
    webhook = a_webhook(cluster, URL)
    count = 0
    for turn in range(6):
        count += len(preempted(cluster, 3, after(turn * 70)))
        for moment in (turn * 70 + 1, turn * 70 + 11.5):
            side_by_side(partial(sweep, moment))
    sweeps(800, begin=6 * 70, every=60)
    messages = told(webhook)
    assert sum(message.entries for message in messages) == Told.objects.count() == count
    assert not Told.objects.filter(delivery=None).exists()


def test_switched_off_nothing_is_read_and_on_again_it_begins_at_now(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook, admin = a_webhook(cluster, URL), world.an_admin()
    happens(cluster, "TargetChanged", at=after(1))
    sweep(2)
    monkeypatch.setattr("django.utils.timezone.now", lambda: after(3))
    services.switch(admin, webhook, on=False)
    happens(cluster, "TargetChanged", at=after(4))
    sweeps(30, begin=4)
    assert told(webhook) == []
    monkeypatch.setattr("django.utils.timezone.now", lambda: after(40))
    services.switch(admin, webhook, on=True)
    wanted = happens(cluster, "TargetChanged", at=after(41))
    sweeps(60, begin=41)
    assert [message.first_entry for message in told(webhook)] == [wanted.pk]


def test_what_the_timeline_says_of_a_webhook_is_not_told_to_itself(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL, groups=["warnings"])
    other = a_webhook(cluster, URL, groups=["warnings"], name="other")
    happens(cluster, "WebhookFailing", at=after(1), severity="warning", subject=("Webhook", webhook.name, str(webhook.pk)))
    sweeps(20)
    assert (len(told(webhook)), len(told(other))) == (0, 1)


def test_a_sweep_without_news_asks_as_little_for_ten_webhooks_as_for_one(cluster: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            sweep(30)
        return len(seen)

    a_webhook(cluster, URL)
    sweep(1)
    few = queries()
    for number in range(9):
        a_webhook(cluster, URL, name=f"more-{number}")
    sweep(2)
    assert queries() == few <= 3


def test_the_engine_waits_for_nothing_here(cluster: Any) -> None:
    """A change of the engine makes no query about webhooks, however many there are."""
    for number in range(3):
        a_webhook(cluster, URL, name=f"hook-{number}")
    with CaptureQueriesContext(connection) as seen:
        happens(cluster, "TargetChanged")
    assert not [query["sql"] for query in seen if "webhooks_" in query["sql"]]


def test_messages_go_after_thirty_days_in_small_steps_and_are_never_told_again(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STEP", 4)
    monkeypatch.setattr(retention, "MOST_STEPS", 2)
    webhook = a_webhook(cluster, URL)
    entry = preempted(cluster, 10, after(1))[0]
    sweeps(20)
    Delivery.objects.update(due_at=None, state="delivered")
    month = 30 * 86400 + 60
    kept = happens(cluster, "TargetChanged", at=after(month - 90))
    sweeps(month - 60, begin=month - 80)
    assert [retention.prune(after(month)) for _ in range(3)] == [8, 3, 0]
    with change(after(month)) as made:
        entry.count += 1
        made.save(cluster.stream, entry, "count")
    sweeps(month + 20, begin=month)
    assert [message.first_entry for message in told(webhook)] == [kept.pk]


def test_a_broken_half_of_a_step_leaves_no_half(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies while it folds has marked nothing; the next sweep makes the message."""
    webhook = a_webhook(cluster, URL)
    preempted(cluster, 5, after(1))
    sweep(2)

    def dies(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt), transaction.atomic():
        broken.setattr("console.webhooks.bodies.as_json", dies)
        sweep(14)
    assert told(webhook) == []
    assert Burst.objects.filter(closes_at__isnull=False).count() == 1
    sweep(16)
    assert [message.entries for message in told(webhook)] == [5]


def test_a_kubernetes_event_that_borrows_our_reason_breaks_nothing(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL)
    happens(cluster, "TogetherPreempted", at=after(1), severity="warning", data={"gpus": "many", "deadline": 7})
    preempted(cluster, 2, after(1))
    sweeps(20)
    (message,) = told(webhook)
    assert message.summary.startswith("3 nodes of aurora-train were preempted (16 GPUs), deadline 14:07 UTC")


def test_the_task_says_whether_anything_is_to_be_sent(cluster: Any) -> None:
    webhook = a_webhook(cluster, URL)
    assert sweeping.sweep(NOW) is False
    happens(cluster, "TargetChanged", at=after(1))
    assert [sweep(second) for second in (2, 4, 13)] == [False, False, True]
    Webhook.objects.filter(pk=webhook.pk).update(waits_until=after(60))
    assert [sweep(second) for second in (14, 61)] == [False, True]
    assert Entry.objects.count() == 1
