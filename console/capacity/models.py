"""Capacity: pools and their back-off, drains and what became of each pod, and the one switch that stops automation."""

import uuid

from django.db import models

from console.accounts.models import Project
from console.clusters.models import Cluster, GpuType, Machine, Region
from console.timeline.models import Revised, Stream


class Pool(Revised):
    """The machines of one GPU type in one region, and how long the next try is put off while nothing is free."""

    lock_rank = 10

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)  # also the id of its stream
    region = models.ForeignKey(Region, on_delete=models.PROTECT)
    gpu_type = models.ForeignKey(GpuType, on_delete=models.PROTECT)
    provider = models.CharField(max_length=16, default="simulated")
    due_at = models.DateTimeField(null=True)  # when to run again even if nothing asks (next try, give-up, pace)
    # what the provider said last
    total_machines = models.PositiveIntegerField(default=0)
    free_machines = models.PositiveIntegerField(default=0)
    owed_machines = models.PositiveIntegerField(default=0)  # standard demand of other tenants that waits for us to give back
    seen_version = models.BigIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)
    silent_since = models.DateTimeField(null=True)  # the provider does not answer
    # back-off while nothing is free
    waiting_since = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["region", "gpu_type"], name="pool_once")]

    @property
    def stream(self) -> uuid.UUID:
        return self.id


def new_pool_stream(pool: Pool) -> Stream:
    return Stream(id=pool.id, kind=Stream.Kind.POOL)


class PoolWake(models.Model):
    """A reason for another run of a pool's plan, written by the transaction that made it; the run deletes those it has read.

    Rows and not a counter on the pool, because an insert waits for nobody: a writer that already holds a cluster and its nodes
    may wake the pool without taking the pool's lock against the one order (pool, cluster, machine, node, drain).
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, db_constraint=False, related_name="wakes")
    at = models.DateTimeField()


class Wait(models.Model):
    """What a cluster cannot get just now. Machines, not GPUs; no row while nothing is waited for."""

    cluster = models.OneToOneField(Cluster, primary_key=True, on_delete=models.CASCADE, related_name="wait")
    since = models.DateTimeField()
    standard = models.PositiveIntegerField(default=0)
    preemptible = models.PositiveIntegerField(default=0)
    entry_id = models.BigIntegerField(null=True)  # the one row of the timeline that says so, kept up to date
    refused_why = models.CharField(max_length=300, blank=True)  # the provider refuses this cluster (not: has nothing free)
    refused_until = models.DateTimeField(null=True)  # until then it is not asked again


class Reclaim(models.Model):
    """One ask to take preemptible machines of a cluster back now, and what was answered. A drill ends with a report (`drill`)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="reclaims")
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=200)
    num_gpus = models.PositiveIntegerField(null=True)  # None: nodes were named
    drill = models.BooleanField(default=False)
    key = models.CharField(max_length=255, null=True)  # the caller's Idempotency-Key: the same key gets the same answer
    body_hash = models.CharField(max_length=64)  # of what was asked: the same key with another body is refused
    answer = models.JSONField()
    finished_at = models.DateTimeField(null=True)  # of a drill: its machines are gone and replaced

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "-asked_at"], name="reclaim_cluster_asked"),
            models.Index(fields=["id"], name="drill_running", condition=models.Q(drill=True, finished_at__isnull=True)),
        ]
        constraints = [models.UniqueConstraint(fields=["cluster", "key"], name="reclaim_once_per_key")]


class RefusedNotices(models.Model):
    """How often notices for nodes of a cluster were refused: a counter for each place they come from and each reason."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="refused_notices")
    source = models.CharField(max_length=8)  # asked: by a person or a system; node: a taint or condition of its own
    reason = models.CharField(max_length=20)
    count = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "source", "reason"], name="refused_notices_once")]


class Drain(Revised):
    """cordoned → announced → terminating → drained | timed out → removed, as a row that any worker can take further."""

    lock_rank = 60

    class Cause(models.TextChoices):
        PREEMPTED = "preempted"
        SCALED_DOWN = "scaled_down"
        REPAIR = "repair"

    class State(models.TextChoices):
        ASKED = "asked"  # committed; nothing sent yet
        CORDONED = "cordoned"
        ANNOUNCED = "announced"
        TERMINATING = "terminating"
        DRAINED = "drained"
        TIMED_OUT = "timed_out"
        REMOVED = "removed"
        STOPPED = "stopped"  # taken back by a person, or held by a budget at the deadline (not when preempted)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="drains")
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="drains")
    node_uid = models.CharField(max_length=64, blank=True)  # empty: the machine never became a node
    node_name = models.CharField(max_length=253)
    cause = models.CharField(max_length=12, choices=Cause)
    why = models.CharField(max_length=300)  # the sentence's second half: "atlas-serve needs 8 standard GPUs"
    asked_by = models.CharField(max_length=200, blank=True)
    reclaim = models.ForeignKey(Reclaim, null=True, on_delete=models.PROTECT, related_name="drains")
    state = models.CharField(max_length=12, choices=State, default=State.ASKED)
    started_at = models.DateTimeField()
    deadline = models.DateTimeField()
    due_at = models.DateTimeField(null=True)  # next step; None once removed or stopped
    cordoned_at = models.DateTimeField(null=True)
    announced_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)  # every evictable pod has been told
    emptied_at = models.DateTimeField(null=True)  # no evictable pod left
    terminated_at = models.DateTimeField(null=True)  # the provider confirmed
    removed_at = models.DateTimeField(null=True)
    pods_left = models.PositiveIntegerField(default=0)  # at the deadline
    staying = models.PositiveIntegerField(default=0)  # DaemonSet and mirror pods, which go with the node
    note = models.CharField(max_length=300, blank=True)  # what holds it just now, in a sentence

    OPEN = (State.ASKED, State.CORDONED, State.ANNOUNCED, State.TERMINATING, State.DRAINED, State.TIMED_OUT)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="drain_due", condition=models.Q(due_at__isnull=False)),
            models.Index(fields=["cluster", "revision"], name="drain_cluster_revision"),
            models.Index(fields=["cluster", "-started_at", "-id"], name="drain_cluster_started"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["machine"],
                condition=~models.Q(state__in=["removed", "stopped"]),
                name="one_open_drain_per_machine",
            )
        ]


class PodVerdict(models.Model):
    """What became of one pod of a drain. Shown with the drain's row, whose revision rises with it."""

    class Verdict(models.TextChoices):
        STOPPING = "stopping"  # told, not yet ended
        FINISHED = "finished"  # an observed terminated state
        KILLED = "killed"  # at the deadline
        BUDGET_OVERRIDDEN = "budget_overridden"
        NEVER_STOPPED = "never_stopped"
        UNKNOWN = "unknown"  # gone without an observed end
        BLOCKED = "blocked"  # a budget holds it (scaled down and repair)

    drain = models.ForeignKey(Drain, on_delete=models.CASCADE, related_name="verdicts")
    pod_uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    asked_grace = models.PositiveIntegerField()  # seconds, the pod's own
    given_grace = models.PositiveIntegerField()  # seconds, as sent
    told_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    budget = models.CharField(max_length=253, blank=True)
    verdict = models.CharField(max_length=18, choices=Verdict, default=Verdict.STOPPING)
    last_checkpoint = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["drain", "pod_uid"], name="verdict_once_per_pod")]


class Quota(models.Model):
    """Preemptible GPUs that all clusters of a project may ask for together; without a row settings.QUOTA_GPUS counts."""

    project = models.OneToOneField(Project, primary_key=True, on_delete=models.CASCADE, related_name="quota")
    gpus = models.PositiveIntegerField()
    set_by = models.CharField(max_length=200)
    set_at = models.DateTimeField()


class Automation(models.Model):
    """The stop switch: one row. While off, automation starts no launch, drain or repair; running preemption drains finish."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    on = models.BooleanField(default=True)
    changed_by = models.CharField(max_length=200, blank=True)
    changed_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_switch")]
