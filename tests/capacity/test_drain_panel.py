"""The table of verdicts: every fate in words, and nobody's text as markup."""

from datetime import timedelta

import pytest

from console.capacity.drains.entries import names, span
from console.capacity.drains.verdicts import Fate
from console.capacity.drawing.verdict_table import render_drain
from console.capacity.models import Drain, PodVerdict
from tests.capacity.drain_world import START

Verdict = PodVerdict.Verdict


def drain(state: str = Drain.State.TERMINATING, **more) -> Drain:
    return Drain(
        node_name="node-1", cause="preempted", state=state, started_at=START, deadline=START + timedelta(seconds=300), **more
    )


def pod(name: str = "train-0", verdict: str = Verdict.STOPPING, seconds: int | None = None, **more) -> PodVerdict:
    ended = None if seconds is None else START + timedelta(seconds=seconds)
    fields = {"owner_kind": "Job", "asked_grace": 60, "given_grace": 60, "told_at": START, **more}
    return PodVerdict(pod_uid=name, namespace="team", name=name, verdict=verdict, ended_at=ended, **fields)


def render(*pods: PodVerdict, at: int = 109, **more) -> str:
    return str(render_drain(drain(**more), pods, START + timedelta(seconds=at)))


@pytest.mark.parametrize(
    ("row", "words", "after"),
    [
        (pod(verdict=Verdict.FINISHED, seconds=11, exit_code=0), "Finished, exit 0", "11 s"),
        (
            pod(verdict=Verdict.FINISHED, seconds=3, exit_code=0, owner_kind=""),
            "Finished, exit 0. Bare pod: nothing starts it again",
            "3 s",
        ),
        (
            pod(verdict=Verdict.BUDGET_OVERRIDDEN, seconds=33, exit_code=143, budget="web"),
            "Budget <b>web</b> overridden, exit 143",
            "33 s",
        ),
        (pod(verdict=Verdict.BUDGET_OVERRIDDEN, budget="web"), "Budget <b>web</b> overridden, stopping", "1:49"),
        (
            pod(verdict=Verdict.KILLED, seconds=300, last_checkpoint=START),
            "Killed at the deadline, last checkpoint 14:01",
            "5:00",
        ),
        (pod(verdict=Verdict.KILLED, seconds=60, exit_code=137), "Killed when its 1:00 of grace were over", "1:00"),
        (pod(verdict=Verdict.NEVER_STOPPED, seconds=300), "Never stopped: the node did not answer", "5:00"),
        (pod(verdict=Verdict.UNKNOWN, seconds=9, told_at=None), "Unknown: gone without an end being seen", "–"),
        (pod(verdict=Verdict.BLOCKED, budget="web", told_at=None), "Held by budget <b>web</b>", "–"),
        (pod(asked_grace=3600, given_grace=298), "Stopping; asked for 1 h, has 4:58", "1:49"),
        (pod(last_checkpoint=START), "Stopping, saved 14:01", "1:49"),
        (pod(told_at=None), "About to be told", "–"),
    ],
)  # fmt: skip
def test_each_fate_has_its_words(row, words, after):
    html = render(row)
    assert f"<span>{words}</span>" in html
    assert f">{after}</td>" in html


def test_what_moves_carries_its_instant_for_the_browser_to_count_on():
    html = render(pod(), pod("b", Verdict.FINISHED, 11, exit_code=0))
    assert 'data-until="2026-11-12T14:06:31+00:00">3:11</time> left' in html
    assert html.count("data-since=") == 1
    assert "2 pods: 1 stopped, 1 stopping" in html


def test_names_of_strangers_are_text():
    evil = '<img src=x onerror="alert(1)">'
    html = render(pod(evil), pod("b", Verdict.BLOCKED, budget=evil), note=f"held by budget {evil}")
    assert "<img" not in html
    assert html.count("&lt;img") >= 4


def test_it_stands_open_while_something_happens_or_went_wrong_and_closed_when_all_is_well():
    done = {"state": Drain.State.REMOVED, "terminated_at": START}
    assert "open" in render(pod()).partition(">")[0]
    assert "open" not in render(pod(verdict=Verdict.FINISHED, seconds=3, exit_code=0), **done).partition(">")[0]
    assert "open" in render(pod(verdict=Verdict.KILLED, seconds=300), **done).partition(">")[0]


def test_what_stays_and_what_holds_is_said_below():
    html = render(staying=2, note="held by budget web")
    assert '<p class="foot">Held by budget web. 2 DaemonSet pods stay until the node goes.</p>' in html
    gone = render(staying=1, state=Drain.State.REMOVED, terminated_at=START)
    assert "1 DaemonSet pod stayed until the node went." in gone


def test_lengths_and_lists_read_as_people_say_them():
    assert [span(number) for number in (0, 59, 60, 298, 300, 3600, 7200, 3661)] == [
        "0 s", "59 s", "1:00", "4:58", "5:00", "1 h", "2 h", "1:01:01",
    ]  # fmt: skip
    assert names([Fate(str(number), "team", f"p{number}") for number in range(7)]) == "p0, p1, p2, p3, p4 and 2 more"
