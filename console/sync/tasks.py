"""Celery heals: with the watch dead, every change is in the console within 75 s, once.

Whoever is not freshly watched is listed, through the same writer as the watch. At most one waits and one runs for
a cluster: what waits expires before the next is sent, and a run holds a lease (paperless-ngx/paperless-ngx#2604, PostHog/posthog
PR#17702). One kind is a step; where the first took long, the others are left to a task of their own.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID, uuid4

from celery import shared_task
from django.db import connection as database
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from console.clusters import leases, secrets
from console.clusters.leases import Held, LeaseLost
from console.clusters.models import Cluster, Lease
from console.http import Unavailable
from console.kube.client import Kube
from console.kube.errors import Forbidden, KubeError, Unreachable
from console.kube.kubeconfig import Connection
from console.kube.shapes import Kind, Listing
from console.sync import errands
from console.sync.errands import Errand
from console.sync.room import KINDS, Item, Room, Trouble, listed
from console.sync.shifts import LEASE as WATCH
from console.sync.watcher import is_of_use
from console.sync.writer import MOST, enter, write

log = logging.getLogger(__name__)

RELIST = "relist"  # the lease of a run
FRESH = timedelta(seconds=45)  # a watched picture younger than this needs no list
RECENT = timedelta(seconds=20)  # nor one this young, watched or not: a relist or a watch that has just died has proved it
EXPIRES = 20  # seconds; a run that waited longer is the next one's work
LIST_LIMIT = 12  # seconds for one kind's list; a task has 20 in all
STEP = 3  # seconds after which the kinds that are left go into a task of their own


@shared_task(name="sync.relist_all")
def relist_all() -> None:
    """Ask for a list of each cluster whose picture is not fresh."""
    now = timezone.now()
    proved = set(Cluster.objects.filter(proved_to__gte=now - RECENT).values_list("pk", flat=True))
    for cluster_id in stale(now):
        if cluster_id not in proved:
            ask(cluster_id, KINDS)


@shared_task(name="sync.relist_cluster")
def relist_cluster(cluster_id: str, kinds: Sequence[Kind] = KINDS) -> None:
    """List one cluster and write what differs."""
    found = UUID(cluster_id)
    if found not in stale(timezone.now(), [found]) and set(kinds) == set(KINDS):
        return
    held = leases.take(RELIST, found, f"relist:{uuid4().hex}")
    if held is None:
        return
    try:
        left = relist(found, held, kinds)
    except LeaseLost:
        log.warning("relist_overtaken", extra={"cluster": cluster_id})
        return
    finally:
        leases.release(held)
    if left:
        ask(found, left)


def ask(cluster_id: UUID, kinds: Sequence[Kind]) -> None:
    """Put one run into the slow queue."""
    relist_cluster.apply_async([str(cluster_id), list(kinds)], queue="bulk", expires=EXPIRES)


def stale(now: datetime, among: Sequence[UUID] | None = None) -> list[UUID]:
    """Clusters that need a list: nobody watches them, or their watch has not proved anything for a while and says no reason.
    One that has just come has as long for its first: nobody need ask for a large list while it is being read.

    With a look each 20 s, what a dead watch did not hear is in the console after 40 s and the time of a run; after a watch that
    holds its lease and hears nothing, after 65 s.
    """
    live = Lease.objects.filter(until__gt=Now())
    watched = Q(pk__in=live.filter(kind=WATCH).values("object_id"))
    recent = Q(proved_to__gte=now - FRESH) | Q(proved_to=None, created_at__gte=now - FRESH)
    well = watched & (recent | Q(unreachable_since__isnull=False))
    running = Q(pk__in=live.filter(kind=RELIST).values("object_id"))
    found = Cluster.objects.filter(kubeconfig__isnull=False).exclude(well).exclude(running)
    return list((found if among is None else found.filter(pk__in=among)).order_by("proved_to").values_list("pk", flat=True))


def relist(cluster_id: UUID, held: Held, kinds: Sequence[Kind]) -> list[Kind]:
    """List and write kind by kind; the kinds that are left where time is short. Raises LeaseLost."""
    started = monotonic()
    cluster = Cluster.objects.get(pk=cluster_id)
    room = enter(cluster_id, held)
    for done, kind in enumerate(kinds):
        if done and monotonic() - started > STEP:
            return list(kinds[done:])
        leases.renew(held)
        try:
            connection = secrets.connection(cluster)
            asked_at = timezone.now()
            listing, room.clock_offset = asyncio.run(_list(connection, kind))
        except KubeError as error:
            _fail(room, cluster, kind, error.sentence)
        except Unavailable as error:
            _fail(room, cluster, kind, error.message)
        else:
            asyncio.run(_errands(connection, cluster_id, _store(room, cluster, listing, asked_at)))
    return []


def _store(room: Room, cluster: Cluster, listing: Listing, asked_at: datetime) -> list[Errand]:
    """Write a list in pieces, keeping the lease. It proves what was when it was asked for, and no later.

    One that cannot be used (older than what was seen, or with unreadable objects) leaves the picture as old as it was: no watch
    is there to tell for how long this goes on, so trouble is dated from the last good one.
    """
    floor = room.floors.get(listing.kind, "")
    waiting: list[Item] = [_dated(item, cluster) for item in listed(listing, asked_at, floor) if is_of_use(item)]
    todo: list[Errand] = []
    renewed = monotonic()
    for first in range(0, len(waiting), MOST):
        if monotonic() - renewed > leases.RENEW_EVERY:
            leases.renew(room.held)
            renewed = monotonic()
        todo += write(room, waiting[first : first + MOST], timezone.now())
    return todo


def _dated(item: Item, cluster: Cluster) -> Item:
    return replace(item, since=cluster.proved_to or item.since) if isinstance(item, Trouble) else item


def _fail(room: Room, cluster: Cluster, kind: Kind, sentence: str) -> None:
    """A list that failed removes nothing. It is news where the picture has been old for a while."""
    now = timezone.now()
    write(room, [Trouble(kind, cluster.proved_to or now, sentence)], now)


async def _list(connection: Connection, kind: Kind) -> tuple[Listing, float]:
    try:
        async with asyncio.timeout(LIST_LIMIT), Kube(connection) as kube:
            return await kube.list(kind), kube.clock_offset
    except TimeoutError as error:
        raise Unreachable(f"The list of {kind} takes longer than {LIST_LIMIT} s.") from error


async def _errands(connection: Connection, cluster_id: UUID, todo: Sequence[Errand]) -> None:
    if not todo:
        return
    async with Kube(connection) as kube:
        for errand in todo:
            came = await errands.run(kube, errand)
            if came is not None:
                await asyncio.to_thread(_note, cluster_id, errand, came)


def _note(cluster_id: UUID, errand: Errand, came: datetime | Forbidden) -> None:
    """On a thread that ends with this loop, and its database connection before it."""
    try:
        errands.note(cluster_id, errand, came, timezone.now())
    finally:
        database.close()
