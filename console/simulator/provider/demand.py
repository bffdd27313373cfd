"""Other tenants' standard demand: quiet, then for a while a machine or two more than is free. Pure, from a seed.

It is what makes preemption happen by itself in a demo: the first surge comes 60–90 s after the start, then one every few
minutes. A surge is measured against what we hold when it begins, so that it always bites, and never asks back more
machines than we hold as preemptible ones.
"""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """How one pool's demand goes. Seconds."""

    base: int
    first: tuple[float, float] = (62.0, 85.0)
    every: tuple[float, float] = (200.0, 290.0)
    lasts: tuple[float, float] = (70.0, 110.0)
    machines: tuple[int, int] = (1, 2)


@dataclass(frozen=True)
class Surge:
    """One rise: from, to (seconds since the start), and how many machines we shall give back."""

    begins: float
    ends: float
    machines: int


def surge_at(curve: Curve, seed: str, elapsed: float) -> Surge | None:
    """The surge that is on at `elapsed` seconds after the start, if one is."""
    dice = random.Random(seed)
    begins = dice.uniform(*curve.first)
    while begins <= elapsed:
        ends = begins + dice.uniform(*curve.lasts)
        machines = dice.randint(*curve.machines)
        if elapsed < ends:
            return Surge(begins, ends, machines)
        begins += dice.uniform(*curve.every)
    return None


def wanted(curve: Curve, surge: Surge | None, *, total: int, ours: int, preemptible: int) -> int:
    """What the others want when a surge begins (or none is on), given what we hold at that moment."""
    if surge is None:
        return curve.base
    bite = min(surge.machines, preemptible)
    return max(curve.base, total - ours + bite) if bite else curve.base
