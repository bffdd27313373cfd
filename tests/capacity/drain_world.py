"""A node, its pods and its machine, small enough to run thousands of drains through `step` and `learn` in a test."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from console.capacity.drains.step import learn, step
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
    Terminate,
    Unmark,
)
from console.capacity.models import Drain
from console.kube.shapes import Absent, Blocked, Evicted

START = datetime(2026, 11, 12, 14, 1, 31, tzinfo=UTC)
OPEN = set(Drain.OPEN)


@dataclass
class Pod:
    """`stops_after` seconds from SIGTERM, with `code`; None: it has to be killed. `budget` refuses its eviction while set."""

    name: str
    grace: int = 30
    stops_after: float | None = 5
    code: int = 0
    budget: str = ""
    owner: str = "train"
    stays: bool = False
    finished: bool = False
    hangs: bool = False  # not even SIGKILL ends it
    vanishes: bool = False  # its end is not to be seen: the object is gone when it stops
    lingers: float = 0  # seconds for which the ended pod stays in the list
    told_at: datetime | None = None
    given: int | None = None
    tellings: list[tuple[str, int, datetime]] = field(default_factory=list)

    @property
    def uid(self) -> str:
        return f"uid-{self.name}"

    def stopped_at(self) -> datetime | None:
        """When its process ends: by itself, or killed at the end of its grace."""
        if self.told_at is None or self.given is None or self.hangs:
            return None
        after = self.given if self.stops_after is None else min(self.stops_after, self.given)
        return self.told_at + timedelta(seconds=after)


@dataclass
class World:
    pods: list[Pod]
    now: datetime = START
    node_there: bool = True
    ready: bool = True  # a kubelet that answers; else no pod ever ends
    unschedulable: bool = False
    mark: bool = False
    unclosable: str = ""  # why each cordon is refused
    cause: str = ""
    deadline: datetime | None = None
    announced: int = 0
    terminating_since: datetime | None = None
    confirm_after: float = 1
    removed: set[str] = field(default_factory=set)
    log: list[tuple[datetime, str, str]] = field(default_factory=list)

    @property
    def machine_gone(self) -> bool:
        since = self.terminating_since
        return since is not None and self.now >= since + timedelta(seconds=self.confirm_after)

    def _reported(self, stopped: datetime) -> bool:
        """Whether a kubelet was there to see it stop."""
        since = self.terminating_since
        return self.ready and (since is None or stopped < since + timedelta(seconds=self.confirm_after))

    def view(self, pod: Pod) -> PodView | None:
        if pod.uid in self.removed:
            return None
        stopped = pod.stopped_at()
        ended = stopped is not None and stopped <= self.now and self._reported(stopped)
        if ended and stopped is not None and (pod.vanishes or self.now > stopped + timedelta(seconds=pod.lingers)):
            self.removed.add(pod.uid)
            if pod.vanishes or pod.lingers == 0:
                return None
        killed = ended and (pod.stops_after is None or (pod.given is not None and pod.stops_after > pod.given))
        ends_at = pod.told_at + timedelta(seconds=pod.given) if pod.told_at and pod.given is not None else None
        return PodView(
            uid=pod.uid,
            namespace="team",
            name=pod.name,
            owner_kind="Job",
            owner_name=pod.owner,
            stays=pod.stays,
            finished=pod.finished or ended,
            grace_seconds=pod.grace,
            deletion_at=ends_at,
            deletion_grace=pod.given,
            ended_at=stopped if ended else None,
            exit_code=(137 if killed else pod.code) if ended else None,
        )

    def look(self) -> Seen:
        node = None
        if self.node_there:
            node = NodeView("node-1", self.ready, self.unschedulable, self.mark, self.cause, self.deadline)
        views = [self.view(pod) for pod in self.pods]
        return Seen(node, tuple(view for view in views if view is not None))

    def do(self, drain: DrainView, action: Action) -> Outcome:
        self.log.append((self.now, type(action).__name__, getattr(getattr(action, "fate", None), "name", "")))
        match action:
            case Cordon() if self.unclosable:
                return Failed(self.unclosable)
            case Cordon(mark):
                self.unschedulable, self.mark = True, self.mark or mark
                self.cause, self.deadline = drain.cause, drain.deadline
                return True
            case Announce():
                self.announced += 1
                return True
            case Evict(fate, grace):
                pod = self.pod(fate.name)
                pod.tellings.append(("evict", grace, self.now))
                if pod.uid in self.removed:
                    return Absent()
                if pod.budget and pod.told_at is None:
                    return Blocked((pod.budget,), "")
                self._tell(pod, grace)
                return Evicted()
            case Delete(fate, grace):
                pod = self.pod(fate.name)
                pod.tellings.append(("delete", grace, self.now))
                if pod.uid in self.removed:
                    return False
                if grace == 0:
                    assert self.machine_gone, "grace 0 while the machine may still run"
                    assert not self.node_there, "grace 0 before the Node was deleted"
                    self.removed.add(pod.uid)
                else:
                    self._tell(pod, grace)
                return True
            case Terminate():
                self.terminating_since = self.terminating_since or self.now
                return self.machine_gone
            case RemoveNode():
                assert self.machine_gone, "the Node was deleted while the machine may still run"
                self.node_there = False
                return True
            case Unmark():
                self.mark, self.cause, self.deadline = False, "", None
                return True

    def _tell(self, pod: Pod, grace: int) -> None:
        assert grace >= 1
        if pod.told_at is None:
            pod.told_at, pod.given = self.now, grace

    def pod(self, name: str) -> Pod:
        return next(pod for pod in self.pods if pod.name == name)

    def left(self) -> list[Pod]:
        """The evictable pods whose process still runs."""
        views = [(pod, self.view(pod)) for pod in self.pods]
        return [pod for pod, view in views if view is not None and not view.stays and not view.finished]


def new(cause: str = Drain.Cause.PREEMPTED, seconds: int = 300) -> DrainView:
    return DrainView(
        id=UUID(int=1),
        cause=cause,
        state=Drain.State.ASKED,
        started_at=START,
        deadline=START + timedelta(seconds=seconds),
        node_uid="node-1",
        due_at=START,
    )


def round_of(world: World, drain: DrainView, *, blind: bool = False) -> DrainView:
    """One round without anything going wrong."""
    found = step(drain, None if blind else world.look(), world.now)
    answers = [(action, world.do(found.drain, action), world.now) for action in found.actions]
    return learn(found.drain, answers, world.now)


def run(world: World, drain: DrainView, rounds: int = 400) -> DrainView:
    """Until nothing is due any more; time jumps to when the drain wants to look again."""
    for _ in range(rounds):
        if drain.due_at is None:
            return drain
        world.now = max(world.now, drain.due_at)
        drain = round_of(world, drain)
    raise AssertionError(f"never ends: {drain}")


__all__ = ["OPEN", "START", "Failed", "Pod", "World", "new", "round_of", "run"]
