"""What became of one pod of a drain: the facts, how they combine, and the verdict they add up to.

Facts come from three sides in any order and more than once: from the drain itself, from the watch (`ends`), and from the drain
after a crash. So combining them is one pure function that gives the same answer whichever came first: an end that was seen
beats one that was not, and nothing that ended begins again.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from console.capacity.models import PodVerdict

Verdict = PodVerdict.Verdict

DOOMED = (Verdict.KILLED, Verdict.NEVER_STOPPED)
ROUNDING = timedelta(seconds=2)  # Kubernetes writes ends and deletions in whole seconds, each cut off
SIGKILLED = 137  # 128 + SIGKILL: what a container runtime reports of a process that had to be killed


@dataclass(frozen=True, slots=True)
class Fate:
    """One pod of a drain, as its PodVerdict row holds it. Graces are in seconds."""

    uid: str
    namespace: str
    name: str
    owner_kind: str = ""
    owner_name: str = ""
    asked_grace: int = 30
    given_grace: int = 0
    told_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    budget: str = ""
    verdict: str = Verdict.STOPPING
    last_checkpoint: datetime | None = None

    @property
    def open(self) -> bool:
        return self.ended_at is None

    @property
    def owner(self) -> tuple[str, str, str]:
        """Pods with one owner belong together: they are told together."""
        return (self.namespace, self.owner_kind, self.owner_name or self.name)


def told(fate: Fate, at: datetime, grace: int, verdict: str = Verdict.STOPPING) -> Fate:
    """Its SIGTERM was sent at `at` with `grace` seconds. The first telling is the one that counts."""
    if fate.told_at is not None:
        return fate
    budget = fate.budget if verdict == Verdict.BUDGET_OVERRIDDEN else ""
    return replace(fate, told_at=at, given_grace=grace, verdict=verdict, budget=budget)


def seen_told(fate: Fate, at: datetime, grace: int, preempted: bool) -> Fate:
    """As `told`, by Kubernetes' word: a run died before it could write what it had sent, or somebody else told it.

    Where its budget had refused and its machine goes anyway, that is what it was told by.
    """
    overridden = fate.verdict == Verdict.BLOCKED and preempted
    return told(fate, at, grace, Verdict.BUDGET_OVERRIDDEN if overridden else Verdict.STOPPING)


def blocked(fate: Fate, budget: str) -> Fate:
    return replace(fate, verdict=Verdict.BLOCKED, budget=budget)


def ended(fate: Fate, at: datetime, exit_code: int | None) -> Fate:
    """Its terminated state was seen. A budget that was overridden stays the verdict: it says what the end was owed to."""
    at = max(at, fate.told_at) if fate.told_at is not None else at  # cut off to the second, it may come out before the telling
    seen = replace(fate, ended_at=at, exit_code=exit_code)
    if fate.verdict == Verdict.BUDGET_OVERRIDDEN:
        return seen
    used_up = fate.told_at is not None and at - fate.told_at >= timedelta(seconds=fate.given_grace) - ROUNDING
    return replace(seen, verdict=Verdict.KILLED if exit_code == SIGKILLED and used_up else Verdict.FINISHED)


def vanished(fate: Fate, at: datetime) -> Fate:
    """It is gone and nobody saw its end."""
    return _closed(fate, at, Verdict.UNKNOWN)


def doomed(fate: Fate, answering: bool) -> Fate:
    """Still there at the deadline: its machine is taken away under it. `answering`: the node was there to kill it."""
    if not fate.open or fate.verdict == Verdict.BUDGET_OVERRIDDEN:
        return fate
    return replace(fate, verdict=Verdict.KILLED if answering else Verdict.NEVER_STOPPED)


def cut_off(fate: Fate, at: datetime) -> Fate:
    """Its machine is gone for certain, and so is it."""
    return _closed(fate, at, fate.verdict if fate.verdict in DOOMED else Verdict.NEVER_STOPPED)


def _closed(fate: Fate, at: datetime, verdict: str) -> Fate:
    if not fate.open:
        return fate
    return replace(fate, ended_at=at, verdict=fate.verdict if fate.verdict == Verdict.BUDGET_OVERRIDDEN else verdict)


def merge(stored: Fate, found: Fate) -> Fate:
    """What the row says and what a run found, which had read an older row: keep the first telling and the seen end."""
    first = stored if stored.told_at is not None else found
    base = replace(first, ended_at=None, exit_code=None, budget=stored.budget or found.budget, verdict=_open(stored, found))
    ends = [one for one in (stored, found) if not one.open]
    end = next((one for one in ends if one.exit_code is not None), next(iter(ends), None))
    if end is None or end.ended_at is None:
        return base
    if end.exit_code is not None:
        return ended(base, end.ended_at, end.exit_code)
    return _closed(base, end.ended_at, end.verdict)


def _open(stored: Fate, found: Fate) -> str:
    """The verdict of a pod that has not ended, from two looks at it: the one that says more."""
    said = (stored.verdict, found.verdict)
    for strong in (Verdict.BUDGET_OVERRIDDEN, *DOOMED):
        if strong in said:
            return strong
    told_by_one = stored.told_at is not None or found.told_at is not None
    return Verdict.STOPPING if told_by_one else found.verdict


def summary(fates: Iterable[Fate]) -> str:
    """A line like `5 pods: 3 stopped, 2 stopping`."""
    counts = Counter(_group(fate) for fate in fates)
    pods = counts.total()
    if not pods:
        return "no pods"
    parts = ", ".join(f"{counts[word]} {word}" for word in _WORDS if counts[word])
    return f"{pods} {'pod' if pods == 1 else 'pods'}: {parts}"


_WORDS = ("stopped", "stopping", "held", "killed", "never stopped", "unknown")
_GROUPS = {
    Verdict.FINISHED: "stopped",
    Verdict.BUDGET_OVERRIDDEN: "stopped",
    Verdict.KILLED: "killed",
    Verdict.NEVER_STOPPED: "never stopped",
    Verdict.UNKNOWN: "unknown",
    Verdict.BLOCKED: "held",
}


def _group(fate: Fate) -> str:
    if fate.open:
        return "held" if fate.verdict == Verdict.BLOCKED else "stopping"
    return _GROUPS.get(Verdict(fate.verdict), "unknown")
