"""The difference between desired and allocated is always a sum that adds up."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from console.capacity.pools.difference import Coming, Waiting, difference_of

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=5)

gpus = st.integers(0, 512)
comings = st.builds(
    Coming,
    gpus=st.integers(1, 8),
    since=st.datetimes().map(lambda at: at.replace(tzinfo=UTC)),
    why=st.sampled_from(["", "", "sick"]),
)
waits = st.none() | st.builds(Waiting, gpus=gpus, since=st.just(NOON), next_try_at=st.none() | st.just(LATER))


@given(gpus, gpus, st.lists(comings), waits, st.sampled_from(["", "automation is stopped by olu"]))
def test_it_adds_up_whatever_the_rows_say(
    desired: int, allocated: int, coming: list[Coming], wait: Waiting | None, blocked: str
) -> None:
    said = difference_of(desired, allocated, coming, wait, blocked)
    assert said.adds_up
    assert min(said.joining, said.held_by_pace, said.waiting, said.blocked, said.leaving) >= 0
    assert bool(said.blocked_why) == bool(said.blocked)
    assert (said.joining_since is None) == (said.joining == 0)


def test_each_part_is_named_with_its_age() -> None:
    coming = [Coming(8, NOON), Coming(8, LATER), Coming(8, NOON, "node gpu-1 is not Ready")]
    said = difference_of(64, 8, coming, Waiting(16, NOON, LATER), "")
    assert (said.joining, said.joining_since) == (16, NOON)
    assert (said.blocked, said.blocked_why) == (8, "Node gpu-1 is not Ready.")
    assert (said.waiting, said.waiting_since, said.next_try_at) == (16, NOON, LATER)
    assert said.held_by_pace == 16


def test_what_blocks_a_cluster_blocks_all_that_is_still_to_come_and_nothing_that_comes() -> None:
    said = difference_of(32, 8, [Coming(8, NOON)], Waiting(16, NOON, LATER), "automation is stopped by olu since 12:00 UTC")
    assert (said.joining, said.blocked, said.waiting, said.held_by_pace) == (8, 16, 0, 0)
    assert said.blocked_why == "Automation is stopped by olu since 12:00 UTC."


def test_more_than_was_asked_for_is_said_as_leaving() -> None:
    said = difference_of(8, 64, [], None, "")
    assert (said.leaving, said.missing) == (56, 0)
    assert said.adds_up


def test_a_thousand_reasons_are_three_and_a_number() -> None:
    said = difference_of(8000, 0, [Coming(8, NOON, f"node gpu-{number} is not Ready") for number in range(1000)], None, "")
    assert said.blocked_why == "Node gpu-0 is not Ready; node gpu-1 is not Ready; node gpu-2 is not Ready; and 997 more."
