"""What runs in a container: how it takes SIGTERM, with which code it ends, when it saves. Read from annotations. Pure.

The dice are seeded by the pod's uid, so a restarted simulator comes to the same fate.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.simulator.values import Json, instant

PREFIX = "simulator.halftide.io/"
CHECKPOINT = "halftide.io/last-checkpoint"
KILLED = 137


@dataclass(frozen=True)
class Stop:
    """How the process of one container takes SIGTERM."""

    seconds: float  # until its end
    code: int
    ignored: bool


@dataclass(frozen=True)
class Program:
    """The behaviour of one pod."""

    stops: Mapping[str, Stop]  # by container
    saves_every: float | None  # seconds between checkpoints
    runs_for: float | None  # seconds until it ends by itself
    pulls_for: float  # seconds for which its image is on the way


def _between(text: str, dice: random.Random) -> float:
    low, _, high = text.partition("-")
    return dice.uniform(float(low), float(high or low))


def program(pod: Json) -> Program:
    """The program of a pod. Without annotations: ends on SIGTERM within a second or two with 143, like most servers.

    What a container does in another way than its pod stands behind its name: `simulator.halftide.io/side.exit-code`.
    """
    notes = pod["metadata"].get("annotations") or {}
    dice = random.Random(pod["metadata"]["uid"])

    def said(name: str, default: str = "", container: str = "") -> str:
        return str(notes.get(f"{PREFIX}{container}.{name}", notes.get(PREFIX + name, default)))

    def stop(container: str) -> Stop:
        seconds = _between(said("exit-seconds", "1-2", container), dice)
        return Stop(seconds, int(said("exit-code", "143", container)), said("ignore-sigterm", "", container) == "true")

    names = [container["name"] for container in pod["spec"]["containers"]]
    try:
        stops = {name: stop(name) for name in names}
        every = _between(said("checkpoint-seconds"), dice) if said("checkpoint-seconds") else None
        runs = _between(said("run-seconds"), dice) if said("run-seconds") else None
        return Program(stops, every, runs, _between(said("pull-seconds", "0"), dice))
    except ValueError:
        return Program(dict.fromkeys(names, Stop(1.0, 143, False)), None, None, 0.0)


@dataclass(frozen=True)
class End:
    """How and when the processes of a pod end: `at` the last one, each with its code."""

    at: datetime
    codes: Mapping[str, int]
    killed: bool


def end_of(pod: Json, what: Program, told: datetime) -> End:
    """The end of a pod that was told to stop at `told`: each container by itself, or killed at the pod's deadline."""
    deadline = instant(pod["metadata"]["deletionTimestamp"]) or told
    ends = {name: told + timedelta(seconds=stop.seconds) for name, stop in what.stops.items()}
    killed = {name for name, stop in what.stops.items() if stop.ignored or ends[name] > deadline}
    codes = {name: KILLED if name in killed else stop.code for name, stop in what.stops.items()}
    return End(deadline if killed else max(ends.values()), codes, bool(killed))
