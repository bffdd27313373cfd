"""Why allocated is not what was asked for, as a sum that always adds up (DESIGN 2).

    desired = allocated + joining + held by pace + waiting + blocked − leaving

`leaving` is what is there beyond the target for the moment until the plan has started its drains; else it is 0. Pure, and made
from rows only, so that a page never has to run the plan to explain it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Coming:
    """GPUs of a machine that counts toward the target but not as allocated. `why` says what holds one that was Ready before."""

    gpus: int
    since: datetime
    why: str = ""


@dataclass(frozen=True)
class Waiting:
    """What the last plan found nothing free for."""

    gpus: int
    since: datetime
    next_try_at: datetime | None


@dataclass(frozen=True)
class Difference:
    """GPUs. `blocked_why` says everything that blocks as a sentence, the most general first."""

    desired: int
    allocated: int
    joining: int = 0
    joining_since: datetime | None = None  # when the oldest was asked for
    held_by_pace: int = 0
    waiting: int = 0
    waiting_since: datetime | None = None
    next_try_at: datetime | None = None
    blocked: int = 0
    blocked_why: str = ""
    leaving: int = 0

    @property
    def missing(self) -> int:
        return self.joining + self.held_by_pace + self.waiting + self.blocked

    @property
    def adds_up(self) -> bool:
        return self.desired == self.allocated + self.missing - self.leaving


def difference_of(desired: int, allocated: int, coming: Iterable[Coming], wait: Waiting | None, blocked: str) -> Difference:
    """`blocked` says why nothing may be started for this cluster; then everything that is still to be launched is blocked."""
    coming = list(coming)
    joining = [each for each in coming if not each.why]
    stuck = [each for each in coming if each.why]
    on_the_way = sum(each.gpus for each in joining)
    held_up = sum(each.gpus for each in stuck)
    rest = desired - allocated - on_the_way - held_up
    to_launch = max(0, rest)
    reasons = [each.why for each in stuck]
    if blocked and to_launch:
        held_up += to_launch
        reasons.insert(0, blocked)
        to_launch = 0
    waiting = min(to_launch, wait.gpus) if wait else 0
    return Difference(
        desired=desired,
        allocated=allocated,
        joining=on_the_way,
        joining_since=min((each.since for each in joining), default=None),
        held_by_pace=to_launch - waiting,
        waiting=waiting,
        waiting_since=wait.since if wait and waiting else None,
        next_try_at=wait.next_try_at if wait and waiting else None,
        blocked=held_up,
        blocked_why=_sentence(reasons),
        leaving=max(0, -rest),
    )


MOST_REASONS = 3  # said in full; a node each, they may be a thousand


def _sentence(reasons: Iterable[str]) -> str:
    several = list(dict.fromkeys(reasons))
    more = len(several) - MOST_REASONS
    text = "; ".join(several[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")
    return f"{text[0].upper()}{text[1:]}." if text else ""
