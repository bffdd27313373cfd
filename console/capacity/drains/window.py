"""The times of a drain: when its machine goes, how long a pod has until then, and how long a drain waits in between."""

from datetime import datetime, timedelta

from console.capacity.drains.views import DrainView, Failed
from console.capacity.models import Drain

MAX_GRACE = 300  # seconds a pod can have at most, whatever it asks for
MARGIN = 2  # seconds between a pod's last moment and the machine's, for the kubelet to report the end
LATE = 4  # seconds beyond its deadline that a machine with a whole window stays, so that 300 s of grace are 300 s (decision 0016)
LOOK = timedelta(seconds=5)  # how often pods are looked at when the watch says nothing, and a budget is asked again
NOW = timedelta(0)
REST = 10.0  # seconds that are waited at most because the API asks for it: pods are losing theirs
UNCLOSED = timedelta(seconds=10)  # that a preemption waits for its node to close before its pods are told (decision 0018)
SOON = timedelta(seconds=1)  # after a failure, for the provider's word, and for a pod that was just being bound


def ends_at(drain: DrainView | Drain) -> datetime:
    """When a machine goes whatever is left on it: at its deadline, a moment later where that is a whole window after the notice.

    So a pod that asks for 300 s and is told within 2 s has all of them. A shorter window is a cloud's or a person's, and hard.
    """
    whole = drain.deadline - drain.started_at >= timedelta(seconds=MAX_GRACE)
    return drain.deadline + timedelta(seconds=LATE) if whole else drain.deadline


def grace_for(asked: int, end: datetime, now: datetime) -> int:
    """Seconds a pod gets: its own wish, 300 at most, never past the machine's end, and never 0, which would forget it unasked."""
    left = int((end - now).total_seconds()) - MARGIN
    return max(1, min(asked, MAX_GRACE, left))


def most_grace(window: int) -> int:
    """Seconds that a pod has at most in a window of so many seconds, told the moment it begins."""
    late = LATE if window >= MAX_GRACE else 0
    return max(1, min(MAX_GRACE, window + late - MARGIN))


def rest_of(failure: Failed) -> timedelta:
    """How long to wait after a failure: as long as the API asks, and no longer than REST (kubernetes/client-go#222)."""
    return max(SOON, timedelta(seconds=min(failure.wait, REST)))


def rested(drain: DrainView, rest: timedelta, now: datetime) -> datetime:
    """When a rest is over: in time for the drain's end."""
    end = ends_at(drain)
    return min(now + rest, end) if now < end else now + rest
