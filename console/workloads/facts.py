"""Pods folded by who started them: the facts from which a page says where a job stands. Frozen, and free of rows.

Everything the other pure parts decide (now, fit, commands) is decided from an `Owner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from console.clusters.models import ComputeClass

PREEMPTIBLE, STANDARD = ComputeClass.PREEMPTIBLE.value, ComputeClass.STANDARD.value

BARE = "Pod"  # kind of a workload that is a pod nobody makes anew
SERVES = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "RayService"})  # work without an end


class PodFacts(NamedTuple):
    """One pod: a plain tuple, because a page makes thousands of them. Up to `disrupted` the names are the model's."""

    uid: str
    name: str
    node_name: str = ""
    phase: str = "Running"
    gpus: int = 0
    wish: str = ""
    grace_seconds: int = 30
    started_at: datetime | None = None
    last_checkpoint: datetime | None = None
    checkpoint_seconds: float | None = None
    checkpoint_bytes: int | None = None
    why: str = ""
    waits_since: datetime | None = None
    deleting_since: datetime | None = None
    finished: bool = False
    exit_code: int | None = None
    disrupted: str = ""
    compute_class: str = ""  # of its node; '' where that is none of the GPU nodes we know, or it has none
    preempted: bool = False  # a preemption's drain has a verdict on it

    @property
    def waits(self) -> bool:
        """It has no node yet."""
        return not self.node_name and not self.finished

    @property
    def stuck(self) -> bool:
        """It has a node, and its container does not come up."""
        return bool(self.node_name and self.why) and not self.finished

    @property
    def failed(self) -> bool:
        return self.finished and self.phase == "Failed"

    @property
    def excused(self) -> bool:
        """Ended, but not by its own fault: its node was taken or shut down (kubernetes/kubernetes#113278)."""
        return self.failed and (self.preempted or bool(self.disrupted))


def ended_by(pods: Sequence[PodFacts]) -> str:
    """What ended these excused pods, as far as it is known: an eviction may be anybody's."""
    return "a preemption" if any(pod.preempted for pod in pods) else "an eviction or the end of its node"


@dataclass(frozen=True, slots=True)
class LastDrain:
    """What the last drains that met a workload made of its pods: verdicts with their numbers, and the last day's preemptions."""

    at: datetime
    cause: str
    verdicts: tuple[tuple[str, int], ...]
    preemptions: int

    @property
    def preempted(self) -> bool:
        return self.cause == "preempted"


@dataclass(frozen=True)
class Owner:
    """What a person started, with all its pods as last seen. What walks through all pods is worked out once: many ask for it."""

    id: UUID
    namespace: str
    kind: str
    name: str
    first_seen_at: datetime
    gone_at: datetime | None = None
    pods: tuple[PodFacts, ...] = ()
    drained: LastDrain | None = None

    @property
    def bare(self) -> bool:
        return self.kind == BARE

    @cached_property
    def active(self) -> tuple[PodFacts, ...]:
        """Pods that run, start, wait or stop; what is left over of ended ones counts nowhere."""
        return tuple(pod for pod in self.pods if not pod.finished)

    def on(self, compute_class: str) -> int:
        """How many of its active pods are on nodes of a class."""
        return sum(pod.compute_class == compute_class for pod in self.active)

    @property
    def gpus(self) -> int:
        return sum(pod.gpus for pod in self.active)

    @cached_property
    def last_checkpoint(self) -> datetime | None:
        """The newest that any of its pods tells of: in a collective job one often speaks for all."""
        told = [pod.last_checkpoint for pod in self.active or self.pods if pod.last_checkpoint]
        return max(told, default=None)

    @cached_property
    def runs_since(self) -> datetime | None:
        """Since when the oldest of its active pods runs."""
        return min((pod.started_at for pod in self.active if pod.started_at and pod.node_name), default=None)

    @property
    def unsaved_unknown(self) -> bool:
        """It does work that a reclaim could cost, and nothing says how much. What serves or waits has nothing to lose."""
        return self.last_checkpoint is None and self.runs_since is not None and self.kind not in SERVES

    @property
    def concerns_gpus(self) -> bool:
        """Whether it belongs on the page: GPUs, or a GPU node, now or when it was drained. The rest runs the cluster itself."""
        return self.drained is not None or any(pod.gpus or pod.compute_class or pod.waits for pod in self.pods)
