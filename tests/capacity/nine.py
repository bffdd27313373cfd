"""Nine pods and what becomes of each when their machine is taken back: one table, for the pure step and for a real Kubernetes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from console.capacity.models import PodVerdict
from tests.capacity.drain_world import START, Pod

Verdict = PodVerdict.Verdict

WINDOW = 15  # seconds that the drain has
TOLD_BEFORE = timedelta(seconds=1)  # the pod that is going already was told this long before the drain began


@dataclass(frozen=True)
class Case:
    """A pod as the drain's worlds run it, and its fate; `verdict` None: it stays, or is left, and is not counted."""

    pod: Pod
    verdict: str | None
    code: int | None = None


def nine() -> Mapping[str, Case]:
    """By the pod's name. `deaf` and `notebook` have to be killed: one at the end of its own grace, one of what is left."""
    cases = (
        Case(Pod("saver", grace=8, stops_after=1.5, code=0, lingers=10), Verdict.FINISHED, 0),
        Case(Pod("failing", grace=8, stops_after=2, code=3, lingers=10), Verdict.FINISHED, 3),
        Case(Pod("deaf", grace=4, stops_after=None, lingers=10), Verdict.KILLED, 137),
        Case(Pod("notebook", grace=3600, stops_after=None, lingers=10), Verdict.KILLED, 137),
        Case(Pod("served", grace=8, stops_after=3, code=143, budget="web", lingers=10), Verdict.BUDGET_OVERRIDDEN, 143),
        Case(Pod("agent", stays=True), None),
        Case(Pod("static", stays=True), None),
        Case(Pod("going", grace=9, stops_after=4, code=0, lingers=10, told_at=START - TOLD_BEFORE, given=9), Verdict.FINISHED, 0),
        Case(Pod("unseen", grace=9, stops_after=7, vanishes=True), Verdict.UNKNOWN, None),
    )
    return {case.pod.name: case for case in cases}


def evictable() -> set[str]:
    """Those who get a verdict."""
    return {name for name, case in nine().items() if case.verdict is not None}
