"""Who is told what, how far each has read the ledger, what waits to be told, and every message with its tries.

Nothing here is written by the engine: a sweep reads the ledger behind it. What is due says so in its own row (DESIGN 4).
"""

import uuid

from django.db import models

from console.accounts.models import Project
from console.clusters.models import Cluster
from console.timeline.models import Stream


class Webhook(models.Model):
    """Somebody else's system that is told. Address and secret are encrypted: a Slack address is itself a secret."""

    class Kind(models.TextChoices):
        SLACK = "slack", "Slack-compatible"
        JSON = "json", "JSON"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="webhooks")  # None: all of the project
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=80)
    address = models.TextField()  # encrypted
    host = models.CharField(max_length=253)  # what everybody may see of the address
    tail = models.CharField(max_length=4, blank=True)
    secret = models.TextField()  # encrypted
    old_secret = models.TextField(blank=True)  # encrypted; signs too until `old_until`, so that a receiver can change over
    old_until = models.DateTimeField(null=True)
    groups = models.JSONField(default=list)  # keys of `groups.GROUPS`
    on = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    begins_at = models.DateTimeField()  # entries recorded before are history: when it was made, or last switched on
    read_at = models.DateTimeField(null=True)  # when the ledger was last read for it

    waits_until = models.DateTimeField(null=True)  # the receiver asked for a pause
    failing_since = models.DateTimeField(null=True)  # the first try that failed since one was delivered
    said_failing_at = models.DateTimeField(null=True)  # a message was given up and the timeline says so; None: it is well
    problem = models.CharField(max_length=300, blank=True)  # of the last try, if that failed
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="webhook_name_once_per_project")]


class Cursor(models.Model):
    """How far a webhook has read a cluster's ledger: every change up to `revision` has been looked at."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="cursors")
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="+")
    revision = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["webhook", "stream"], name="webhook_cursor_once")]


class Burst(models.Model):
    """Entries of one group that are being folded into one message; between two bursts, when the last was told."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="bursts")
    group = models.CharField(max_length=16)
    step = models.PositiveSmallIntegerField(default=0)  # of the flood it belongs to (see `bursts`)
    opened_at = models.DateTimeField(null=True)  # None: nothing waits
    closes_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["webhook", "group"], name="webhook_burst_once")]
        indexes = [models.Index(fields=["closes_at"], name="webhook_burst_due", condition=models.Q(closes_at__isnull=False))]


class Delivery(models.Model):
    """One message. Its id goes with every try, so that a receiver can tell a repeat; its body never changes."""

    class State(models.TextChoices):
        WAITING = "waiting"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    group = models.CharField(max_length=16, blank=True)  # empty: a test
    summary = models.CharField(max_length=300)
    body = models.TextField()
    first_entry = models.BigIntegerField(null=True)
    last_entry = models.BigIntegerField(null=True)
    entries = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    due_at = models.DateTimeField(null=True)  # while sending: when somebody else may take it; None: it has ended
    fence = models.PositiveIntegerField(default=0)  # raised by whoever takes it; a late writer's no longer fits
    tries = models.PositiveSmallIntegerField(default=0)  # since it was made, or last sent again by hand
    log = models.JSONField(default=list)  # the latest tries: at, status, ms, problem, said
    status = models.PositiveSmallIntegerField(null=True)
    took_ms = models.PositiveIntegerField(null=True)
    problem = models.CharField(max_length=300, blank=True)
    ended_at = models.DateTimeField(null=True)
    resent_by = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["webhook", "-made_at", "-id"], name="delivery_newest"),
            models.Index(fields=["due_at"], name="delivery_due", condition=models.Q(due_at__isnull=False)),
            models.Index(fields=["made_at"], name="delivery_made"),
        ]


class Told(models.Model):
    """An entry that a webhook has taken up, once for ever, and the message it went into (None: still being folded)."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="told")
    entry = models.BigIntegerField()  # no foreign key: the ledger drops whole months
    group = models.CharField(max_length=16)
    at = models.DateTimeField()
    delivery = models.ForeignKey(Delivery, null=True, on_delete=models.CASCADE, related_name="told")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["webhook", "entry"], name="webhook_told_once")]
        indexes = [
            models.Index(fields=["webhook", "group"], name="told_open", condition=models.Q(delivery__isnull=True)),
            models.Index(fields=["at"], name="told_at"),
        ]
