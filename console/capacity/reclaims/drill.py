"""A drill's report: how long each step took for each node, what each pod made of its time, and what it cost in GPU-minutes.

Pure: facts that are stored anyway go in, figures come out, so a report can be made again at any time and never disagrees with the
timeline. Lengths are seconds since the node's notice unless they say otherwise; None is a step that has not happened.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.capacity.models import Drain

State = Drain.State

LONGEST = timedelta(hours=1)  # a drill whose machines are not replaced by then ends all the same, and says so


@dataclass(frozen=True)
class PodFacts:
    namespace: str
    name: str
    verdict: str
    exit_code: int | None = None
    told_at: datetime | None = None
    ended_at: datetime | None = None
    last_checkpoint: datetime | None = None


@dataclass(frozen=True)
class NodeFacts:
    """One drain of the drill with its pods."""

    name: str
    gpus: int
    state: str
    notice_at: datetime
    deadline: datetime
    cordoned_at: datetime | None = None
    told_at: datetime | None = None
    emptied_at: datetime | None = None
    removed_at: datetime | None = None
    pods: Sequence[PodFacts] = ()


@dataclass(frozen=True)
class Arrival:
    """A machine that was asked for since, and when its node was Ready."""

    name: str
    ready_at: datetime


@dataclass(frozen=True)
class PodLine:
    """`seconds` from SIGTERM to its end, of `of_seconds` at most; `checkpoint_minutes` of work since its last checkpoint."""

    pod: str
    namespace: str
    verdict: str
    exit_code: int | None
    seconds: float | None
    of_seconds: int
    checkpoint_minutes: float | None


@dataclass(frozen=True)
class NodeLine:
    """Seconds since `notice_at`. `replaced_by` is the machine that came in its stead, the first to come for the first to go."""

    node_name: str
    gpus: int
    state: str
    notice_at: datetime
    deadline: datetime
    cordoned: float | None
    told: float | None
    last_pod_gone: float | None
    removed: float | None
    replaced: float | None
    replaced_by: str | None
    replaced_at: datetime | None
    gpu_minutes_away: float
    pods: tuple[PodLine, ...]


@dataclass(frozen=True)
class Totals:
    """Of all nodes: the slowest of each step (None until the last has taken it), and sums."""

    nodes: int
    gpus: int
    pods: int
    verdicts: dict[str, int]
    cordoned: float | None
    told: float | None
    last_pod_gone: float | None
    removed: float | None
    replaced: float | None
    not_replaced: int
    longest_pod_seconds: float | None
    longest_checkpoint_minutes: float | None
    gpu_minutes_away: float


@dataclass(frozen=True)
class Report:
    nodes: tuple[NodeLine, ...]
    totals: Totals


def report(nodes: Iterable[NodeFacts], arrivals: Iterable[Arrival], until: datetime) -> Report:
    """Of a drill up to `until`: now, or the instant at which it was over. What has not come back by then is away until then."""
    going = sorted(nodes, key=lambda node: (node.notice_at, node.name))
    coming = iter(sorted(arrivals, key=lambda arrival: (arrival.ready_at, arrival.name)))
    lines = tuple(_node(node, None if node.state == State.STOPPED else next(coming, None), until) for node in going)
    return Report(lines, _totals(lines))


def finished(
    nodes: Sequence[NodeFacts], arrivals: Sequence[Arrival], desired: int, allocated: int, asked_at: datetime, now: datetime
) -> bool:
    """Whether a drill is over: every drain has ended, and what went is replaced or no longer asked for; or its time is up.

    What was written after `now` has not happened yet: a drill is never over before its last node was removed.
    """
    if now - asked_at >= LONGEST:
        return True
    gone = sum(node.removed_at is not None and node.removed_at <= now for node in nodes)
    stayed = sum(node.state == State.STOPPED for node in nodes)
    return gone + stayed == len(nodes) and (len(arrivals) >= gone or allocated >= desired)


def _node(node: NodeFacts, arrival: Arrival | None, until: datetime) -> NodeLine:
    back = arrival.ready_at if arrival is not None else until
    stayed = node.state == State.STOPPED
    return NodeLine(
        node_name=node.name,
        gpus=node.gpus,
        state=node.state,
        notice_at=node.notice_at,
        deadline=node.deadline,
        cordoned=_since(node, node.cordoned_at),
        told=_since(node, node.told_at),
        last_pod_gone=_since(node, _last_pod(node)),
        removed=_since(node, node.removed_at),
        replaced=_since(node, arrival.ready_at if arrival else None),
        replaced_by=arrival.name if arrival else None,
        replaced_at=arrival.ready_at if arrival else None,
        gpu_minutes_away=0.0 if stayed else round(node.gpus * max(0.0, (back - node.notice_at).total_seconds()) / 60, 1),
        pods=tuple(_pod(pod, node, until) for pod in sorted(node.pods, key=lambda pod: (pod.namespace, pod.name))),
    )


def _last_pod(node: NodeFacts) -> datetime | None:
    """When no evictable pod was left; of a node that timed out, when the last of them was cut off with it."""
    ends = [pod.ended_at for pod in node.pods]
    if node.emptied_at is not None or not ends or None in ends:
        return node.emptied_at
    return max(end for end in ends if end is not None)


def _pod(pod: PodFacts, node: NodeFacts, until: datetime) -> PodLine:
    seconds = None
    if pod.told_at is not None and pod.ended_at is not None:
        seconds = _length(pod.told_at, pod.ended_at)
    unsaved = None
    if pod.last_checkpoint is not None:
        unsaved = round(_length(pod.last_checkpoint, pod.ended_at or until) / 60, 1)
    window = round((node.deadline - node.notice_at).total_seconds())
    return PodLine(pod.name, pod.namespace, pod.verdict, pod.exit_code, seconds, window, unsaved)


def _totals(lines: Sequence[NodeLine]) -> Totals:
    going = [line for line in lines if line.state != State.STOPPED]
    pods = [pod for line in lines for pod in line.pods]
    return Totals(
        nodes=len(lines),
        gpus=sum(line.gpus for line in lines),
        pods=len(pods),
        verdicts=dict(sorted(Counter(pod.verdict for pod in pods).items())),
        cordoned=_slowest([line.cordoned for line in going]),
        told=_slowest([line.told for line in going if line.pods]),
        last_pod_gone=_slowest([line.last_pod_gone for line in going]),
        removed=_slowest([line.removed for line in going]),
        replaced=_slowest([line.replaced for line in going]),
        not_replaced=sum(line.replaced is None for line in going),
        longest_pod_seconds=max((pod.seconds for pod in pods if pod.seconds is not None), default=None),
        longest_checkpoint_minutes=max(
            (pod.checkpoint_minutes for pod in pods if pod.checkpoint_minutes is not None), default=None
        ),
        gpu_minutes_away=round(sum(line.gpu_minutes_away for line in lines), 1),
    )


def _slowest(lengths: Sequence[float | None]) -> float | None:
    known = [length for length in lengths if length is not None]
    return max(known) if known and len(known) == len(lengths) else None


def _since(node: NodeFacts, at: datetime | None) -> float | None:
    return None if at is None else _length(node.notice_at, at)


def _length(start: datetime, end: datetime) -> float:
    """Seconds, to a tenth. Clocks that disagree by a moment make no negative length."""
    return round(max(0.0, (end - start).total_seconds()), 1)
