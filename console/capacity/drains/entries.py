"""What the timeline says while a drain goes on: each thing once, from what a row was before a write and is after it.

The row is locked while the two are compared, so a run that repeats a step finds it already there and says nothing.
"""

from collections.abc import Iterable

from console.capacity.drains.changes import class_of, subject
from console.capacity.drains.verdicts import Fate, summary
from console.capacity.drains.window import MAX_GRACE, SOON, ends_at, grace_for
from console.capacity.models import Drain, PodVerdict
from console.timeline.changes import Change
from console.timeline.models import Entry

State, Verdict = Drain.State, PodVerdict.Verdict
WARNING = Entry.Severity.WARNING
MOST_NAMES = 5  # pods that a sentence names before it counts the rest


def say(made: Change, drain: Drain, was: str, before: Iterable[Fate], after: Iterable[Fate]) -> None:
    """Entries for what a write changes in a drain and its pods. `was`: its state before; the row already is what it will be."""
    known = {fate.uid: fate for fate in before}
    fates = list(after)
    new = [fate for fate in fates if fate.uid not in known]
    _came(made, drain, new)
    # One that came late is told in the round that meets it; one that was told before the drain had its grace from somebody else.
    _graces(made, drain, [fate for fate in new if fate.told_at is None or fate.told_at >= drain.started_at])
    overridden = [fate for fate in fates if fate.verdict == Verdict.BUDGET_OVERRIDDEN]
    _budgets(made, drain, [fate for fate in overridden if fate.uid not in known or known[fate.uid].verdict != fate.verdict])
    if drain.state != was:
        _state(made, drain, fates)


def _came(made: Change, drain: Drain, new: list[Fate]) -> None:
    """Pods that tolerate the cordon, and land on a node that is on its way out. What was just being bound is not meant."""
    if not new or drain.cordoned_at is None or made.now <= drain.cordoned_at + SOON:
        return
    gone = drain.terminated_at is not None
    ends = "too late to be told" if gone else "it is drained too" if len(new) == 1 else "they are drained too"
    message = f"{names(new)} came to {drain.node_name} after it was closed: {ends}"
    _entry(made, drain, "PodsCameLate", message, WARNING)


def _graces(made: Change, drain: Drain, new: list[Fate]) -> None:
    """Said when the pods are first seen, for all of them at once."""
    most = grace_for(MAX_GRACE, ends_at(drain), made.now)
    capped = [fate for fate in new if fate.asked_grace > most]
    if not capped:
        return
    longest = max(fate.asked_grace for fate in capped)
    verb = "asks for" if len(capped) == 1 else "ask for up to"
    message = f"{names(capped)} on {drain.node_name} {verb} {span(longest)} of grace; this drain gives {span(most)} at most"
    _entry(made, drain, "GraceCapped", message, WARNING)


def _budgets(made: Change, drain: Drain, overridden: list[Fate]) -> None:
    if not overridden:
        return
    budgets = ", ".join(sorted({fate.budget for fate in overridden}))
    message = (
        f"Budget {budgets} overridden for {names(overridden)}: {drain.node_name} goes at {drain.deadline:%H:%M:%S} UTC anyway"
    )
    _entry(made, drain, "BudgetOverridden", message, WARNING)


def _state(made: Change, drain: Drain, fates: list[Fate]) -> None:
    if drain.state == State.TIMED_OUT:
        pods = f"{drain.pods_left} {'pod' if drain.pods_left == 1 else 'pods'} left"
        last = ": the machine goes, then they are deleted with grace 0" if drain.pods_left else ": the machine goes"
        _entry(made, drain, "DrainTimedOut", f"{drain.node_name} timed out, {pods}{last}", WARNING)
    elif drain.state == State.REMOVED and drain.emptied_at is not None:
        after = span(int((drain.removed_at or drain.emptied_at).timestamp() - drain.started_at.timestamp()))
        pods = f"; {summary(fates)}" if fates else "; it had no pods"
        _entry(made, drain, "DrainFinished", f"{drain.node_name} gone after {after}{pods}", Entry.Severity.INFO)
    elif drain.state == State.STOPPED:
        message = f"Drain of {drain.node_name} stopped at its deadline, {drain.note}. The node stays cordoned; a person decides"
        _entry(made, drain, "DrainTimedOut", message, WARNING)


def _entry(made: Change, drain: Drain, reason: str, message: str, severity: str) -> None:
    about, data = subject(drain), {"drain": str(drain.pk)}
    made.entry(drain.cluster_id, reason, message, severity=severity, subject=about, compute_class=class_of(drain), data=data)


def names(fates: list[Fate]) -> str:
    """ "a, b and 3 more"."""
    shown = ", ".join(fate.name for fate in fates[:MOST_NAMES])
    return shown if len(fates) <= MOST_NAMES else f"{shown} and {len(fates) - MOST_NAMES} more"


def span(seconds: int) -> str:
    """A length as people say it: 45 s, 4:58, 1 h."""
    if seconds < 60:
        return f"{seconds} s"
    if seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
