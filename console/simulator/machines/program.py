"""What runs in a container: how it takes SIGTERM, with which code it ends, when it saves. Read from annotations. Pure.

The dice are seeded by the pod's uid, so a restarted simulator comes to the same fate.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.simulator.values import Json, instant

PREFIX = "simulator.halftide.io/"
CHECKPOINT = "halftide.io/last-checkpoint"
KILLED = 137


@dataclass(frozen=True)
class Program:
    """The behaviour of one pod's process."""

    exit_seconds: float  # from SIGTERM to its end
    exit_code: int
    ignores_sigterm: bool
    saves_every: float | None  # seconds between checkpoints
    runs_for: float | None  # seconds until it ends by itself


def _between(text: str, dice: random.Random) -> float:
    low, _, high = text.partition("-")
    return dice.uniform(float(low), float(high or low))


def program(pod: Json) -> Program:
    """The program of a pod. Without annotations: ends on SIGTERM within a second or two with 143, like most servers."""
    notes = pod["metadata"].get("annotations") or {}

    def said(name: str, default: str = "") -> str:
        return str(notes.get(PREFIX + name, default))

    dice = random.Random(pod["metadata"]["uid"])
    try:
        exits = _between(said("exit-seconds", "1-2"), dice)
        every = _between(said("checkpoint-seconds"), dice) if said("checkpoint-seconds") else None
        runs = _between(said("run-seconds"), dice) if said("run-seconds") else None
        return Program(exits, int(said("exit-code", "143")), said("ignore-sigterm") == "true", every, runs)
    except ValueError:
        return Program(1.0, 143, False, None, None)


@dataclass(frozen=True)
class End:
    """How and when a process ends."""

    at: datetime
    code: int
    killed: bool


def end_of(pod: Json, what: Program, told: datetime) -> End:
    """The end of a pod that was told to stop at `told`: by itself, or killed at its deadline."""
    deadline = instant(pod["metadata"]["deletionTimestamp"]) or told
    own = told + timedelta(seconds=what.exit_seconds)
    if what.ignores_sigterm or own > deadline:
        return End(deadline, KILLED, True)
    return End(own, what.exit_code, False)
