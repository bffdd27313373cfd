"""What a cluster is: where capacity can be, what it costs, the clusters, their machines, and what Kubernetes shows of them."""

import uuid
from datetime import datetime
from decimal import Decimal

from django.db import models

from console.accounts.models import Project
from console.timeline.models import Revised, Stream


class ComputeClass(models.TextChoices):
    """Of a machine, for its whole life; never converted in place."""

    STANDARD = "standard"
    PREEMPTIBLE = "preemptible"


class Region(models.Model):
    name = models.CharField(primary_key=True, max_length=32)
    title = models.CharField(max_length=80)


class GpuType(models.Model):
    name = models.CharField(primary_key=True, max_length=32)
    gpus_per_node = models.PositiveSmallIntegerField(default=8)


class Rate(models.Model):
    """On-demand price of one GPU for an hour, in US dollars, from an instant on. Preemptible is exactly half (DESIGN 11)."""

    gpu_type = models.ForeignKey(GpuType, on_delete=models.PROTECT)
    on_demand = models.DecimalField(max_digits=12, decimal_places=6)
    effective_from = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gpu_type", "effective_from"], name="rate_once_per_instant")]

    @property
    def preemptible(self) -> Decimal:
        return self.on_demand / 2


class Cluster(Revised):
    """One Kubernetes API with its GPU nodes. Its row is also the row of its panel: target, allocated, connection."""

    lock_rank = 20

    class Kind(models.TextChoices):
        KUBERNETES = "KUBERNETES"
        SLURM = "SLURM"

    class Status(models.TextChoices):
        CREATING = "creating"
        READY = "ready"
        DELETING = "deleting"

    class Mode(models.TextChoices):
        OBSERVE = "observe"  # everything is read and shown; no write verb is ever sent
        ACT = "act"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)  # also the id of its stream
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="clusters")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.KUBERNETES)
    region = models.ForeignKey(Region, on_delete=models.PROTECT)
    gpu_type = models.ForeignKey(GpuType, on_delete=models.PROTECT)
    status = models.CharField(max_length=10, choices=Status, default=Status.CREATING)
    status_why = models.CharField(max_length=300, blank=True)  # why creating goes on, in a sentence
    mode = models.CharField(max_length=8, choices=Mode, default=Mode.ACT)
    created_at = models.DateTimeField()
    first_ready_at = models.DateTimeField(null=True)
    kubeconfig = models.BinaryField(null=True)  # encrypted; see clusters.secrets
    kubernetes_version = models.CharField(max_length=32, blank=True)

    desired_standard_gpus = models.PositiveIntegerField()
    standard_set_at = models.DateTimeField(null=True)
    desired_preemptible_gpus = models.PositiveIntegerField(default=0)
    target_revision = models.BigIntegerField(default=0)  # stream revision of the last target change: compare-and-set
    target_set_by = models.CharField(max_length=200, blank=True)
    target_set_at = models.DateTimeField(null=True)
    allocated_preemptible_gpus = models.PositiveIntegerField(default=0)
    allocated_standard_gpus = models.PositiveIntegerField(default=0)

    proved_to = models.DateTimeField(null=True)  # up to when a complete picture exists; written at most each 10 s
    unreachable_since = models.DateTimeField(null=True)
    unreachable_why = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="cluster_name_once_per_project")]

    @property
    def stream(self) -> uuid.UUID:
        return self.id


class Level(models.Model):
    """Desired and allocated preemptible GPUs from an instant on; the chart's line and area. One row when either changes."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="levels")
    at = models.DateTimeField()
    desired = models.PositiveIntegerField()
    allocated = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["cluster", "at"], name="level_cluster_at")]


class Machine(Revised):
    """What the provider gives. Its id is the idempotency token of its launch; its times are written once (DESIGN 11)."""

    lock_rank = 30

    class State(models.TextChoices):
        ASKED = "asked"  # committed before `launch` is sent: looked up at the provider after any doubt
        BOOTING = "booting"  # the provider has it; no Ready node yet
        JOINED = "joined"  # its node was Ready once
        LEAVING = "leaving"  # committed before `terminate` is sent
        GONE = "gone"
        GIVEN_UP = "given_up"  # never became a Ready node in time; terminated, or never was

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="machines")
    region = models.ForeignKey(Region, on_delete=models.PROTECT)
    gpu_type = models.ForeignKey(GpuType, on_delete=models.PROTECT)
    gpus = models.PositiveSmallIntegerField(default=8)
    compute_class = models.CharField(max_length=12, choices=ComputeClass)
    node_name = models.CharField(max_length=253)
    provider_id = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.ASKED)
    why_gone = models.CharField(max_length=300, blank=True)
    asked_at = models.DateTimeField()
    joined_at = models.DateTimeField(null=True)  # its Node was first seen
    first_ready_at = models.DateTimeField(null=True)
    drain_started_at = models.DateTimeField(null=True)
    last_proof_at = models.DateTimeField(null=True)  # last instant at which it was known to be alive, when it was lost
    gone_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "revision"], name="machine_cluster_revision"),
            models.Index(  # the API's deleted nodes, newest first
                fields=["cluster", "-gone_at"], name="machine_cluster_gone", condition=models.Q(gone_at__isnull=False)
            ),
            models.Index(  # the few that are here among all that ever were
                fields=["region", "gpu_type"],
                name="machine_here",
                condition=models.Q(state__in=["asked", "booting", "joined", "leaving"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "node_name"],
                condition=~models.Q(state__in=["gone", "given_up"]),
                name="machine_node_name_once_at_a_time",
            )
        ]

    ALIVE = (State.ASKED, State.BOOTING, State.JOINED)  # counts toward what was asked for, unless draining


class Node(Revised):
    """A Kubernetes Node as last seen. Identity is the uid; a new uid under an old name is another node."""

    lock_rank = 40

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    machine = models.ForeignKey(Machine, null=True, on_delete=models.SET_NULL, related_name="nodes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    compute_class = models.CharField(
        max_length=12, choices=ComputeClass
    )  # the machine's; the label's only where no machine is ours
    gpus = models.PositiveSmallIntegerField()
    ready = models.BooleanField(null=True)  # None: Kubernetes says Unknown
    ready_since = models.DateTimeField(null=True)  # since when `ready` is what it is
    not_ready_why = models.CharField(max_length=300, blank=True)
    unschedulable = models.BooleanField(default=False)
    cordoned_by = models.CharField(max_length=200, blank=True)  # our mark's value; empty on a person's cordon by kubectl
    draining = models.BooleanField(default=False)  # a drain of ours is open
    startup_pending = models.BooleanField(default=False)
    notice = models.CharField(max_length=64, blank=True)  # the cloud's word that it goes: a name in fixtures/notices.json
    created_at = models.DateTimeField()
    kubelet_version = models.CharField(max_length=32, blank=True)
    internal_ip = models.CharField(max_length=45, blank=True)
    resource_version = models.CharField(max_length=32)

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "revision"], name="node_cluster_revision"),
            models.Index(fields=["cluster"], name="node_noticed", condition=~models.Q(notice="")),
        ]
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="node_once_per_uid")]

    @property
    def allocated(self) -> bool:
        """Counts in `allocated`: Ready, not draining, startup done (DESIGN 6)."""
        return self.ready is True and not self.draining and not self.startup_pending


class Workload(Revised):
    """What a person started: the owner of pods, or a bare pod (kind Pod). Its revision is that of the last change to its pods.

    It outlives its pods for a day, so that a job that is gone is said to be gone. DaemonSets and mirror pods have none: they
    belong to the node.
    """

    lock_rank = 50

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="workloads")
    namespace = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    first_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)  # since when it has no pod

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "revision"], name="workload_cluster_revision"),
            models.Index(fields=["cluster", "-first_seen_at", "-id"], name="workload_cluster_seen"),
            models.Index(fields=["gone_at"], name="workload_gone", condition=models.Q(gone_at__isnull=False)),
        ]
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace", "kind", "name"], name="workload_once")]


class Pod(models.Model):
    """A pod on a node, or one that waits for a GPU node, as far as drains, victims and pages need it.

    Not shown by itself, so it has no revision: its workload has.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods")
    workload = models.ForeignKey(Workload, null=True, on_delete=models.SET_NULL, related_name="pods")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253)  # empty while it waits for one
    phase = models.CharField(max_length=16)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    daemonset = models.BooleanField(default=False)
    mirror = models.BooleanField(default=False)
    gpus = models.PositiveIntegerField(default=0)
    wish = models.CharField(max_length=9, blank=True)  # of preemptible nodes: see kube.shapes.ClassWish
    grace_seconds = models.PositiveIntegerField(default=30)
    started_at = models.DateTimeField(null=True)
    last_checkpoint = models.DateTimeField(null=True)  # tenants' word, clamped to [started_at, seen]
    checkpoint_seconds = models.FloatField(null=True)  # tenants' word on one save, and on its size
    checkpoint_bytes = models.BigIntegerField(null=True)
    why = models.CharField(max_length=500, blank=True)  # why it does not run, in Kubernetes' words
    waits_since = models.DateTimeField(null=True)
    deleting_since = models.DateTimeField(null=True)
    finished = models.BooleanField(default=False)
    exit_code = models.IntegerField(null=True)
    disrupted = models.CharField(max_length=63, blank=True)  # for whose sake it was ended, where that was not its own

    class Meta:
        indexes = [models.Index(fields=["cluster", "node_name"], name="pod_cluster_node")]
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="pod_once_per_uid")]


class KindState(models.Model):
    """How far the picture of one kind (nodes, pods, events) in one cluster reaches. Never written per heartbeat."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="kind_states")
    kind = models.CharField(max_length=32)
    resource_version = models.CharField(max_length=32, blank=True)
    complete_at = models.DateTimeField(null=True)  # last complete list
    error = models.CharField(max_length=300, blank=True)
    error_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="kind_state_once")]


class Lease(models.Model):
    """Who runs something now. Taken by compare-and-set; each take-over raises the fence, and late writers are refused by it."""

    kind = models.CharField(max_length=16)  # pool | drains | watch | create
    object_id = models.UUIDField()
    owner = models.CharField(max_length=100)
    until = models.DateTimeField()
    fence = models.BigIntegerField(default=1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "object_id"], name="lease_once")]


def rate_at(rates: "list[Rate]", moment: datetime) -> Rate | None:
    """The rate in force at an instant: the latest that had taken effect."""
    in_force = [rate for rate in rates if rate.effective_from <= moment]
    return max(in_force, key=lambda rate: rate.effective_from, default=None)


def new_stream(cluster: Cluster) -> Stream:
    return Stream(id=cluster.id, kind=Stream.Kind.CLUSTER)
