"""The checkpoint planner's arithmetic, against figures worked out elsewhere."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.workloads.planner import GB, TB, History, Verdict, interval, save

MONTH = timedelta(days=30)


@pytest.mark.parametrize(
    ("bandwidth", "seconds", "verdict"), [(159, 22, Verdict.FITS), (14.6, 240, Verdict.TIGHT), (10, 350, Verdict.DOES_NOT_FIT)]
)
def test_golden_saves_of_three_and_a_half_terabytes(bandwidth: float, seconds: int, verdict: Verdict) -> None:
    found = save(3.5 * TB, bandwidth * GB, 1, 0, 300)
    assert (round(found.seconds), found.verdict) == (seconds, verdict)


def test_a_bad_day_is_a_factor_on_the_same_save() -> None:
    assert round(save(3.5 * TB, 159 * GB, 159 / 14.6, 0, 300).seconds) == 240


def test_the_step_that_runs_takes_its_time_first() -> None:
    """goodfire-ai/spd#677: the flag is read between steps, so a long step leaves a save nothing."""
    assert save(1.5 * TB, 10 * GB, 1, 0, 300).verdict == Verdict.FITS
    late = save(1.5 * TB, 10 * GB, 1, 120, 300)
    assert (late.left, late.verdict) == (180, Verdict.TIGHT)
    assert save(1.5 * TB, 10 * GB, 1, 200, 300).verdict == Verdict.DOES_NOT_FIT
    never = save(1, 10 * GB, 1, 300, 300)
    assert (never.share, never.verdict) == (math.inf, Verdict.DOES_NOT_FIT)


def test_youngs_interval_on_a_worked_example() -> None:
    """A save of 30 s, a loss each 24 h of the job's nodes: √(2 × 30 × 86,400) = 2,277 s (Young 1974)."""
    history = History(preemptions=10, node_time=timedelta(days=80), looked_back=MONTH)  # one node: a loss each 8 days
    found = interval(30, history, nodes=8)
    assert found is not None
    assert found.between == timedelta(days=1)
    assert found.every.total_seconds() == pytest.approx(2276.8, abs=0.1)
    assert found.lost == pytest.approx(30 / 2276.8 + 2276.8 / 2 / 86400, rel=1e-3)


@pytest.mark.parametrize("preemptions", [0, 1, 2])
def test_too_short_a_history_suggests_nothing(preemptions: int) -> None:
    assert interval(30, History(preemptions, timedelta(days=80), MONTH), 1) is None
    assert interval(30, History(3, timedelta(0), MONTH), 1) is None


@given(
    seconds=st.floats(0.01, 1e6),
    preemptions=st.integers(3, 10_000),
    hours=st.floats(0.1, 1e6),
    nodes=st.integers(1, 10_000),
)
def test_an_interval_is_the_best_of_its_own_model(seconds: float, preemptions: int, hours: float, nodes: int) -> None:
    """Saving a tenth more often or more seldom loses no less, up to Daly's limit."""
    found = interval(seconds, History(preemptions, timedelta(hours=hours), MONTH), nodes)
    if found is None or found.between < timedelta(milliseconds=1) or found.every < timedelta(milliseconds=1):
        return
    mean, every = found.between.total_seconds(), found.every.total_seconds()
    assert every <= mean * 1.000001

    def lost(at: float) -> float:
        return seconds / at + at / (2 * mean)

    if every < mean * 0.999:
        assert lost(every) <= min(lost(every * 1.1), lost(every / 1.1)) * 1.001
