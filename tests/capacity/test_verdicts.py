"""What became of a pod does not depend on who saw it first."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.capacity.drains import verdicts
from console.capacity.drains.verdicts import Fate, merge, summary
from console.capacity.models import PodVerdict
from tests.capacity.drain_world import START

Verdict = PodVerdict.Verdict
NEW = Fate("u", "team", "train-0", "Job", "train", asked_grace=60)
AT = st.integers(0, 400).map(lambda number: START + timedelta(seconds=number))


def told(fate: Fate, grace: int = 60) -> Fate:
    return verdicts.told(fate, START, grace)


@pytest.mark.parametrize(
    ("seconds", "code", "verdict"),
    [
        (11, 0, Verdict.FINISHED),
        (11, 3, Verdict.FINISHED),
        (20, 137, Verdict.FINISHED),
        (58, 137, Verdict.KILLED),
        (60, 137, Verdict.KILLED),
        (61, 143, Verdict.FINISHED),
    ],
)
def test_137_means_killed_only_once_the_grace_was_over(seconds, code, verdict):
    """Before that, it is the pod's own end: killed for its memory, for example."""
    assert verdicts.ended(told(NEW), START + timedelta(seconds=seconds), code).verdict == verdict


def test_an_end_written_in_whole_seconds_never_comes_before_the_telling():
    late = verdicts.told(NEW, START + timedelta(milliseconds=700), 60)
    assert verdicts.ended(late, START, 0).ended_at == late.told_at


def test_an_overridden_budget_stays_the_verdict_whatever_the_end():
    over = verdicts.told(verdicts.blocked(NEW, "web"), START, 60, Verdict.BUDGET_OVERRIDDEN)
    ends = [
        verdicts.ended(over, START, 143),
        verdicts.vanished(over, START),
        verdicts.cut_off(verdicts.doomed(over, True), START),
    ]
    assert {(end.verdict, end.budget) for end in ends} == {(Verdict.BUDGET_OVERRIDDEN, "web")}


@given(AT, AT, st.integers(0, 255), st.booleans())
def test_an_end_that_was_seen_beats_one_that_was_not_in_either_order(seen_at, gone_at, code, overridden):
    start = verdicts.told(verdicts.blocked(NEW, "web"), START, 60, Verdict.BUDGET_OVERRIDDEN) if overridden else told(NEW)
    seen, gone = verdicts.ended(start, seen_at, code), verdicts.vanished(start, gone_at)
    assert merge(seen, gone) == merge(gone, seen) == seen


@given(AT, st.integers(0, 255))
def test_a_run_that_read_an_older_row_unsays_neither_the_telling_nor_the_end(at, code):
    ended = verdicts.ended(told(NEW), at, code)
    assert merge(ended, NEW) == ended
    assert merge(ended, told(NEW)) == ended
    assert merge(told(NEW), NEW) == merge(NEW, told(NEW)) == told(NEW)


def test_merging_with_itself_changes_nothing():
    looks = [NEW, told(NEW), verdicts.blocked(NEW, "web"), verdicts.doomed(told(NEW), False), verdicts.vanished(told(NEW), START)]
    assert [merge(look, look) for look in looks] == looks


def test_the_summary_counts_every_pod_once():
    looks = [verdicts.ended(told(NEW), START, 0)] * 3 + [told(NEW)] * 2 + [verdicts.blocked(NEW, "web")]
    assert summary(looks) == "6 pods: 3 stopped, 2 stopping, 1 held"
    assert summary([told(NEW)]) == "1 pod: 1 stopping"
    assert summary([]) == "no pods"
