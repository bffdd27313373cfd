"""The next step of a drain, decided by a pure function from what is stored, what Kubernetes shows, and the time.

    asked → cordoned → announced → terminating → drained | timed out → removed          (or stopped, when not preempted)

`step` looks and decides; `learn` folds in what the requests answered. Between them anything may die: everything a step asks for
can be asked for again, and is decided from what Kubernetes shows now, never from what a run remembers (DESIGN 6).
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from console.capacity.drains import verdicts
from console.capacity.drains.verdicts import Fate
from console.capacity.drains.views import (
    Action,
    Announce,
    Cordon,
    Delete,
    DrainView,
    Evict,
    Failed,
    NodeView,
    Outcome,
    PodView,
    RemoveNode,
    Seen,
    Step,
    Terminate,
    Unmark,
)
from console.capacity.drains.window import LOOK, NOW, SOON, UNCLOSED, ends_at, grace_for, rest_of, rested
from console.capacity.models import Drain, PodVerdict
from console.kube.shapes import Blocked, Evicted

State, Cause, Verdict = Drain.State, Drain.Cause, PodVerdict.Verdict


def step(drain: DrainView, seen: Seen | None, now: datetime) -> Step:
    """Decide. `seen` is None where Kubernetes could not be read completely: then nothing is concluded from it."""
    if drain.state == State.STOPPED:
        return _take_marks_off(drain, seen, now)
    if drain.state == State.REMOVED:
        return Step(replace(drain, due_at=None))
    if drain.terminated_at is not None:
        return _clear_away(drain, seen, now)
    if drain.state in {State.DRAINED, State.TIMED_OUT}:
        return Step(replace(drain, due_at=now + SOON), (Terminate(),))
    if seen is None:
        return _unseen(drain, now)
    if _taken_back(drain, seen.node):
        return Step(replace(drain, state=State.STOPPED, due_at=now, note="taken back by a person"))
    drain = _observe(drain, seen, now)
    left = _left(drain, seen)
    if not left:
        return _empty(drain, seen.node, now)
    if now >= ends_at(drain):
        return _too_late(drain, seen.node, left, now)
    return _tell(drain, seen.node, left, now)


def learn(drain: DrainView, answers: Iterable[tuple[Action, Outcome, datetime]], now: datetime) -> DrainView:
    """Fold in what the requests of a step answered, each with the instant at which it was sent."""
    fates = {fate.uid: fate for fate in drain.fates}
    moments: dict[str, datetime] = {}
    waits: list[timedelta] = []
    failures: list[Failed] = []
    for action, outcome, at in answers:
        match action, outcome:
            case _, Failed():
                failures.append(outcome)
                waits.append(rest_of(outcome))
            case Cordon(), True:
                moments.setdefault("cordoned_at", drain.cordoned_at or at)
                waits.append(NOW)
            case Announce(), True:
                moments["announced_at"] = at
            case Evict(fate, grace), Evicted():
                fates[fate.uid] = verdicts.told(fates[fate.uid], at, grace)
            case Evict(fate, _), Blocked(budgets, _):
                fates[fate.uid] = verdicts.blocked(fates[fate.uid], (", ".join(budgets) or "a disruption budget")[:253])
                waits.append(NOW if drain.cause == Cause.PREEMPTED else LOOK)
            case Delete(fate, grace), True if grace:
                fates[fate.uid] = verdicts.told(fates[fate.uid], at, grace, Verdict.BUDGET_OVERRIDDEN)
            case Terminate(), True:
                moments["terminated_at"] = at
                waits.append(NOW)
            case RemoveNode() | Delete() | Unmark(), True:
                waits.append(NOW)
            case _:
                waits.append(SOON)  # it is not what we took it for (gone, another uid, not yet confirmed): look again
    due = _due(drain, waits, now, resting=any(failure.wait for failure in failures))
    note = failures[0].sentence[:300] if failures else _held(drain, fates.values()) or drain.note
    return _advanced(replace(drain, due_at=due, note=note, fates=tuple(fates.values()), **moments), now)  # type: ignore[arg-type]


def _due(drain: DrainView, waits: list[timedelta], now: datetime, *, resting: bool) -> datetime | None:
    """When to go on. `resting`: the API wants to be left alone, and looking again by ourselves has time until then."""
    times = [now + wait for wait in waits]
    if drain.due_at is not None and (not resting or drain.due_at <= now):
        times.append(drain.due_at)
    due = min(times, default=None)
    return rested(drain, due - now, now) if resting and due is not None else due


def _held(drain: DrainView, fates: Iterable[Fate]) -> str:
    """What a drain that is no preemption waits for, by name."""
    budgets = sorted({fate.budget for fate in fates if fate.verdict == Verdict.BLOCKED and fate.open})
    holds = bool(budgets) and drain.cause != Cause.PREEMPTED and drain.state != State.STOPPED
    return f"held by budget {', '.join(budgets)}"[:300] if holds else ""


def _advanced(drain: DrainView, now: datetime) -> DrainView:
    """The state and moments that the facts add up to, while pods are being told."""
    if drain.state not in {State.ASKED, State.CORDONED, State.ANNOUNCED, State.TERMINATING}:
        return drain
    if drain.cordoned_at is None:
        return drain
    told = [fate.told_at is not None for fate in drain.fates]
    state = State.CORDONED if drain.announced_at is None else State.ANNOUNCED
    done = drain.told_at or (now if told and all(told) else None)
    return replace(drain, state=State.TERMINATING if any(told) else state, told_at=done)


def _taken_back(drain: DrainView, node: NodeView | None) -> bool:
    """A person's uncordon ends a drain that is for our convenience. A preempted machine goes anyway."""
    opened = node is not None and drain.cordoned_at is not None and not node.unschedulable
    return opened and drain.cause != Cause.PREEMPTED


def _observe(drain: DrainView, seen: Seen, now: datetime) -> DrainView:
    """The pods as they are now: new ones, terminating ones, ended ones, and those that are no longer there."""
    pods = {pod.uid: pod for pod in seen.pods}
    fates = {fate.uid: _observed(fate, pods.get(fate.uid), drain.cause, now) for fate in drain.fates}
    fates |= {pod.uid: _observed(_new(pod), pod, drain.cause, now) for pod in _unknown(drain, seen)}
    staying = sum(pod.stays for pod in seen.pods) if seen.node is not None else drain.staying
    return _advanced(replace(drain, fates=tuple(fates.values()), staying=staying, note=""), now)


def _unknown(drain: DrainView, seen: Seen) -> list[PodView]:
    """Evictable pods that this drain has not met. On another node of the same name nothing is ours but what we know by uid."""
    known = {fate.uid for fate in drain.fates}
    there = seen.pods if seen.node is not None else ()
    return [pod for pod in there if pod.uid not in known and not pod.stays and not pod.finished]


def _new(pod: PodView) -> Fate:
    return Fate(
        pod.uid,
        pod.namespace,
        pod.name,
        pod.owner_kind,
        pod.owner_name,
        asked_grace=pod.grace_seconds,
        last_checkpoint=pod.last_checkpoint,
    )


def _observed(fate: Fate, pod: PodView | None, cause: str, now: datetime) -> Fate:
    if not fate.open:
        return fate
    if pod is None:
        return verdicts.vanished(fate, now)
    if pod.deletion_at is not None and fate.told_at is None:
        grace = pod.deletion_grace if pod.deletion_grace is not None else pod.grace_seconds
        at = min(now, pod.deletion_at - timedelta(seconds=grace))
        fate = verdicts.seen_told(fate, at, grace, cause == Cause.PREEMPTED)
    if pod.finished and pod.exit_code is not None:
        return verdicts.ended(fate, pod.ended_at or now, pod.exit_code)
    if pod.finished:  # called Failed by somebody else, as of a node that is gone or shut down: nobody saw how it ended
        return verdicts.vanished(fate, pod.ended_at or now)
    return replace(fate, last_checkpoint=pod.last_checkpoint or fate.last_checkpoint)


def _left(drain: DrainView, seen: Seen) -> list[tuple[Fate, PodView]]:
    """The evictable pods that are still there."""
    known = {fate.uid: fate for fate in drain.fates}
    return [(known[pod.uid], pod) for pod in seen.pods if pod.uid in known and not pod.finished]


def _empty(drain: DrainView, node: NodeView | None, now: datetime) -> Step:
    """No evictable pod: drained, once the node is closed and nothing can be on its way to it any more."""
    goes_anyway = drain.cause == Cause.PREEMPTED and now >= ends_at(drain)
    closed = drain.cordoned_at is not None and (drain.fates or now >= drain.cordoned_at + SOON)
    if node is not None and not closed and not goes_anyway:
        return Step(replace(drain, due_at=now + SOON), _closing(drain, node))
    return Step(replace(drain, state=State.DRAINED, emptied_at=now, due_at=now), _announcing(drain, node))


def _closing(drain: DrainView, node: NodeView) -> tuple[Action, ...]:
    """Cordon and Event, as far as they are missing (or out of date: an earlier deadline, a person's uncordon)."""
    actions: tuple[Action, ...] = ()
    if not node.unschedulable or (node.cause, node.deadline) != (drain.cause, drain.deadline):
        actions = (Cordon(mark=node.ours or not node.unschedulable),)
    elif drain.cordoned_at is None:
        actions = (Cordon(mark=node.ours),)
    return (*actions, *_announcing(drain, node))


def _announcing(drain: DrainView, node: NodeView | None) -> tuple[Action, ...]:
    return (Announce(),) if node is not None and drain.announced_at is None else ()


def _tell(drain: DrainView, node: NodeView | None, left: list[tuple[Fate, PodView]], now: datetime) -> Step:
    """Close the node first; then every pod that has not been told, all at once."""
    closing = _closing(drain, node) if node is not None else ()
    if node is not None and drain.cordoned_at is None and not _cannot_be_closed(drain, now):
        return Step(replace(drain, due_at=now + LOOK), closing)
    tells: list[Action] = []
    end = ends_at(drain)
    for fate, pod in left:
        if pod.deletion_at is None:
            grace = grace_for(fate.asked_grace, end, now)
            override = fate.verdict == Verdict.BLOCKED and drain.cause == Cause.PREEMPTED
            tells.append(Delete(fate, grace) if override else Evict(fate, grace))
    return Step(replace(drain, due_at=min(now + LOOK, end)), (*closing, *tells))


def _cannot_be_closed(drain: DrainView, now: datetime) -> bool:
    """Kubernetes took a preemption's Event, and has refused the cordon before it ever since: the machine goes anyway."""
    announced = drain.announced_at if drain.cause == Cause.PREEMPTED else None
    return announced is not None and now - announced >= UNCLOSED


def _too_late(drain: DrainView, node: NodeView | None, left: list[tuple[Fate, PodView]], now: datetime) -> Step:
    """The end: a preempted machine goes; otherwise a pod that was never told is not killed, and a person decides."""
    untold = [fate for fate, pod in left if pod.deletion_at is None]
    if untold and drain.cause != Cause.PREEMPTED:
        note = _held(drain, untold) or f"{untold[0].name} could not be told to stop"
        return Step(replace(drain, state=State.STOPPED, due_at=None, pods_left=len(left), note=note[:300]))
    answering = node is not None and node.ready is True
    fates = tuple(verdicts.doomed(fate, answering) for fate in drain.fates)
    timed_out = replace(drain, state=State.TIMED_OUT, due_at=now, pods_left=len(left), fates=fates)
    return Step(timed_out, _announcing(drain, node))


def _unseen(drain: DrainView, now: datetime) -> Step:
    """Kubernetes cannot be read. Only at its end does a machine go unseen, and only where it goes whatever is on it."""
    end = ends_at(drain)
    if now < end:
        return Step(replace(drain, due_at=min(now + SOON, end)))
    if drain.cause == Cause.PREEMPTED or not drain.node_uid:
        left = sum(fate.open for fate in drain.fates)
        return Step(replace(drain, state=State.TIMED_OUT, due_at=now, pods_left=left))
    return Step(replace(drain, due_at=now + LOOK))


def _clear_away(drain: DrainView, seen: Seen | None, now: datetime) -> Step:
    """The machine is gone for certain: the Node, and only then, with grace 0, what is left of its pods in the list."""
    assert drain.terminated_at is not None
    if seen is None:
        return Step(replace(drain, due_at=now + SOON))
    at = drain.terminated_at
    met = (*drain.fates, *(_new(pod) for pod in _unknown(drain, seen)))  # after the last look some may still have come
    drain = replace(drain, note="", fates=tuple(verdicts.cut_off(fate, at) for fate in met))
    if seen.node is not None and seen.node.leaving:
        held = ", ".join(seen.node.finalizers) or "Kubernetes"
        return Step(replace(drain, due_at=now + LOOK, note=f"the Node object is held by {held}"[:300]))
    if seen.node is not None:
        return Step(replace(drain, due_at=now + SOON), (RemoveNode(),))
    leftover = [(fate, pod) for fate, pod in _left(drain, seen) if pod.deletion_at is None or pod.deletion_grace != 0]
    if leftover:
        return Step(replace(drain, due_at=now + SOON), tuple(Delete(fate, 0) for fate, _ in leftover))
    return Step(replace(drain, state=State.REMOVED, removed_at=now, due_at=None))


def _take_marks_off(drain: DrainView, seen: Seen | None, now: datetime) -> Step:
    """Stopped and still due: a person has opened the node, and nothing of ours may stay on it."""
    if seen is None:
        return Step(replace(drain, due_at=now + LOOK))
    if seen.node is None or seen.node.unschedulable or not (seen.node.ours or seen.node.cause):
        return Step(replace(drain, due_at=None))
    return Step(replace(drain, due_at=now + LOOK), (Unmark(),))
