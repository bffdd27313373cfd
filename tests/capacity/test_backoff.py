"""Waiting for capacity: rarely asked, and at once when it returns."""

from datetime import UTC, datetime, timedelta

from console.capacity.pools.backoff import Backoff, after_run, delay, returned

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)


def test_the_wait_doubles_from_5_seconds_to_120_with_a_fifth_of_jitter() -> None:
    assert [delay(tries, 0).total_seconds() for tries in range(1, 8)] == [5, 10, 20, 40, 80, 120, 120]
    assert delay(10_000, 1).total_seconds() == 144
    assert delay(1, -1).total_seconds() == 4


def test_an_hour_without_capacity_takes_few_tries_and_says_since_when() -> None:
    """Launches retried at once, hundreds a minute (kubernetes-sigs/karpenter#3198)."""
    backoff, now, tries = Backoff(), NOON, 0
    while now < NOON + timedelta(hours=1):
        if backoff.next_try_at is None or now >= backoff.next_try_at:
            tries += 1
        backoff = after_run(backoff, True, now, 0)
        now += timedelta(seconds=1)  # a run each second, as anything may wake the pool
    assert tries < 40
    assert backoff.since == NOON


def test_it_still_tries_at_the_longest_interval_after_a_night() -> None:
    """All preempted, no capacity for 8 h, nothing retried by the morning (Azure/AKS#5736)."""
    backoff = Backoff(NOON, 400, NOON + timedelta(hours=8))
    after = after_run(backoff, True, NOON + timedelta(hours=8), 0)
    assert after.next_try_at == NOON + timedelta(hours=8, seconds=120)


def test_capacity_that_returns_ends_the_wait_but_capacity_that_was_refused_does_not() -> None:
    waiting = Backoff(NOON, 6, NOON + timedelta(seconds=120))
    assert returned(waiting, 0, 1).next_try_at is None
    assert returned(waiting, 3, 3) == waiting
    assert returned(waiting, 3, 0) == waiting


def test_nothing_waited_for_is_nothing_remembered() -> None:
    assert after_run(Backoff(NOON, 6, NOON), False, NOON, 0) == Backoff()
