"""What if these nodes were reclaimed now: who could not stop in time, which budgets would be overridden, what is unsaved.

Pure: rows as they are stored go in, with what the cluster's API said of its disruption budgets at the moment of asking. Nothing
is guessed: where nothing says how old a pod's last checkpoint is, the answer is that it is unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.capacity.drains.window import most_grace
from console.capacity.reclaims.budgets import BudgetName, Budgets
from console.clusters.models import Machine, Node, Pod

IN_FLIGHT = 64  # requests that a drain has under way at one API (see `drain_doors`)
READS = 4  # one after another: the node and its pods, before the cordon and after it

Owner = tuple[str, str, str]  # namespace, kind, name


@dataclass(frozen=True)
class Exit:
    """How earlier pods of an owner ended, in seconds from SIGTERM: the longest to stop by itself, the longest to be killed."""

    finished: float | None = None
    killed: float | None = None


@dataclass(frozen=True)
class Overridden:
    """A budget over the pods that would go: it allows some evictions, and the rest would go in spite of it."""

    namespace: str
    name: str
    pods: int
    allowed: int

    @property
    def over(self) -> int:
        return max(0, self.pods - self.allowed)


@dataclass(frozen=True)
class PodLoss:
    """One pod that would be told to stop. Seconds; None is unknown. `late` says why it might not be done in time."""

    uid: str
    namespace: str
    name: str
    asked_grace: int
    given_grace: int
    unsaved: float | None
    running: float | None
    late: str = ""
    budgets: tuple[str, ...] = ()  # those that allow too few: overridden, if not for this pod then for another of theirs
    overridden: bool = False  # for certain: one of them allows none
    stopping: bool = False  # it has been told by somebody already

    @property
    def grace_says(self) -> str:
        asked, given = length(self.asked_grace), length(self.given_grace)
        return asked if self.asked_grace == self.given_grace else f"{given} of {asked}"

    @property
    def unsaved_says(self) -> str:
        return length(self.unsaved) if self.unsaved is not None else "unknown"

    @property
    def running_says(self) -> str:
        return length(self.running) if self.running is not None else "–"


@dataclass(frozen=True)
class NodeLoss:
    """`says`: why this node is among the first, as a person would say it. `staying`: DaemonSet and mirror pods."""

    name: str
    gpus: int
    says: str
    pods: tuple[PodLoss, ...] = ()
    staying: int = 0


@dataclass(frozen=True)
class Preview:
    """`window` is seconds from the notice to the machine's end, `telling` until every pod has its SIGTERM (None: unknown)."""

    at: datetime
    window: int
    nodes: tuple[NodeLoss, ...]
    budgets: tuple[Overridden, ...]
    budgets_unknown: str
    telling: float | None

    @property
    def deadline(self) -> datetime:
        return self.at + timedelta(seconds=self.window)

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes)

    @property
    def pods(self) -> list[PodLoss]:
        return [pod for node in self.nodes for pod in node.pods]

    @property
    def late(self) -> list[PodLoss]:
        return [pod for pod in self.pods if pod.late]

    @property
    def longest_unsaved(self) -> float | None:
        """Seconds; of the pods that say something."""
        return max((pod.unsaved for pod in self.pods if pod.unsaved is not None), default=None)

    @property
    def longest_unsaved_says(self) -> str:
        return length(self.longest_unsaved) if self.longest_unsaved is not None else "unknown" if self.pods else "–"

    @property
    def window_says(self) -> str:
        return f"{self.window // 60} min" if self.window % 60 == 0 else length(self.window)

    @property
    def unsaved_unknown(self) -> int:
        return sum(pod.unsaved is None for pod in self.pods)


def preview(
    machines: Sequence[tuple[Machine, Node | None]],
    pods: Iterable[Pod],
    budgets: Budgets,
    exits: Mapping[Owner, Exit],
    now: datetime,
    window: int,
) -> Preview:
    """`machines` in the order in which they would be chosen; `pods` of the whole cluster or of these nodes."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(pod.node_name, []).append(pod)
    found = {
        machine.pk: sorted(by_node.get(node.name, []), key=lambda pod: (pod.namespace, pod.name)) if node else []
        for machine, node in machines
    }
    going = [pod for of_node in found.values() for pod in of_node if _goes(pod)]
    over = overridden([pod for pod in going if pod.deleting_since is None], budgets)
    bad = {(budget.namespace, budget.name): budget.allowed for budget in over if budget.over}
    nodes = tuple(_node(machine, node, found[machine.pk], budgets.covers, bad, exits, now, window) for machine, node in machines)
    untold = [pod for pod in going if pod.deleting_since is None]
    telling = telling_seconds(len(machines), len(untold), sum(budget.over for budget in over), budgets.round_trip)
    return Preview(now, window, nodes, over, budgets.unknown, telling)


def _goes(pod: Pod) -> bool:
    return not (pod.daemonset or pod.mirror or pod.finished)


def _node(
    machine: Machine,
    node: Node | None,
    pods: Sequence[Pod],
    covers: Mapping[str, tuple[BudgetName, ...]],
    bad: Mapping[BudgetName, int],
    exits: Mapping[Owner, Exit],
    now: datetime,
    window: int,
) -> NodeLoss:
    losses = tuple(
        _pod(pod, {budget: bad[budget] for budget in covers.get(pod.uid, ()) if budget in bad}, exits, now, window)
        for pod in pods
        if _goes(pod)
    )
    staying = sum((pod.daemonset or pod.mirror) and not pod.finished for pod in pods)
    name = node.name if node is not None else machine.node_name
    return NodeLoss(name, machine.gpus, _says(node, losses), losses, staying)


def _says(node: Node | None, pods: Sequence[PodLoss]) -> str:
    if node is None or node.ready is not True:
        return "not yet Ready" if node is None else "not Ready"
    if not pods:
        return "no pods but DaemonSets"
    known = [pod.unsaved for pod in pods if pod.unsaved is not None]
    many = f"{len(pods)} {'pod' if len(pods) == 1 else 'pods'}"
    if len(known) < len(pods):
        return f"{many}, unsaved work unknown of {len(pods) - len(known)}"
    return f"{many}, {length(max(known))} since the last checkpoint"


def _pod(pod: Pod, budgets: Mapping[BudgetName, int], exits: Mapping[Owner, Exit], now: datetime, window: int) -> PodLoss:
    most = most_grace(window)
    return PodLoss(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        asked_grace=pod.grace_seconds,
        given_grace=min(pod.grace_seconds, most),
        unsaved=_since(max(pod.last_checkpoint, pod.started_at or pod.last_checkpoint), now) if pod.last_checkpoint else None,
        running=_since(pod.started_at, now) if pod.started_at else None,
        late=_late(pod, most, exits.get(owner_of(pod), Exit())),
        budgets=tuple(name for _, name in budgets),
        overridden=0 in budgets.values(),
        stopping=pod.deleting_since is not None,
    )


def _since(at: datetime, now: datetime) -> float:
    """A tenant's word is clamped: a checkpoint of the future is one of now."""
    return max(0.0, (now - at).total_seconds())


def owner_of(pod: Pod) -> Owner:
    return (pod.namespace, pod.owner_kind, pod.owner_name or pod.name)


def _late(pod: Pod, most: int, known: Exit) -> str:
    """Why it might not be done in time, from its own wish and from how its kind ended before."""
    if pod.grace_seconds > most:
        return f"asks for {length(pod.grace_seconds)} of grace and gets {length(most)}"
    given = min(pod.grace_seconds, most)
    if known.finished is not None and known.finished > given:
        return f"its kind took {length(known.finished)} before and gets {length(given)}"
    if known.killed is not None and known.killed >= given:
        return f"its kind was killed before after {length(known.killed)} and gets {length(given)}"
    return ""


def overridden(pods: Iterable[Pod], budgets: Budgets) -> tuple[Overridden, ...]:
    """Each budget over pods that would be told, those that allow too few first."""
    counts = Counter(name for pod in pods for name in budgets.covers.get(pod.uid, ()))
    found = [Overridden(space, name, number, budgets.allowed.get((space, name), 0)) for (space, name), number in counts.items()]
    return tuple(sorted(found, key=lambda one: (-one.over, one.namespace, one.name)))


def telling_seconds(nodes: int, pods: int, over: int, round_trip: float | None) -> float | None:
    """Until every pod has its SIGTERM, by the requests that it takes at the speed just measured. None where nothing was measured.

    Reading before and after the cordon, the cordons, Events and evictions, and deletions past the budgets, 64 at a time.
    """
    if round_trip is None:
        return None
    rounds = [*[nodes] * READS, nodes, nodes + pods, over]
    return round_trip * sum(-(-requests // IN_FLIGHT) for requests in rounds)


def length(seconds: float) -> str:
    """A length as a person says it: 45 s, 4:58, 2 h 10 min."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    hours, rest = divmod(whole // 60, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
