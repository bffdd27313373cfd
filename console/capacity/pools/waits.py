"""What clusters wait for, as rows, and the one line of each timeline that says so and is kept up to date (not a line a try)."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from console.capacity.models import Wait
from console.clusters.models import Cluster, ComputeClass
from console.timeline.changes import Change
from console.timeline.models import Entry

STANDARD, PREEMPTIBLE = ComputeClass.STANDARD, ComputeClass.PREEMPTIBLE
Numbers = Mapping[tuple[UUID, ComputeClass], int]

REFUSED_FOR = timedelta(seconds=60)  # a cluster that the provider refuses is not asked for again sooner


def record(
    made: Change, clusters: Iterable[Cluster], numbers: Numbers, came: Iterable[UUID], step: int, next_try_at: datetime | None
) -> None:
    """Write what the locked clusters wait for now, in machines. `came` are those that just got some."""
    clusters = list(clusters)
    got = set(came)
    waits = {wait.cluster_id: wait for wait in Wait.objects.filter(cluster__in=[cluster.pk for cluster in clusters])}
    for cluster in clusters:
        standard, preemptible = numbers.get((cluster.pk, STANDARD), 0), numbers.get((cluster.pk, PREEMPTIBLE), 0)
        wait = waits.get(cluster.pk)
        if standard or preemptible:
            _begin_or_go_on(made, cluster, wait, standard, preemptible, step, next_try_at)
        elif wait is not None and (wait.standard or wait.preemptible):
            _end(made, cluster, wait, cluster.pk in got)


def refuse(made: Change, cluster: Cluster, why: str) -> None:
    """The provider will not give this cluster machines: leave it alone for a while, so that it does not hold up the pool."""
    Wait.objects.update_or_create(
        cluster=cluster,
        defaults={"refused_why": why[:300], "refused_until": made.now + REFUSED_FOR},
        create_defaults={"refused_why": why[:300], "refused_until": made.now + REFUSED_FOR, "since": made.now},
    )
    made.save(cluster.stream, cluster)


def _begin_or_go_on(
    made: Change, cluster: Cluster, wait: Wait | None, standard: int, preemptible: int, step: int, next_try_at: datetime | None
) -> None:
    wait = wait or Wait(cluster=cluster, since=made.now)
    if not (wait.standard or wait.preemptible):
        wait.since = made.now
    entry = next(iter(made.lock(Entry.objects.filter(pk=wait.entry_id))), None) if wait.entry_id else None
    message = sentence(wait.since, standard * step, preemptible * step, next_try_at)
    if entry is None:
        entry = made.entry(cluster.stream, "WaitingForCapacity", message, severity=Entry.Severity.WARNING)
        entry.save()  # numbered at the end of the change; its id is wanted now
    elif entry.message == message:
        return
    entry.message, entry.last_at = message, made.now
    made.save(cluster.stream, entry, "message", "last_at")
    made.save(cluster.stream, cluster)
    wait.standard, wait.preemptible, wait.entry_id = standard, preemptible, entry.pk
    wait.save()


def _end(made: Change, cluster: Cluster, wait: Wait, came: bool) -> None:
    if came:
        waited = made.now - wait.since
        minutes, seconds = divmod(int(waited.total_seconds()), 60)
        made.entry(
            cluster.stream,
            "CapacityReturned",
            f"Capacity is back after {minutes}:{seconds:02}: all that was waited for is asked for",
        )
    made.save(cluster.stream, cluster)
    if wait.refused_until is not None and made.now < wait.refused_until:
        wait.standard, wait.preemptible, wait.entry_id = 0, 0, None
        wait.save()
    else:
        wait.delete()


def sentence(since: datetime, standard: int, preemptible: int, next_try_at: datetime | None) -> str:
    """GPUs of both classes, since when, and when the next try is."""
    parts = [f"{gpus} {name} GPUs" for gpus, name in ((standard, STANDARD.value), (preemptible, PREEMPTIBLE.value)) if gpus]
    tries = f", next try {next_try_at:%H:%M:%S} UTC" if next_try_at else ""
    return f"Waiting for capacity since {since:%H:%M:%S} UTC: {' and '.join(parts)}{tries}"
