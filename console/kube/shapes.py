"""What comes out of Kubernetes: frozen, typed, and already cleaned.

Everyone above reads these and never raw JSON. Text in them is safe to store (no NUL, no lone surrogate) but is still a stranger's
text: escape it. Every instant is aware and in UTC; a zero or absent time is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["nodes", "pods", "events", "poddisruptionbudgets", "leases", "namespaces"]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
# Of preemptible nodes; "misaimed" asks for a class that no node carries, such as standard: those have no label.
ClassWish = Literal["", "required", "preferred", "refused", "misaimed"]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a node. `status` is True, False or Unknown, as text; `since` its last transition."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A Node. `ready` is None where Kubernetes says Unknown or nothing; `gpus` is what is allocatable."""

    uid: str
    name: str
    resource_version: str
    created_at: datetime | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool | None
    ready_since: datetime | None
    gpus: int
    kubelet_version: str
    internal_ip: str
    deletion_at: datetime | None
    finalizers: tuple[str, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class PodShape:
    """A Pod. The owner is the controlling one: a pod without `owner_kind` is bare, nobody makes it anew.

    `grace_seconds` is what it asks for in its spec (Kubernetes' default 30); `deletion_grace` what a running deletion gives it.
    `exit_code` is that of the container that failed first, else of the one that ended last; None while none has ended.
    Where a Deployment or a RayJob stands behind it, that is the owner: what a person started. `last_checkpoint` is the tenant's
    word: clamp it before deciding by it. So are `checkpoint_seconds` and `checkpoint_bytes`, the length and size of a save, held
    to what can be. `why` says why it does not run (the scheduler's words, or what its container waits for), `disrupted` for whose
    sake it was ended, where that was not its own.
    """

    uid: str
    namespace: str
    name: str
    resource_version: str
    node_name: str
    phase: str
    owner_kind: str
    owner_name: str
    daemonset: bool
    mirror: bool
    created_at: datetime | None
    started_at: datetime | None
    ready: bool
    deletion_at: datetime | None
    deletion_grace: int | None
    grace_seconds: int
    labels: Mapping[str, str]
    last_checkpoint: datetime | None
    finished: bool
    ended_at: datetime | None
    exit_code: int | None
    reason: str
    gpus: int
    prefers: Mapping[str, str]
    finalizers: tuple[str, ...]
    wish: ClassWish = ""
    why: str = ""
    waits_since: datetime | None = None
    disrupted: str = ""
    checkpoint_seconds: float | None = None
    checkpoint_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class EventShape:
    """An Event. A repeat is the same uid with a higher `count`; a new uid is a new thing.

    `at` is the first of eventTime, series.lastObservedTime, lastTimestamp, creationTimestamp that says something; `last_at` the
    latest of them. `from_future` marks an `at` later than our clock at receipt: show it so, and clamp it for order.
    """

    uid: str
    namespace: str
    name: str
    resource_version: str
    type: str
    reason: str
    message: str
    count: int
    first_at: datetime
    last_at: datetime
    at: datetime
    from_future: bool
    reporting_component: str
    involved_kind: str
    involved_name: str
    involved_namespace: str
    involved_uid: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a label selector; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BudgetShape:
    """A PodDisruptionBudget. `disruptions_allowed` is how many of its pods may be evicted now."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    match_labels: Mapping[str, str]
    match_expressions: tuple[Requirement, ...]
    disruptions_allowed: int


@dataclass(frozen=True, slots=True)
class LeaseShape:
    """A Lease; in kube-node-lease its `renew_time` is a node's last proof of life."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    renew_time: datetime | None


@dataclass(frozen=True, slots=True)
class NamespaceShape:
    """A Namespace; `phase` is Active or Terminating."""

    uid: str
    name: str
    resource_version: str
    phase: str


Shape = NodeShape | PodShape | EventShape | BudgetShape | LeaseShape | NamespaceShape


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete list at one version. With anything in `broken` it is not complete: remove nothing because of it."""

    kind: Kind
    resource_version: str
    items: tuple[Shape, ...]
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One change as the watch told it. Of a deletion, `shape` is the object's last state."""

    kind: Kind
    type: ChangeType
    shape: Shape


@dataclass(frozen=True, slots=True)
class Evicted:
    """The API took the eviction: the pod has been told, or was already going."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A disruption budget refused. `budgets` are the names the API gave (it may give none), `message` its words."""

    budgets: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The pod is gone, or another one has its name now."""
