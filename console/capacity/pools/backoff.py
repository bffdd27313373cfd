"""How long to wait when nothing is free: 5 s, doubling to 120 s, ±20 %, and at once when capacity comes back. Pure (DESIGN 6).

One for a pool, not one for a machine, so that a pool that is full is asked rarely however much is wanted of it
(kubernetes-sigs/karpenter#3198).
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

FIRST = 5.0  # seconds
LONGEST = 120.0  # seconds
JITTER = 0.2


@dataclass(frozen=True)
class Backoff:
    """All empty while nothing is waited for. `tries` without an answer that helped."""

    since: datetime | None = None
    tries: int = 0
    next_try_at: datetime | None = None


def delay(tries: int, dice: float) -> timedelta:
    """Before the next try after `tries` in vain; `dice` between -1 and 1."""
    return timedelta(seconds=min(FIRST * 2 ** min(tries - 1, 10), LONGEST) * (1 + JITTER * dice))


def returned(before: Backoff, free_before: int, free_now: int) -> Backoff:
    """More is free than when we looked last: try at once. Not so where as much is free and was refused."""
    return replace(before, tries=0, next_try_at=None) if free_now > free_before else before


def after_run(before: Backoff, in_vain: bool, now: datetime, dice: float) -> Backoff:
    """After a run that had to leave something waiting, or that was refused (`in_vain`), or neither."""
    if not in_vain:
        return Backoff()
    if before.next_try_at is not None and now < before.next_try_at:
        return before
    tries = before.tries + 1
    return Backoff(before.since or now, tries, now + delay(tries, dice))
