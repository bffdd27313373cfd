"""The ledger: streams that order every change, entries that say what happened, tombstones for what went.

A stream's id is the id of what it belongs to (cluster, pool) or INSTALLATION. Everything a browser shows live carries the
revision of its last change, so "what is newer than N" is one indexed query a kind (DESIGN 4).
"""

import uuid
from typing import ClassVar

from django.db import models

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

    class Severity(models.TextChoices):
        INFO = "info"
        WARNING = "warning"
        CRITICAL = "critical"

    class ActorKind(models.TextChoices):
        PERSON = "person"
        KEY = "key"
        SYSTEM = "system"
        KUBERNETES = "kubernetes"

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="entries")
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
            models.Index(fields=["drain_id"], name="entry_drain", condition=models.Q(drain_id__isnull=False)),
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
        indexes = [models.Index(fields=["stream", "revision"], name="tombstone_stream_revision")]
