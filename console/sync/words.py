"""What a timeline says of a node, in words. Pure: from what was seen to a line, or to silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from console.clusters.models import Machine, Node
from console.sync.apply import NodeNews
from console.sync.nodes import Told
from console.timeline.changes import HALFTIDE, KUBERNETES, Actor
from console.timeline.models import Entry

NODE_READY, NODE_NOT_READY, NODE_UNCORDONED, SCALED_UP = "NodeReady", "NodeNotReady", "NodeUncordoned", "TogetherScaledUp"

# Kubernetes tells these too, as Events of the node; one fact is one row (see `ingest`).
TOLD_TWICE = (NODE_READY, NODE_NOT_READY)


@dataclass(frozen=True, slots=True)
class Line:
    """A ledger row to be, about one node."""

    reason: str
    message: str
    at: datetime
    name: str
    uid: str
    compute_class: str
    severity: str = Entry.Severity.INFO
    actor: Actor = KUBERNETES
    own_event: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)


def span(length: timedelta) -> str:
    """A length of time as people read it: 41 s, 3:48, 1:02:03."""
    seconds = max(0, round(length.total_seconds()))
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(told: Told, *, may_act: bool) -> Line | None:
    """The line for one thing seen of a node, or None where somebody else tells it or there is nothing to tell."""
    row, machine = told.row, told.machine
    match told.news:
        case NodeNews.JOINED:
            return _joined(told)
        case NodeNews.READY if told.first_ready and machine:
            return _arrived(told, machine, may_act)
        case NodeNews.READY if told.known:
            after = f" again after {span(told.at - told.since)}" if told.since and told.since < told.at else ""
            return Line(NODE_READY, f"{row.name} is Ready{after}", told.at, row.name, row.uid, row.compute_class)
        case NodeNews.NOT_READY if machine is None or machine.state in Machine.ALIVE:
            what = "Kubernetes no longer hears from" if told.shape.ready is None else "Not Ready any more:"
            why = f" ({told.why})" if told.why else ""
            return Line(
                NODE_NOT_READY, f"{what} {row.name}{why}", told.at, row.name, row.uid, row.compute_class, Entry.Severity.WARNING
            )
        case NodeNews.CORDONED:
            text = f"{row.name} was cordoned in Kubernetes, not by Halftide. It stays closed until somebody opens it."
            return Line("NodeCordoned", text, told.at, row.name, row.uid, row.compute_class)
        case NodeNews.UNCORDONED if not row.draining:
            return Line(
                NODE_UNCORDONED,
                f"{row.name} was uncordoned in Kubernetes, not by Halftide.",
                told.at,
                row.name,
                row.uid,
                row.compute_class,
            )
        case NodeNews.RELABELLED if machine and may_act:
            text = (
                f"The compute-class label of {row.name} was changed by hand and is put back; the machine is {row.compute_class}."
            )
            return Line(
                "ClassLabelRestored", text, told.at, row.name, row.uid, row.compute_class, Entry.Severity.WARNING, HALFTIDE
            )
        case _:
            return None


def _joined(told: Told) -> Line | None:
    """A machine of ours has a Node now; one that is Ready already is told as arrived."""
    row, machine = told.row, told.machine
    if machine is None or told.shape.ready or machine.state not in Machine.ALIVE or machine.first_ready_at:
        return None
    text = f"{row.name} joined {span(told.at - machine.asked_at)} after it was asked for; it is not Ready yet"
    return Line("NodeBooting", text, told.at, row.name, row.uid, row.compute_class, actor=HALFTIDE)


def _arrived(told: Told, machine: Machine, may_act: bool) -> Line:
    took = told.at - machine.asked_at
    return Line(
        SCALED_UP,
        f"{told.row.name} Ready {span(took)} after it was asked for",
        told.at,
        told.row.name,
        told.row.uid,
        told.row.compute_class,
        actor=HALFTIDE,
        own_event=f"halftide-scaled-up-{machine.pk}" if may_act else None,
        data={"machine": str(machine.pk), "gpus": told.row.gpus, "seconds": round(took.total_seconds(), 3)},
    )


def lost(row: Node, machine: Machine | None, now: datetime) -> Line | None:
    """A node that went without anybody here asking for it."""
    if row.draining or (machine and machine.state not in Machine.ALIVE):
        return None
    proof = machine.last_proof_at if machine else None
    alive = f" It was last known to be alive at {proof:%H:%M:%S} UTC." if proof else ""
    text = f"{row.name} is gone from Kubernetes, and nobody here asked for that.{alive}"
    severity = Entry.Severity.CRITICAL if machine else Entry.Severity.WARNING
    return Line("NodeLost", text, now, row.name, row.uid, row.compute_class, severity)
