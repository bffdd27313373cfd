"""The table under a drain's entry: what became of each pod, the same for page, poll and socket.

Names and budgets are strangers' text: everything goes through a template that escapes. What moves (a countdown, a pod that is
stopping) is said as of now and carries its instant, so that the browser counts on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.template.loader import get_template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.capacity.drains.entries import span
from console.capacity.drains.rows import fate_of
from console.capacity.drains.verdicts import Fate, summary
from console.capacity.models import Drain, PodVerdict

State, Verdict = Drain.State, PodVerdict.Verdict


@dataclass(frozen=True)
class Line:
    """One pod. `look` is the colour of a state, `after` how long it took or has taken since its SIGTERM."""

    name: str
    title: str
    look: str
    icon: str
    words: SafeString
    after: str
    since: datetime | None = None


def render_drain(drain: Drain, verdicts: Iterable[PodVerdict], now: datetime) -> str:
    """The whole `details` element. It stands open while pods are stopping, and where one did not end well."""
    fates = sorted((fate_of(verdict) for verdict in verdicts), key=lambda fate: (fate.told_at or now, fate.namespace, fate.name))
    going = drain.state in Drain.OPEN and drain.terminated_at is None
    return get_template("capacity/_drain.html").render(
        {
            "drain": drain,
            "lines": [_line(fate, now) for fate in fates],
            "summary": summary(fates),
            "going": going,
            "left": span(max(0, int((drain.deadline - now).total_seconds()))),
            "open": going or any(fate.verdict in BAD for fate in fates),
            "foot": _foot(drain),
        }
    )


BAD = {Verdict.KILLED, Verdict.NEVER_STOPPED, Verdict.BLOCKED}
LOOKS = {
    Verdict.STOPPING: ("amber", "i-clock"),
    Verdict.FINISHED: ("", "i-check"),
    Verdict.KILLED: ("red", "i-x"),
    Verdict.BUDGET_OVERRIDDEN: ("amber", "i-shield"),
    Verdict.NEVER_STOPPED: ("red", "i-critical"),
    Verdict.UNKNOWN: ("", "i-about"),
    Verdict.BLOCKED: ("amber", "i-lock"),
}


def _line(fate: Fate, now: datetime) -> Line:
    look, icon = LOOKS[Verdict(fate.verdict)]
    after = "–"
    if fate.told_at is not None:
        after = span(max(0, int(((fate.ended_at or now) - fate.told_at).total_seconds())))
    since = fate.told_at if fate.open else None
    return Line(fate.name, f"{fate.namespace}/{fate.name}", look, icon, _words(fate), after, since)


def _words(fate: Fate) -> SafeString:
    code = "" if fate.exit_code is None else f", exit {fate.exit_code}"
    saved = f", last checkpoint {fate.last_checkpoint:%H:%M}" if fate.last_checkpoint else ""
    match fate.verdict:
        case Verdict.FINISHED:
            return format_html("Finished{}{}", code, "" if fate.owner_kind else ". Bare pod: nothing starts it again")
        case Verdict.BUDGET_OVERRIDDEN:
            return format_html("Budget <b>{}</b> overridden{}", fate.budget, ", stopping" if fate.open else code)
        case Verdict.KILLED if fate.exit_code is not None:
            return format_html("Killed when its {} of grace were over{}", span(fate.given_grace), saved)
        case Verdict.KILLED:
            return format_html("Killed at the deadline{}", saved)
        case Verdict.NEVER_STOPPED:
            return format_html("Never stopped: the node did not answer{}", saved)
        case Verdict.UNKNOWN:
            return SafeString("Unknown: gone without an end being seen")
        case Verdict.BLOCKED:
            return format_html("Held by budget <b>{}</b>", fate.budget)
        case _:
            return _stopping(fate)


def _stopping(fate: Fate) -> SafeString:
    if fate.told_at is None:
        return SafeString("About to be told")
    saved = f", saved {fate.last_checkpoint:%H:%M}" if fate.last_checkpoint else ""
    capped = f"; asked for {span(fate.asked_grace)}, has {span(fate.given_grace)}" if fate.given_grace < fate.asked_grace else ""
    return format_html("Stopping{}{}", saved, capped)


def _foot(drain: Drain) -> str:
    """What holds it just now, and what of the node is not in the table."""
    note = f"{drain.note[:1].upper()}{drain.note[1:]}." if drain.note else ""
    staying = ""
    if drain.staying:
        pods = "DaemonSet pod" if drain.staying == 1 else "DaemonSet pods"
        verb = "stayed" if drain.state == State.REMOVED else ("stays" if drain.staying == 1 else "stay")
        until = "went" if drain.state == State.REMOVED else "goes"
        staying = f"{drain.staying} {pods} {verb} until the node {until}."
    return " ".join(part for part in (note, staying) if part)
