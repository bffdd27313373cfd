"""What is new in the ledger, for whom: entries into `Told`, and the burst that they belong to opened or prolonged.

A stream's counter is taken last, under its lock, so whoever reads "head is N" sees every change up to N, also those of a
transaction that began long before (DESIGN 4). An entry that changes later comes by again under a new revision; `Told` knows it.
Two sweeps at once share the work: each locks one webhook and passes over those that the other holds.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from console.clusters.models import Cluster
from console.timeline.models import Entry, Stream
from console.webhooks.bursts import closes_at, step_after
from console.webhooks.groups import FAILING, WARNINGS, WORKS, group_of, reasons_of
from console.webhooks.models import Burst, Cursor, Told, Webhook

MOST_WEBHOOKS = 100  # read in one sweep; those that waited longest come first
MOST_STREAMS = 100  # of one webhook in one step, in one query
MOST_ENTRIES = 2000  # of one webhook in one step; the rest comes with the next sweep
# `Told` is kept for a day more than this (see `retention`), so what has been forgotten there is too old to be told here.
NEWS = timedelta(days=29)
LOUD = (Entry.Severity.WARNING, Entry.Severity.CRITICAL)

Found = tuple[int, str]  # an entry's id and reason


def read(now: datetime) -> None:
    """Take up what is new for every webhook that is on."""
    moved = Cursor.objects.filter(webhook=OuterRef("pk"), stream__revision__gt=F("revision"))
    known = Cursor.objects.filter(webhook=OuterRef(OuterRef("pk")), stream=OuterRef("pk"))
    unknown = Q(cluster=None) & Exists(Cluster.objects.filter(~Exists(known), project=OuterRef("project")))
    behind = Webhook.objects.filter(Exists(moved) | unknown, on=True).order_by(F("read_at").asc(nulls_first=True))
    for webhook_id in behind.values_list("pk", flat=True)[:MOST_WEBHOOKS]:
        _read_one(webhook_id, now)


def _read_one(webhook_id: UUID, now: datetime) -> None:
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update(skip_locked=True).filter(pk=webhook_id, on=True).first()
        if webhook is None:
            return  # another sweep is at it, or somebody has just switched it off
        keep_up(webhook, from_start=True)
        behind = Cursor.objects.filter(webhook=webhook, stream__revision__gt=F("revision")).select_related("stream")
        _take_up(webhook, _step(webhook, list(behind.order_by("pk")[:MOST_STREAMS]), now), now)
        Webhook.objects.filter(pk=webhook.pk).update(read_at=now)


def _step(webhook: Webhook, cursors: Sequence[Cursor], now: datetime) -> list[Found]:
    """What the webhook wants of these streams beyond its cursors, which move to the heads, or to where there was no more room."""
    if not cursors:
        return []
    spans = (Q(stream=one.stream_id, revision__gt=one.revision, revision__lte=one.stream.revision) for one in cursors)
    rows = (
        Entry.objects.filter(reduce(or_, spans), wanted(webhook), recorded_at__gte=max(webhook.begins_at, now - NEWS))
        .order_by("stream_id", "revision")
        .values_list("pk", "reason", "stream_id", "revision")[:MOST_ENTRIES]
    )
    found = list(rows)
    end = (found[-1][2], found[-1][3]) if len(found) == MOST_ENTRIES else None
    for cursor in cursors:
        cursor.revision = _read_to(cursor, end)
    Cursor.objects.bulk_create(cursors, update_conflicts=True, unique_fields=["id"], update_fields=["revision"])
    return [(pk, reason) for pk, reason, _, _ in found]


def _read_to(cursor: Cursor, end: tuple[UUID, int] | None) -> int:
    """How far its stream has been read, where streams were read one after the other, by id, up to `end` (None: all of them)."""
    if end is None or cursor.stream_id < end[0]:
        return cursor.stream.revision
    return end[1] if cursor.stream_id == end[0] else cursor.revision


def wanted(webhook: Webhook) -> Q:
    """Entries of the groups it has asked for; never what the timeline says of itself, which would go round in a circle."""
    asked = Q(reason__in=reasons_of(webhook.groups))
    if WARNINGS in webhook.groups:
        asked |= Q(severity__in=LOUD)
    return asked & ~Q(reason__in=(FAILING, WORKS), subject_uid=str(webhook.pk))


def _take_up(webhook: Webhook, found: Sequence[Found], now: datetime) -> None:
    """Each entry once for ever; the webhook is locked, so nobody else takes it up meanwhile."""
    known = set(Told.objects.filter(webhook=webhook, entry__in=[pk for pk, _ in found]).values_list("entry", flat=True))
    by_group: dict[str, list[int]] = defaultdict(list)
    for pk, reason in dict(found).items():
        if pk not in known:
            by_group[group_of(reason, webhook.groups)].append(pk)
    if not by_group:
        return
    Told.objects.bulk_create(
        Told(webhook=webhook, entry=pk, group=group, at=now) for group, entries in by_group.items() for pk in entries
    )
    bursts = {burst.group: burst for burst in Burst.objects.filter(webhook=webhook)}
    for group in by_group:
        _prolong(bursts.get(group) or Burst(webhook=webhook, group=group), now)


def _prolong(burst: Burst, now: datetime) -> None:
    if burst.opened_at is None:
        burst.step = step_after(now, burst.told_at, burst.step)
        burst.opened_at = now
    burst.closes_at = closes_at(burst.opened_at, now, burst.step)
    burst.save()


def scope(webhook: Webhook) -> Q:
    """The clusters that a webhook is about."""
    return Q(pk=webhook.cluster_id) if webhook.cluster_id else Q(project=webhook.project_id)


def begin(webhook: Webhook, now: datetime) -> None:
    """Read from now on; whatever was waiting to be told is forgotten. The caller holds the row, and saves it."""
    webhook.begins_at = now
    Cursor.objects.filter(webhook=webhook).delete()
    Told.objects.filter(webhook=webhook, delivery=None).delete()
    Burst.objects.filter(webhook=webhook).delete()
    keep_up(webhook)


def keep_up(webhook: Webhook, *, from_start: bool = False) -> None:
    """A cursor for each cluster that has none: at the end of its ledger, or at the start for one that came after the webhook."""
    known = Cursor.objects.filter(webhook=webhook).values("stream")
    streams = Stream.objects.filter(pk__in=Cluster.objects.filter(scope(webhook)).values("pk")).exclude(pk__in=known)
    Cursor.objects.bulk_create(
        Cursor(webhook=webhook, stream_id=pk, revision=0 if from_start else head)
        for pk, head in streams.values_list("pk", "revision")
    )
