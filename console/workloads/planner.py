"""Does a checkpoint fit between SIGTERM and the end, and how often should one be made. Pure.

A save that begins when SIGTERM comes must first wait for the step that runs: trainers look at the signal between steps. So what a
reclaim gives is the window less that time (goodfire-ai/spd#677: in 6 of 6 reclaims the flag was read too late to save anything).

How often: Young's interval, √(2 × save × mean time between failures), in which a failure is the loss of any node of the job, and
never longer than that mean, which is Daly's limit where saves are long.

- J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17(9), 1974, 530–531.
- J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer Systems
  22(3), 2006, 303–312.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

GB = 10**9  # sizes are decimal, as storage is sold and measured
TB = 10**12

# Shares of the time left that a save takes. Up to two thirds there is room for a bad day; beyond the whole it is cut off.
FITS, TIGHT = 2 / 3, 1.0

# Preemptions below which a mean says nothing: with three, the true mean is within about a third and five times the measured one.
FEWEST = 3

# And a history that does not hold a whole day knows nothing of the hours in which others want their machines.
SHORTEST = timedelta(days=1)


class Verdict(Enum):
    """Whether a save ends in time."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does not fit"


@dataclass(frozen=True, slots=True)
class Save:
    """One save. `left` is what the window leaves it once the step has ended, `share` how much of that it takes."""

    seconds: float
    step_seconds: float
    window: float

    @property
    def left(self) -> float:
        return max(0.0, self.window - self.step_seconds)

    @property
    def share(self) -> float:
        return self.seconds / self.left if self.left > 0 else math.inf

    @property
    def verdict(self) -> Verdict:
        if self.share <= FITS:
            return Verdict.FITS
        return Verdict.TIGHT if self.share <= TIGHT else Verdict.DOES_NOT_FIT


def save(size_bytes: float, bytes_per_second: float, slower: float, step_seconds: float, window: float) -> Save:
    """A save of a size at a bandwidth, `slower` times as slow as that. All above 0, except the step."""
    return Save(size_bytes * slower / bytes_per_second, step_seconds, window)


@dataclass(frozen=True, slots=True)
class History:
    """Preemptions of a cluster's preemptible nodes, drills left out, and the time these nodes were there in all."""

    preemptions: int
    node_time: timedelta
    looked_back: timedelta

    @property
    def per_node(self) -> timedelta | None:
        """Mean time between preemptions of one node; None where there were too few to say, or too little time was seen."""
        enough = self.preemptions >= FEWEST and self.looked_back >= SHORTEST and self.node_time
        return self.node_time / self.preemptions if enough else None


@dataclass(frozen=True, slots=True)
class Interval:
    """How often to save: the interval, the mean time between losses it was made from, and the share of time lost to both."""

    every: timedelta
    between: timedelta
    lost: float


def interval(save_seconds: float, history: History, nodes: int) -> Interval | None:
    """For a job on so many nodes, each taken on its own; None where the history is too short.

    Nodes that are taken together are one loss to a job, so the true interval is rather longer than shorter.
    """
    per_node = history.per_node
    if per_node is None:
        return None
    between = per_node / max(1, nodes)
    mean = between.total_seconds()
    every = min(math.sqrt(2 * save_seconds * mean), mean)
    lost = save_seconds / every + every / (2 * mean)
    return Interval(timedelta(seconds=every), between, min(1.0, lost))
