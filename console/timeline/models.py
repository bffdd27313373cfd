"""The ledger: streams that order every change, entries that say what happened, tombstones for what went.

A stream's id is the id of what it belongs to (cluster, pool) or INSTALLATION. Everything a browser shows live carries the
revision of its last change, so "what is newer than N" is one indexed query a kind (DESIGN 4).
"""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from console.timeline.text import Holds

models.TextField.register_lookup(Holds)

INSTALLATION = uuid.UUID("00000000-0000-4000-8000-000000000001")


class Stream(models.Model):
    """One per cluster, one per pool, one for the installation; `revision` counts every change to it."""

    class Kind(models.TextChoices):
        CLUSTER = "cluster"
        POOL = "pool"
        INSTALLATION = "installation"

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=12, choices=Kind)
    revision = models.BigIntegerField(default=0)
    epoch = models.UUIDField(default=uuid.uuid4)  # another epoch (after a restore) makes every browser reload


class Revised(models.Model):
    """A row that a live page shows. `lock_rank` is its place in the one order in which row locks are taken."""

    lock_rank: ClassVar[int]

    revision = models.BigIntegerField(default=0, editable=False)

    class Meta:
        abstract = True


class Entry(Revised):
    """One row of a timeline. Repeats of one Kubernetes Event are one row with a count."""

    lock_rank = 90
    ABOUT_NODES = ("Node", "Machine")  # subjects: a machine is a node that Kubernetes does not show yet

    class Severity(models.TextChoices):
        INFO = "info"
        WARNING = "warning"
        CRITICAL = "critical"

    class ActorKind(models.TextChoices):
        PERSON = "person"
        KEY = "key"
        SYSTEM = "system"
        KUBERNETES = "kubernetes"

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="entries", db_index=False)  # in those below
    at = models.DateTimeField()  # when it happened; never moves afterwards, so paging by (at, id) is stable
    recorded_at = models.DateTimeField()
    reason = models.CharField(max_length=128)
    severity = models.CharField(max_length=8, choices=Severity, default=Severity.INFO)
    subject_kind = models.CharField(max_length=64, blank=True)
    subject_name = models.CharField(max_length=253, blank=True)
    subject_uid = models.CharField(max_length=64, blank=True)
    message = models.TextField(blank=True)
    actor_kind = models.CharField(max_length=10, choices=ActorKind, default=ActorKind.SYSTEM)
    actor_name = models.CharField(max_length=200, blank=True)
    node_name = models.CharField(max_length=253, blank=True)  # the node it is about; of a pod's Event, where the pod runs
    compute_class = models.CharField(max_length=12, blank=True)  # of that node, as it was then
    source_uid = models.CharField(max_length=64, null=True)  # uid of the Kubernetes Event it came from or became
    own_event = models.CharField(max_length=253, null=True)  # name of the Event that we emit for it
    seen_at = models.DateTimeField(null=True)  # when Kubernetes showed our own Event back to us
    drain_id = models.UUIDField(null=True)  # the drain whose verdicts belong under this row
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["stream", "revision"], name="entry_stream_revision"),
            models.Index(fields=["stream", "-at", "-id"], name="entry_stream_at"),
            models.Index(  # the few about nodes among all: the API's node_lifecycle_events
                fields=["stream", "-at", "-id"],
                name="entry_about_nodes",
                condition=models.Q(subject_kind__in=("Node", "Machine")),
            ),
            models.Index(  # the few about one pod: a workload's own page
                fields=["stream", "subject_uid", "-at"],
                name="entry_about_pods",
                condition=models.Q(subject_kind="Pod"),
            ),
            models.Index(fields=["drain_id"], name="entry_drain", condition=models.Q(drain_id__isnull=False)),
            # One for each filter of which few rows may match; without, a page would read the whole ledger to find them.
            models.Index(fields=["stream", "reason", "-at", "-id"], name="entry_reason"),
            models.Index(fields=["stream", "node_name", "-at", "-id"], name="entry_node", condition=~models.Q(node_name="")),
            models.Index(
                fields=["stream", "compute_class", "-at", "-id"], name="entry_class", condition=~models.Q(compute_class="")
            ),
            models.Index(
                fields=["stream", "severity", "-at", "-id"], name="entry_severity", condition=~models.Q(severity="info")
            ),
            models.Index(
                fields=["stream", "actor_kind", "actor_name", "-at", "-id"],
                name="entry_actor",
                condition=models.Q(actor_kind__in=("person", "key")),
            ),
            models.Index(
                fields=["stream", "actor_kind", "-at", "-id"],
                name="entry_people",
                condition=models.Q(actor_kind__in=("person", "key")),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["stream", "source_uid"], name="entry_once_per_event"),
            models.UniqueConstraint(fields=["stream", "own_event"], name="entry_once_per_own_event"),
        ]


class Tombstone(models.Model):
    """What disappeared from a stream, kept 7 days so that a page that slept can take it away too."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="tombstones")
    kind = models.CharField(max_length=16)
    object_id = models.CharField(max_length=64)
    revision = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["stream", "revision"], name="tombstone_stream_revision"),
            models.Index(fields=["at"], name="tombstone_at"),
        ]


class Pruned(models.Model):
    """That entries of a stream went for their age, and when: so that a link to one of them can say so."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="pruned")
    at = models.DateTimeField()
    before = models.DateTimeField()  # what happened before this is gone
    first = models.BigIntegerField()  # lowest and highest id among them
    last = models.BigIntegerField()
    rows = models.PositiveBigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["stream", "last"], name="pruned_stream_last")]


class LastLook(models.Model):
    """How far a person has seen a stream: the newest entry that stood on a page they looked at. Never moves back."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="+")
    entry_id = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "stream"], name="one_last_look")]


class FoldedEvent(models.Model):
    """A Kubernetes Event that was counted into a row with others, so that a list that brings it again counts nothing twice."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="+")
    source_uid = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream", "source_uid"], name="folded_once")]
        indexes = [models.Index(fields=["at"], name="folded_at")]
