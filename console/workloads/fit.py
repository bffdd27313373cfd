"""Does a workload fit where it runs: what a reclaim would cost it that its people may not know. Pure, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from console.workloads.facts import PREEMPTIBLE, SERVES, STANDARD, Owner, PodFacts, ended_by
from console.workloads.words import count, length

# Work that saves does so within this; a job that has run longer on preemptible nodes without a word is likely to lose it all.
UNSAVED = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence. `code` is for programs, `warns` marks what somebody should change."""

    code: str
    sentence: str
    warns: bool = True


def fit(owner: Owner, window: int, now: datetime) -> tuple[Finding, ...]:
    """What to know of a workload, the costliest first. `window` is the time a reclaim gives, in seconds."""
    found = (
        _unsaved(owner, now),
        _one_basket(owner),
        _cut_short(owner, window),
        _bare(owner),
        _never_asked(owner),
        _misaimed(owner),
        _failed(owner),
        _excused(owner),
    )
    return tuple(finding for finding in found if finding is not None)


def _there(owner: Owner) -> list[PodFacts]:
    return [pod for pod in owner.active if pod.compute_class == PREEMPTIBLE]


def _unsaved(owner: Owner, now: datetime) -> Finding | None:
    """Only of work with an end: what serves has nothing to save. Only on preemptible nodes: the others stay."""
    since = min((pod.started_at for pod in _there(owner) if pod.started_at), default=None)
    if owner.kind in SERVES or since is None:
        return None
    saved = owner.last_checkpoint
    if saved is None and now - since >= UNSAVED:
        return Finding("no_checkpoint", f"runs {length(now - since)}, no checkpoint seen")
    if saved is not None and now - saved >= 2 * UNSAVED:
        return Finding("old_checkpoint", f"last checkpoint {length(now - saved)} ago")
    return None


def _one_basket(owner: Owner) -> Finding | None:
    here = len(_there(owner))
    if owner.kind not in SERVES or not here or owner.on(STANDARD):
        return None
    if here == 1:
        return Finding("none_on_standard", "its only replica is on a preemptible node")
    return Finding("none_on_standard", f"all {here} replicas on preemptible nodes, none on standard")


def _cut_short(owner: Owner, window: int) -> Finding | None:
    """Of every pod that is or may come there."""
    exposed = [
        pod for pod in owner.active if pod.compute_class == PREEMPTIBLE or (pod.waits and pod.wish not in ("refused", "misaimed"))
    ]
    asked = max((pod.grace_seconds for pod in exposed), default=0)
    return Finding("grace_cut", f"asks for {asked:,} s, will get {window:,}") if asked > window else None


def _bare(owner: Owner) -> Finding | None:
    return Finding("bare", "a bare pod: nothing starts it again after a reclaim") if owner.bare and _there(owner) else None


def _never_asked(owner: Owner) -> Finding | None:
    stray = sum(pod.wish == "" for pod in _there(owner))
    if not stray:
        return None
    who = "" if stray == len(owner.active) else f"{count(stray, 'pod')} of {len(owner.active)}: "
    return Finding("not_asked", f"{who}not asked for preemptible, but is there")


def _misaimed(owner: Owner) -> Finding | None:
    """Standard nodes carry no class label, so a nodeSelector for one finds nothing, ever."""
    if not any(pod.wish == "misaimed" for pod in owner.active):
        return None
    return Finding("misaimed", "its nodeSelector names a class that no node carries: standard nodes have no label")


def _failed(owner: Owner) -> Finding | None:
    """Pods that ended badly by their own doing, while others go on."""
    own = [pod for pod in owner.pods if pod.failed and not pod.excused]
    if not own or not owner.active:
        return None
    code = f", exit {own[-1].exit_code}" if own[-1].exit_code is not None else ""
    return Finding("failed_pods", f"{count(len(own), 'pod')} failed before{code}")


def _excused(owner: Owner) -> Finding | None:
    """What a preemption leaves as Failed is nobody's fault, and is said so (flyteorg/flyteplugins PR#354)."""
    left = [pod for pod in owner.pods if pod.excused]
    if not left:
        return None
    are, own = ("is", "its") if len(left) == 1 else ("are", "their")
    sentence = f"{count(len(left), 'pod')} {are} left as Failed by {ended_by(left)}, not by {own} own fault"
    return Finding("preempted_leftovers", sentence, warns=False)
