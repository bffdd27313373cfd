"""When a burst is over and its one message goes out. Pure; lengths in seconds.

Nothing is sent at the first entry: others of the same cause come within seconds. A burst ends when it has been quiet for a
while, or when it has gone on for long enough that a person must hear of it. Whatever goes on and on is told more and more seldom,
at most each three minutes, so that a flood of entries is no flood of messages.
"""

from datetime import datetime, timedelta

QUIET = 10  # without another entry, a first burst is over
MOST = 60  # after its first entry, a first burst is told in any case
SELDOM = 180  # however long it goes on: two minutes before a preemption's deadline
LAST_STEP = 5  # 10 s doubled five times is beyond SELDOM


def closes_at(opened: datetime, latest: datetime, step: int) -> datetime:
    """When the message goes out, if no other entry comes. `step`: how many messages just before were of the same flood."""
    quiet, most = (timedelta(seconds=min(length << step, SELDOM)) for length in (QUIET, MOST))
    return min(latest + quiet, opened + most)


def step_after(opened: datetime, told: datetime | None, step: int) -> int:
    """The step of a burst that opens now, after one of `step` was told at `told`: the next while it goes on, else the first."""
    if told is None or opened - told > timedelta(seconds=min(MOST << step, SELDOM)):
        return 0
    return min(step + 1, LAST_STEP)
