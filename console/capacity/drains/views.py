"""What a drain's step looks at, what it may ask for, and what may be answered. Frozen: a step changes nothing but its result."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from console.capacity.drains.verdicts import Fate
from console.kube.shapes import Absent, Blocked, Evicted


@dataclass(frozen=True, slots=True)
class NodeView:
    """The drain's own node. `ours`: its cordon carries our mark. `cause` and `deadline` are what its annotations say."""

    uid: str
    ready: bool | None
    unschedulable: bool
    ours: bool
    cause: str
    deadline: datetime | None
    finalizers: tuple[str, ...] = ()
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod bound to the node's name. `deletion_at` is when its grace ends, `deletion_grace` the seconds it was given."""

    uid: str
    namespace: str
    name: str
    owner_kind: str
    owner_name: str
    stays: bool  # of a DaemonSet, or a mirror pod
    finished: bool
    grace_seconds: int
    deletion_at: datetime | None = None
    deletion_grace: int | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    last_checkpoint: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One complete look. `node` is None where the drain's own node is gone, another one of its name included."""

    node: NodeView | None
    pods: tuple[PodView, ...]


@dataclass(frozen=True, slots=True)
class DrainView:
    """A Drain row and its verdicts, as far as deciding needs them. Field names are the row's."""

    id: UUID
    cause: str
    state: str
    started_at: datetime
    deadline: datetime
    node_uid: str
    due_at: datetime | None
    cordoned_at: datetime | None = None
    announced_at: datetime | None = None
    told_at: datetime | None = None
    emptied_at: datetime | None = None
    terminated_at: datetime | None = None
    removed_at: datetime | None = None
    pods_left: int = 0
    staying: int = 0
    note: str = ""
    fates: tuple[Fate, ...] = ()


@dataclass(frozen=True, slots=True)
class Cordon:
    """Close the node with cause and deadline. `mark=False` leaves a person's cordon theirs."""

    mark: bool


@dataclass(frozen=True, slots=True)
class Announce:
    """The public Event on the Node; its name derives from the drain's id."""


@dataclass(frozen=True, slots=True)
class Evict:
    fate: Fate
    grace: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Past the budget (with grace), or, once the machine is gone for certain, out of the list (grace 0)."""

    fate: Fate
    grace: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """End the machine at the provider. Answered with whether the provider confirms that it is gone."""


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Delete the Node object, by uid."""


@dataclass(frozen=True, slots=True)
class Unmark:
    """Take our marks off a node that a person has opened."""


Action = Cordon | Announce | Evict | Delete | Terminate | RemoveNode | Unmark


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that did not work, and why, for a person to read. `wait`: seconds for which the API asks not to be asked."""

    sentence: str
    wait: float = 0


Outcome = Evicted | Blocked | Absent | Failed | bool


@dataclass(frozen=True, slots=True)
class Step:
    """What the drain is now, and what to ask for next. `drain.due_at` is when to look again if nothing wakes it."""

    drain: DrainView
    actions: tuple[Action, ...] = ()
