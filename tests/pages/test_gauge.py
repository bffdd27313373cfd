"""The gauge's geometry and words, as pure functions."""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from console.capacity.drawing import gauge, money, words
from console.capacity.pools.difference import Difference
from console.capacity.queries import Offer

NOW = timezone.now()


def drawn(found: Difference, could_give: int = 0) -> SimpleNamespace:
    cluster = SimpleNamespace(unreachable_since=None)
    return SimpleNamespace(difference=found, offer=Offer(256, could_give, could_give), step=8, cluster=cluster)


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([1, 4, 8, 16]), st.integers(16, 5000))
def test_the_scale_holds_everything_in_whole_nodes(desired: int, allocated: int, step: int, quota: int) -> None:
    end = gauge.scale(desired * step, allocated * step, step, quota)
    assert end % step == 0
    assert end >= max(desired, allocated) * step
    assert end >= step


def test_a_limit_that_is_no_whole_number_of_nodes_is_rounded_down() -> None:
    """davidchin/react-input-range#177: with 37 and nodes of 8 the stops are 0, 8, …, 32."""
    assert gauge.scale(0, 0, 8, 37) == 32


def test_a_target_of_8_can_be_dragged_to_64() -> None:
    assert gauge.scale(8, 8, 8, 512) == 96


@given(st.integers(1, 1024), st.integers(0, 1024))
def test_ticks_never_crowd(nodes: int, allocated: int) -> None:
    found = gauge.ticks(nodes * 8, allocated * 8, 8)
    assert len(found) <= gauge.MOST_TICKS + 2
    assert all(0 <= float(tick.x.rstrip("%")) <= 100 for tick in found)


def test_the_sum_under_the_gauge_adds_up_to_desired() -> None:
    found = Difference(desired=64, allocated=24, joining=8, joining_since=NOW, held_by_pace=8, waiting=16, blocked=8)
    numbers = [int(term.text.split()[0]) for term in words.terms(drawn(found))]
    assert numbers == [24, 8, 8, 16, 8]
    assert sum(numbers) == 64


def test_below_allocated_the_sum_says_what_stays_and_what_goes() -> None:
    found = words.terms(drawn(Difference(desired=24, allocated=48, leaving=24)))
    assert [(term.kind, term.text.split(",")[0]) for term in found] == [("alloc", "24 stay"), ("give", "24 go")]
    assert words.reason(drawn(Difference(desired=24, allocated=48, leaving=24))).strong == "3 nodes will go"


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Difference(desired=0, allocated=0), "No preemptible GPUs asked for."),
        (Difference(desired=16, allocated=16), "Everything asked for is there."),
        (Difference(desired=16, allocated=8, joining=8, joining_since=NOW), "8 GPUs are joining"),
        (Difference(desired=16, allocated=8, held_by_pace=8), "8 GPUs follow"),
        (
            Difference(desired=16, allocated=8, blocked=8, blocked_why="Automation is stopped by ada."),
            "Automation is stopped by ada.",
        ),
    ],
)
def test_the_reason_is_one_sentence_of_the_most_telling_cause(found: Difference, says: str) -> None:
    assert words.reason(drawn(found)).strong == says


def test_waiting_says_since_when_and_when_it_tries_again() -> None:
    since, then = NOW.replace(hour=14, minute=2), NOW.replace(hour=14, minute=4, second=30) + timedelta(0)
    reason = words.reason(drawn(Difference(desired=8, allocated=0, waiting=8, waiting_since=since, next_try_at=then)))
    assert reason.strong + reason.rest == "Waiting for capacity since 14:02 · next try 14:04:30"


@pytest.mark.parametrize(
    ("dollars", "shown"), [("1.995", "$1.995"), ("3.99", "$3.99"), ("4", "$4.00"), ("2.5", "$2.50"), ("4.095000", "$4.095")]
)
def test_a_rate_is_shown_with_every_digit_it_has(dollars: str, shown: str) -> None:
    assert money.rate(Decimal(dollars)) == shown


def test_amounts_are_rounded_half_even_to_cents() -> None:
    assert [money.amount(Decimal(text)) for text in ("0.005", "0.015", "1502.88")] == ["$0.00", "$0.02", "$1,502.88"]
