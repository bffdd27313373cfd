"""What a Kubernetes object means for our rows. Pure: shapes and what is stored go in, what to write comes out.

Only what matters is compared. A heartbeat changes times that nobody reads here, so it yields an equal view and costs no query
(kubernetes/kubernetes#29772).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from uuid import UUID

from console.capacity.services import notice_of
from console.kube import marks
from console.kube.shapes import EventShape, NodeShape, PodShape, Shape

# A Kubernetes time counts where it is earlier than ours by at most this; else the instant is that of our receipt (DESIGN 11).
TRUSTED = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as far as anything is decided or shown by it. `why` is the Ready condition's reason while it is not Ready."""

    name: str
    gpus: int
    ready: bool | None
    why: str
    unschedulable: bool
    mark: str
    startup_pending: bool
    notice: str
    kubelet_version: str
    internal_ip: str
    machine: UUID | None
    preemptible: bool


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod as drains, victims and pages need it. A checkpoint counts by the minute, or each save would be a write."""

    namespace: str
    name: str
    node_name: str
    phase: str
    owner_kind: str
    owner_name: str
    daemonset: bool
    mirror: bool
    gpus: int
    wish: str
    grace_seconds: int
    started_at: datetime | None
    last_checkpoint: datetime | None
    checkpoint_seconds: float | None
    checkpoint_bytes: int | None
    why: str
    waits_since: datetime | None
    deleting_since: datetime | None
    finished: bool
    exit_code: int | None
    disrupted: str


class NodeNews(Enum):
    """What a timeline says of a node."""

    JOINED = auto()
    READY = auto()
    NOT_READY = auto()
    CORDONED = auto()  # by somebody who is not us
    UNCORDONED = auto()  # by somebody who is not us
    RELABELLED = auto()  # its compute class, by hand
    NOTICED = auto()  # its cloud says that the machine goes
    LEFTOVER = auto()  # marks of ours on a node that they are not true of any more


View = NodeView | PodView | tuple[object, ...]


def view(shape: Shape) -> View:
    """What is compared of any object: equal views mean nothing to write."""
    match shape:
        case NodeShape():
            return node_view(shape)
        case PodShape():
            return pod_view(shape)
        case EventShape():
            return (shape.count, shape.last_at)
        case _:
            return (shape.resource_version,)


def node_view(shape: NodeShape) -> NodeView:
    """Clipped to what the columns take: a stranger's object must not stop the line."""
    condition = next((c for c in shape.conditions if c.type == "Ready"), None)
    return NodeView(
        name=shape.name,
        gpus=max(0, min(shape.gpus, 32767)),
        ready=shape.ready,
        why="" if shape.ready or condition is None else condition.reason[:100],
        unschedulable=shape.unschedulable,
        mark=shape.annotations.get(marks.CORDONED_BY, "")[:200],
        startup_pending=any(taint.key == marks.STARTUP_TAINT for taint in shape.taints),
        notice=notice_of(shape),
        kubelet_version=shape.kubelet_version[:32],
        internal_ip=shape.internal_ip[:45],
        machine=_uuid(shape.labels.get(marks.MACHINE_LABEL, "")),
        preemptible=shape.labels.get(marks.CLASS_LABEL) == marks.PREEMPTIBLE,
    )


def pod_view(shape: PodShape) -> PodView:
    """`deleting_since` is when the deletion was asked for: its timestamp in Kubernetes is when the grace ends."""
    deleting_since = shape.deletion_at - timedelta(seconds=shape.deletion_grace or 0) if shape.deletion_at else None
    return PodView(
        namespace=shape.namespace[:63],
        name=shape.name,
        node_name=shape.node_name,
        phase=shape.phase[:16],
        owner_kind=shape.owner_kind[:63],
        owner_name=shape.owner_name,
        daemonset=shape.daemonset,
        mirror=shape.mirror,
        gpus=shape.gpus,
        wish=shape.wish,
        grace_seconds=max(0, shape.grace_seconds),
        started_at=shape.started_at,
        last_checkpoint=shape.last_checkpoint.replace(second=0, microsecond=0) if shape.last_checkpoint else None,
        checkpoint_seconds=shape.checkpoint_seconds,
        checkpoint_bytes=shape.checkpoint_bytes,
        why=shape.why[:500],
        waits_since=shape.waits_since,
        deleting_since=deleting_since,
        finished=shape.finished,
        exit_code=shape.exit_code,
        disrupted=shape.disrupted[:63],
    )


def node_news(before: NodeView | None, after: NodeView) -> tuple[NodeNews, ...]:
    """What happened between two looks at one node.

    A cordon without our mark is a person's. So is an uncordon that left a mark behind (kubectl takes none away) or that
    lifted a cordon without one; where the mark went with it, we or our pages did it and have said so.
    """
    if before is None:
        noticed = (NodeNews.NOTICED,) if after.notice else ()
        return (NodeNews.JOINED, *((NodeNews.READY,) if after.ready else ()), *noticed)
    news: list[NodeNews] = []
    if after.ready and not before.ready:
        news.append(NodeNews.READY)
    if before.ready and not after.ready:
        news.append(NodeNews.NOT_READY)
    if after.unschedulable and not before.unschedulable and not after.mark:
        news.append(NodeNews.CORDONED)
    if before.unschedulable and not after.unschedulable and (after.mark or not before.mark):
        news.append(NodeNews.UNCORDONED)
    if before.machine and before.preemptible != after.preemptible:
        news.append(NodeNews.RELABELLED)
    if after.notice and after.notice != before.notice:
        news.append(NodeNews.NOTICED)
    return tuple(news)


def true_mark(before: NodeView | None, after: NodeView, draining: bool) -> str:
    """The mark that the node's cordon really has.

    kubectl's uncordon leaves our mark behind, and a person's later cordon would then look like ours, to be lifted by automation.
    But we close a node only for a drain of it: a mark that was there while the node was open says nothing of the next cordon, and
    a cordon that was a person's stays one until the node opens.
    """
    if before is None or draining or not after.unschedulable or not after.mark:
        return after.mark
    if before.unschedulable:
        return after.mark if marks.is_ours(before.mark) or not marks.is_ours(after.mark) else before.mark
    return "" if after.mark == before.mark else after.mark


def leftover(shape: NodeShape, mark: str) -> bool:
    """Whether a node that is not draining carries marks to be taken off. `mark`: the true one of its cordon."""
    annotations = shape.annotations
    if shape.unschedulable:
        return bool(annotations.get(marks.CORDONED_BY)) and not mark
    return any(name in annotations for name in (marks.CORDONED_BY, marks.DRAIN_CAUSE, marks.DRAIN_DEADLINE))


def concerns_us(shape: NodeShape) -> bool:
    """A node with GPUs, or a machine of ours that has none yet. Others run the cluster and are nobody's capacity."""
    return shape.gpus > 0 or marks.MACHINE_LABEL in shape.labels


def trusted(told: datetime | None, received: datetime, clock_offset: float = 0.0) -> datetime:
    """When it happened: Kubernetes' word where it is believable, else when we heard. `clock_offset`: its clock less ours."""
    if told is None:
        return received
    told -= timedelta(seconds=clock_offset)
    return told if received - TRUSTED <= told <= received else received


def checkpoint(told: datetime | None, started: datetime | None, now: datetime) -> datetime | None:
    """A tenant's word on its last save, held to the pod's life: nobody saves before the start or after now (DESIGN 6)."""
    if told is None:
        return None
    told = min(told, now)
    return max(told, started) if started else told


def older(version: str, than: str) -> bool:
    """Versions are opaque by contract and integers in fact; what is no integer is not compared."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


def covered(version: str, seen: str) -> bool:
    """Whether a change of this version is part of a picture that reaches up to `seen`."""
    return version.isdecimal() and seen.isdecimal() and int(version) <= int(seen)


def latest(versions: list[str]) -> str:
    """The highest of the versions that are integers, or ''."""
    return max((v for v in versions if v.isdecimal()), key=int, default="")


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
