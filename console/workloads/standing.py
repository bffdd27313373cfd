"""Where a workload stands now, in one word and one sentence, and how soon it needs a person. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from console.workloads.facts import Owner, PodFacts, ended_by
from console.workloads.fit import Finding
from console.workloads.reasons import plain_reason
from console.workloads.words import count

State = Literal["failing", "waiting", "leaving", "failed", "lost", "starting", "running", "ended", "gone"]


@dataclass(frozen=True, slots=True)
class Now:
    """`state` is for programs, `word` for the badge; `original` are Kubernetes' own words, for the tooltip."""

    state: State
    word: str
    sentence: str
    look: str = ""
    icon: str = "i-check"
    original: str = ""
    since: datetime | None = None


# How soon a person is needed, by state; lower is sooner. Between: running workloads with a warning.
RANKS = {"failing": 0, "waiting": 1, "leaving": 2, "failed": 3, "lost": 3, "starting": 5, "running": 5, "ended": 6, "gone": 7}
WARNED = 4


def stand(owner: Owner) -> Now:
    """The most urgent truth first: who cannot start, who waits, who goes, then who runs."""
    if not owner.pods:
        return _gone(owner)
    active = owner.active
    if not active:
        return _ended(owner)
    stuck = [pod for pod in active if pod.stuck]
    waiting = [pod for pod in active if pod.waits]
    leaving = [pod for pod in active if pod.deleting_since]
    if stuck:
        return _stuck(stuck, len(active))
    if waiting:
        return _waiting(waiting, len(active))
    if leaving:
        since = min(pod.deleting_since for pod in leaving if pod.deleting_since)
        verb = "was" if len(leaving) == 1 else "were"
        return Now("leaving", "Leaving", f"{_of(leaving, len(active))} {verb} told to stop", "amber", "i-leave", since=since)
    starting = [pod for pod in active if pod.phase == "Pending"]
    if starting:
        verb = "starts" if len(starting) == 1 else "start"
        return Now("starting", "Starting", f"{_of(starting, len(active))} {verb}", "", "i-dots")
    return Now("running", "Running", count(len(active), "pod"), "tide", "i-check", since=owner.runs_since)


def rank(now: Now, findings: tuple[Finding, ...]) -> int:
    """0 is soonest. What runs with a warning comes before what runs well."""
    found = RANKS[now.state]
    return WARNED if found == RANKS["running"] and any(finding.warns for finding in findings) else found


def troubled(rank: int) -> bool:
    """Whether it belongs to what the trouble filter shows."""
    return rank <= WARNED


def _of(pods: list[PodFacts], active: int) -> str:
    return count(active, "pod") if len(pods) == active else f"{len(pods)} of {count(active, 'pod')}"


def _stuck(stuck: list[PodFacts], active: int) -> Now:
    pod = stuck[0]
    verb = "does" if len(stuck) == 1 else "do"
    sentence = f"{_of(stuck, active)} {verb} not run: {plain_reason(pod.why, pod.gpus, pod.wish)}"
    return Now("failing", "Failing", sentence, "red", "i-x", pod.why)


def _waiting(waiting: list[PodFacts], active: int) -> Now:
    said = next((pod for pod in waiting if pod.why), None)
    since = min((pod.waits_since for pod in waiting if pod.waits_since), default=None)
    verb = "waits" if len(waiting) == 1 else "wait"
    why = plain_reason(said.why, said.gpus, said.wish) if said else "the scheduler has not looked at it yet"
    original = said.why if said else ""
    return Now("waiting", "Waiting", f"{_of(waiting, active)} {verb}: {why}", "amber", "i-clock", original, since)


def _ended(owner: Owner) -> Now:
    """A preemption is said to be one: it is not the user's failure (flyteorg/flyteplugins PR#354)."""
    failed = [pod for pod in owner.pods if pod.failed and not pod.excused]
    excused = [pod for pod in owner.pods if pod.excused]
    if failed:
        code = f", exit {failed[-1].exit_code}" if failed[-1].exit_code is not None else ""
        return Now("failed", "Failed", f"{count(len(failed), 'pod')} failed{code}; none runs", "red", "i-x")
    if excused:
        after = "Nothing starts it again" if owner.bare else "None has come back yet"
        word = "Preempted" if any(pod.preempted for pod in excused) else "Evicted"
        sentence = f"Ended by {ended_by(excused)}, not by itself. {after}"
        return Now("lost", word, sentence, "amber", "i-leave", excused[0].disrupted)
    return Now("ended", "Ended", f"{count(len(owner.pods), 'pod')} finished well", "", "i-check")


def _gone(owner: Owner) -> Now:
    if owner.drained is not None and owner.drained.preempted:
        after = "Nothing starts it again" if owner.bare else "No pod of it has come back"
        return Now("lost", "Preempted", f"Taken with its node. {after}", "amber", "i-leave", since=owner.gone_at)
    return Now("gone", "Gone", "No pod of it is in the cluster", "", "i-about", since=owner.gone_at)
