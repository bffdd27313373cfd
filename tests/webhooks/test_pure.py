"""What decides, without a row: when a burst ends, what it says, how it is written, when a try comes again."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from console.env import ROOT
from console.webhooks import bodies, bursts
from console.webhooks.groups import OF_REASON, group_of
from console.webhooks.health import Health, after
from console.webhooks.message import Item, Message, Place, Tally, summary
from console.webhooks.tries import next_try, problem_of, retry_after

NOW = datetime(2026, 11, 12, 14, 2, tzinfo=UTC)
TRAIN, SERVE = Place(uuid4(), "aurora-train"), Place(uuid4(), "atlas-serve")
HOSTILE = "<!channel> <@U1> @channel @here <https://evil.example|bill> & ![x](https://evil.example/p.png) [a](b)\n*b* \u202e"


def link(cluster: UUID, entry: int | None) -> str:
    return f"https://halftide.example/{cluster}#{entry}"


def an_item(number: int = 1, message: str = "it happened", reason: str = "NodeNotReady", place: Place = TRAIN) -> Item:
    return Item(number, place, reason, "warning", ("Node", "gpu-1", "u"), "Halftide", message, NOW, 1)


def a_message(*tallies: Tally, items: list[Item] | None = None, number: int | None = None) -> Message:
    count = sum(tally.number for tally in tallies) if number is None else number
    listed = items if items is not None else [an_item(n) for n in range(min(count, 50))]
    return Message(uuid4(), NOW, (uuid4(), "ops"), (uuid4(), "Aurora Labs"), "warnings", count, 1, count, tallies, listed)


def test_twenty_preempted_nodes_are_one_sentence() -> None:
    tally = Tally("TogetherPreempted", 20, (TRAIN,), 160, (NOW + timedelta(seconds=300), NOW + timedelta(seconds=301)))
    assert summary(a_message(tally)) == "20 nodes of aurora-train were preempted (160 GPUs), deadline 14:07 UTC"


def test_several_clusters_kinds_and_deadlines_are_said_too() -> None:
    places = tuple(Place(uuid4(), name) for name in "abcde")
    preempted = Tally("TogetherPreempted", 5, places, 40, (NOW + timedelta(seconds=60), NOW + timedelta(seconds=300)))
    others = [
        Tally("NodeLost", 4, (TRAIN,)),
        Tally("BudgetOverridden", 3, (TRAIN, SERVE)),
        Tally("X", 2, (TRAIN,)),
        Tally("Y", 2, (SERVE,)),
    ]
    assert summary(a_message(preempted, *others)) == (
        "5 nodes of a, b, c and 2 more were preempted (40 GPUs), deadlines 14:03 to 14:07 UTC; "
        "4 nodes of aurora-train were lost; 3 × BudgetOverridden in aurora-train, atlas-serve; and 2 more kinds of entries"
    )


def test_a_single_entry_says_its_own_sentence_and_where() -> None:
    tally = Tally("NodeNotReady", 1, (TRAIN,))
    assert summary(a_message(tally, items=[an_item(message="gpu-1 is not Ready")])) == "aurora-train: gpu-1 is not Ready"
    assert summary(a_message(tally, items=[an_item(message="aurora-train waits")])) == "aurora-train waits"


def test_a_burst_is_told_ten_seconds_after_the_last_and_a_minute_after_the_first() -> None:
    def seconds(latest: float, step: int = 0) -> float:
        return (bursts.closes_at(NOW, NOW + timedelta(seconds=latest), step) - NOW).total_seconds()

    assert [seconds(0), seconds(5), seconds(45), seconds(55)] == [10, 15, 55, 60]
    assert [seconds(0, step) for step in range(6)] == [10, 20, 40, 80, 160, 180]
    assert [seconds(500, step) for step in range(6)] == [60, 120, 180, 180, 180, 180]


@given(st.lists(st.floats(0.1, 60), min_size=1, max_size=200))
def test_what_goes_on_and_on_is_told_more_and_more_seldom_and_nothing_waits_longer_than_three_minutes(gaps: list[float]) -> None:
    """Entries at most a minute apart, for hours: the n-th message is 10, 20, 40 … 180 s after the one before, or more."""
    moment, opened, step = NOW, NOW, 0
    told: datetime | None = None
    closes: datetime | None = None
    sent: list[datetime] = []
    for gap in gaps:
        moment += timedelta(seconds=gap)
        if closes is not None and moment >= closes:
            told, closes = closes, None
            sent.append(told)
        if closes is None:
            step, opened = bursts.step_after(moment, told, step), moment
        closes = bursts.closes_at(opened, moment, step)
        assert closes - opened <= timedelta(seconds=bursts.SELDOM)
    for number, (before, then) in enumerate(itertools.pairwise(sent), 1):
        assert then - before >= timedelta(seconds=min(10 << min(number, 5), bursts.SELDOM))


def test_every_reason_of_a_group_is_one_that_halftide_writes() -> None:
    """A reason that is renamed elsewhere would be told to nobody."""
    rooms = [path for path in (ROOT / "console").rglob("*.py") if path.parent.name != "webhooks"]
    code = "".join(path.read_text() for path in rooms)
    assert [reason for reason in OF_REASON if f'"{reason}"' not in code] == []


def test_an_entry_is_told_under_its_own_group_or_as_a_warning() -> None:
    assert group_of("TogetherPreempted", ["preemptions", "warnings"]) == "preemptions"
    assert group_of("TogetherPreempted", ["warnings"]) == "warnings"
    assert group_of("NodeLost", ["preemptions", "warnings"]) == "warnings"


def test_a_strangers_text_mentions_nobody_and_links_nowhere() -> None:
    body = bodies.as_slack(a_message(Tally("NodeNotReady", 2, (TRAIN,)), items=[an_item(1, HOSTILE), an_item(2, HOSTILE)]), link)
    text = json.loads(body)["text"]
    assert "<!" not in text
    assert "<@" not in text
    assert "evil.example|" not in text.replace("&lt;https://evil.example|bill&gt;", "")
    assert "@channel" not in text
    assert "@here" not in text
    assert "](" not in text
    assert "\u202e" not in text
    assert text.count("<") == text.count("<https://halftide.example/")
    assert json.loads(body)["unfurl_links"] is False


@hypothesis_settings(max_examples=40)
@given(st.text(max_size=1500), st.integers(1, 10_000))
def test_no_part_of_a_slack_message_is_longer_than_slack_takes(text: str, number: int) -> None:
    tally = Tally(text[:128], number, (Place(TRAIN.id, text[:63] or "x"),))
    message = a_message(tally, items=[an_item(n, text * 4, text[:128]) for n in range(min(number, 12))], number=number)
    body = json.loads(bodies.as_slack(message, lambda *_: "https://halftide.example/" + "x" * 200))
    for block in body["blocks"]:
        for part in block.get("elements", [block.get("text")]):
            assert 0 < len(part["text"]) <= 3000


@given(st.text(max_size=400), st.integers(20, 300))
def test_escaping_never_cuts_an_entity_and_keeps_its_bound(text: str, most: int) -> None:
    said = bodies.escaped(text, most)
    assert len(said) <= most
    rest = said.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert not set(rest) & set("&<>")


def test_the_json_shape_is_that_of_version_1() -> None:
    message = a_message(Tally("NodeNotReady", 60, (TRAIN,)))
    body = json.loads(bodies.as_json(message, link))
    assert " ".join(body) == ("version id type at webhook project group summary count first_entry last_entry entries not_listed")
    assert (body["version"], body["type"], body["count"], len(body["entries"]), body["not_listed"]) == (1, "entries", 60, 50, 10)
    assert body["entries"][0] == {
        "id": 0,
        "link": link(TRAIN.id, 0),
        "cluster": {"id": str(TRAIN.id), "name": "aurora-train"},
        "reason": "NodeNotReady",
        "severity": "warning",
        "subject": {"kind": "Node", "name": "gpu-1", "uid": "u"},
        "actor": "Halftide",
        "message": "it happened",
        "at": "2026-11-12T14:02:00.000Z",
        "count": 1,
    }


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0", 0), ("999999999999", 3600), ("Thu, 12 Nov 2026 14:03:00 GMT", 60), ("Thu, 12 Nov 2020 14:03:00 GMT", 0),
     ("-5", None), ("soon", None), ("", None), (None, None), ("٣", None)],
)  # fmt: skip
def test_retry_after_is_read_and_bounded(header: str | None, seconds: int | None) -> None:
    assert retry_after(header, NOW) == seconds


def test_tries_come_again_after_5_s_30_s_2_min_10_min_and_then_no_more() -> None:
    def wait(tries: int, asked: int | None = None, dice: float = 0.5) -> float | None:
        at = next_try(tries, 5, asked, dice, NOW)
        return None if at is None else (at - NOW).total_seconds()

    assert [wait(tries) for tries in range(1, 6)] == [5, 30, 120, 600, None]
    assert (wait(2, dice=0), wait(2, dice=1)) == (24, 36)
    assert wait(1, 90) == 90
    assert wait(4, 90) == 600
    assert wait(5, 90) is None


def test_only_2xx_is_a_delivery() -> None:
    assert [status for status in (200, 201, 202, 204, 299, 300, 302, 400, 404, 410, 429, 500, 503) if not problem_of(status)] == [
        200, 201, 202, 204, 299,
    ]  # fmt: skip
    assert "not followed" in problem_of(302)


def test_a_webhook_begins_to_fail_once_and_recovers_once() -> None:
    health, said = Health(), []
    for delivered, given_up in [(False, False), (False, True), (False, True), (True, False), (True, False), (False, False)]:
        health, news = after(health, NOW, delivered=delivered, given_up=given_up, test=False)
        said.append(news)
    assert said == [None, "WebhookFailing", None, "WebhookRecovered", None, None]
    assert after(Health(), NOW, delivered=False, given_up=True, test=True) == (Health(), None)
