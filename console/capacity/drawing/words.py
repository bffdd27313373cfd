"""The sentences of the gauge: the sum under it, and why what is asked for is not all there yet. Pure."""

from dataclasses import dataclass
from datetime import datetime

from console.capacity.picture import Picture


@dataclass(frozen=True)
class Term:
    """One part of the sum. `kind` is the key's look: alloc, wait, give."""

    kind: str
    text: str
    since: datetime | None = None  # of what is joining: its oldest age counts up


@dataclass(frozen=True)
class Reason:
    icon: str
    strong: str
    rest: str = ""
    since: datetime | None = None


def terms(picture: Picture) -> list[Term]:
    """allocated + joining + held by pace + waiting + blocked − leaving = desired; parts of 0 are left out, except allocated."""
    found = picture.difference
    if found.allocated > found.desired:
        leaving = found.allocated - found.desired
        return [Term("alloc", f"{found.desired} stay"), Term("give", f"{leaving} go, each pod gets up to 5 min")]
    parts = [Term("alloc", f"{found.allocated} allocated")]
    if found.joining:
        parts.append(Term("wait", f"{found.joining} joining, oldest", found.joining_since))
    if found.held_by_pace:
        parts.append(Term("wait", f"{found.held_by_pace} held by pace"))
    if found.waiting:
        parts.append(Term("wait", f"{found.waiting} waiting"))
    if found.blocked:
        parts.append(Term("wait", f"{found.blocked} blocked"))
    if found.leaving:
        parts.append(Term("give", f"{found.leaving} too many, going back"))
    return parts


def reason(picture: Picture) -> Reason:
    """The most telling cause, said once."""
    found = picture.difference
    if found.allocated > found.desired:
        nodes = (found.allocated - found.desired) // picture.step
        return Reason("i-leave", _nodes(nodes, "will go"), ", those with the least unsaved work first.")
    if found.blocked:
        return Reason("i-warning", found.blocked_why or "Blocked.")
    if found.waiting:
        since = f"Waiting for capacity since {found.waiting_since:%H:%M}" if found.waiting_since else "Waiting for capacity"
        tries = f"next try {found.next_try_at:%H:%M:%S}" if found.next_try_at else "next try within seconds"
        return Reason("i-clock", since, f" · {tries}")
    if found.joining:
        return Reason("i-dots", f"{found.joining} GPUs are joining", ", oldest for ", found.joining_since)
    if found.held_by_pace:
        return Reason("i-clock", f"{found.held_by_pace} GPUs follow", ": machines are asked for a few at a time.")
    if picture.cluster.unreachable_since is not None:
        return Reason("i-warning", "As last seen, everything asked for is there.")
    if found.desired == 0:
        return Reason("i-about", "No preemptible GPUs asked for.", _more(picture))
    return Reason("i-check", "Everything asked for is there.", _more(picture))


def _more(picture: Picture) -> str:
    more = picture.offer.could_give_gpus
    return f" {more} more could come now." if more else " The pool has none free now."


def _nodes(count: int, what: str) -> str:
    return f"{count} {'node' if count == 1 else 'nodes'} {what}"
