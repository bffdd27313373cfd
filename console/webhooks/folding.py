"""Bursts that are over, each into one message: a delivery row with its body, and every entry marked with it in the same step."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Count, IntegerField, Max, Min, QuerySet, Value, When

from console.clusters.models import Cluster
from console.timeline.models import Entry
from console.webhooks import bodies
from console.webhooks.message import Item, Message, Place, Tally, summary
from console.webhooks.models import Burst, Delivery, Told, Webhook

MOST = 100  # bursts folded in one sweep
PREEMPTED = "TogetherPreempted"
GRAVITY = Case(
    When(severity=Entry.Severity.CRITICAL, then=Value(0)),
    When(severity=Entry.Severity.WARNING, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)


def fold(now: datetime) -> None:
    """Make a message of every burst that is over. A webhook that somebody else holds is left to the next sweep."""
    due = Burst.objects.filter(closes_at__lte=now, webhook__on=True).order_by("closes_at")
    for burst_id, webhook_id in due.values_list("pk", "webhook_id")[:MOST]:
        with transaction.atomic():
            held = Webhook.objects.select_for_update(skip_locked=True, of=("self",)).select_related("project")
            webhook = held.filter(pk=webhook_id).first()
            burst = Burst.objects.filter(pk=burst_id, closes_at__lte=now).first()
            if webhook is not None and burst is not None:
                _fold_one(webhook, burst, now)


def _fold_one(webhook: Webhook, burst: Burst, now: datetime) -> None:
    open_rows = Told.objects.filter(webhook=webhook, group=burst.group, delivery=None)
    ends = open_rows.aggregate(number=Count("pk"), first=Min("entry"), last=Max("entry"))
    burst.opened_at, burst.closes_at, burst.told_at = None, None, now
    burst.save()
    if not ends["number"]:
        return
    delivery = Delivery(webhook=webhook, group=burst.group, made_at=now, due_at=now)
    entries = Entry.objects.filter(pk__in=open_rows.values("entry"))
    tallies, items = _contents(entries)
    message = Message(
        id=delivery.pk,
        at=now,
        webhook=(webhook.pk, webhook.name),
        project=(webhook.project.pk, webhook.project.name),
        group=burst.group,
        number=ends["number"],
        first_entry=ends["first"],
        last_entry=ends["last"],
        tallies=tallies,
        items=items,
    )
    write = bodies.as_slack if webhook.kind == Webhook.Kind.SLACK else bodies.as_json
    delivery.summary, delivery.body = summary(message), write(message, link)
    delivery.first_entry, delivery.last_entry, delivery.entries = ends["first"], ends["last"], ends["number"]
    delivery.save(force_insert=True)
    open_rows.update(delivery=delivery)


def _contents(entries: QuerySet[Entry]) -> tuple[list[Tally], list[Item]]:
    """Numbers of all, and the first of them, whatever their number."""
    by_stream = entries.values("reason", "stream_id").annotate(number=Count("pk")).order_by("-number", "reason")
    counts = list(by_stream.values_list("reason", "stream_id", "number"))
    first = list(entries.annotate(gravity=GRAVITY).order_by("gravity", "at", "pk")[: bodies.MOST_ITEMS])
    wanted = {stream for _, stream, _ in counts}
    names = dict(Cluster.objects.filter(pk__in=wanted).values_list("pk", "name"))
    places = {pk: Place(pk, names.get(pk, "a deleted cluster")) for pk in wanted}
    return _tallies(counts, places, entries), [_item(entry, places[entry.stream_id]) for entry in first]


def _tallies(counts: Iterable[tuple[str, UUID, int]], places: Mapping[UUID, Place], entries: QuerySet[Entry]) -> list[Tally]:
    numbers: Counter[str] = Counter()
    where: dict[str, list[Place]] = defaultdict(list)
    for reason, stream, number in counts:
        numbers[reason] += number
        where[reason].append(places[stream])
    gpus, deadlines = _preempted(entries) if PREEMPTED in numbers else (0, ())
    return [
        Tally(reason, number, tuple(where[reason]), *((gpus, deadlines) if reason == PREEMPTED else ()))
        for reason, number in numbers.most_common()
    ]


def _preempted(entries: QuerySet[Entry]) -> tuple[int, tuple[datetime, ...]]:
    """GPUs in all, first and last deadline. A Kubernetes Event may carry our reason, so its data is only looked at."""
    gpus, deadlines = 0, set()
    for data in entries.filter(reason=PREEMPTED, drain_id__isnull=False).values_list("data", flat=True).iterator():
        gpus += int(data["gpus"])
        deadlines.add(datetime.fromisoformat(data["deadline"]))
    return gpus, (min(deadlines), max(deadlines)) if deadlines else ()


def _item(entry: Entry, place: Place) -> Item:
    return Item(
        id=entry.pk,
        cluster=place,
        reason=entry.reason,
        severity=entry.severity,
        subject=(entry.subject_kind, entry.subject_name, entry.subject_uid),
        actor=entry.actor_name,
        message=entry.message,
        at=entry.at,
        count=entry.count,
    )


def link(cluster_id: UUID, entry_id: int | None) -> str:
    """A cluster's timeline, or one entry in it."""
    place = f"/{entry_id}#e{entry_id}" if entry_id is not None else ""
    return f"{settings.PUBLIC_URL}/clusters/{cluster_id}/timeline{place}"
