"""Each second: tell workers what is due in any row, and look whether the provider's numbers have moved.

It only sends hints, so two sweeps at once, or none for a night, do no harm (celery/celery#2856): whoever gets a hint takes a
lease and reads what is due. One request to each provider covers all of its pools, so that capacity that returns, or a machine
that is owed, wakes its pool within a second and costs nothing in between.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from console.capacity.enqueue import enqueue
from console.capacity.models import Drain, Pool, PoolWake
from console.capacity.pools.wakes import RECONCILE, wake
from console.capacity.providers import provider as provider_named
from console.capacity.providers.base import PoolState, Provider, ProviderError
from console.capacity.reclaims import drills
from console.capacity.reclaims.notices import heed_waiting
from console.clusters.models import Cluster
from console.timeline.changes import change

DRIVE, CREATE = "capacity.drive_drains", "capacity.create_cluster"
MOST = 1000  # due drains looked at in one sweep; the rest are due in the next
POLL_LIMIT = 0.8  # seconds: a provider that is slow is asked again in the next sweep

log = logging.getLogger(__name__)
Hint = tuple[str, str]


def due(now: datetime) -> list[Hint]:
    """Task and id of everything due. Rows that somebody is writing this moment are passed over: they are being seen to."""
    wanted = Q(due_at=None) | Q(due_at__lte=now) | Exists(PoolWake.objects.filter(pool=OuterRef("pk")))
    with transaction.atomic():
        pools = Pool.objects.select_for_update(skip_locked=True).filter(wanted).order_by("pk")
        observed = Cluster.objects.filter(mode=Cluster.Mode.OBSERVE)
        drains = Drain.objects.select_for_update(skip_locked=True).filter(due_at__lte=now).exclude(cluster__in=observed)
        drains = drains.order_by("due_at")[:MOST]
        creating = Cluster.objects.select_for_update(skip_locked=True).filter(status=Cluster.Status.CREATING).order_by("pk")
        clusters = dict.fromkeys(drains.values_list("cluster_id", flat=True))
        return [
            *((DRIVE, str(cluster)) for cluster in clusters),
            *((RECONCILE, str(pool)) for pool in pools.values_list("pk", flat=True)),
            *((CREATE, str(cluster)) for cluster in creating.values_list("pk", flat=True)),
        ]


def sweep(now: datetime, open_provider: Callable[[str], Provider] = provider_named) -> None:
    """Drains first: their seconds belong to somebody's pods."""
    for task, object_id in due(now):
        if not enqueue(task, object_id):
            break  # the queue is away; the next sweep finds the same
    names = set(Pool.objects.values_list("provider", flat=True))
    for name in sorted(names):
        notice(name, _poll(open_provider(name)), now)
    heed_waiting(now)
    drills.finish(now)


def _poll(provider: Provider) -> list[PoolState]:
    async def ask() -> list[PoolState]:
        async with asyncio.timeout(POLL_LIMIT), provider:
            return await provider.pools()

    try:
        return asyncio.run(ask())
    except (ProviderError, TimeoutError) as error:
        log.debug("poll_failed", extra={"why": str(error)})
        return []  # a run that needs an answer says so on the pool


def notice(provider: str, states: Iterable[PoolState], now: datetime) -> None:
    """Wake pools for which the news makes a difference to a plan; of the others only keep what pages show."""
    said = {(state.region, state.gpu_type): state for state in states}
    for pool in Pool.objects.filter(provider=provider):
        state = said.get((pool.region_id, pool.gpu_type_id))
        if state is None or (state == _known(pool) and pool.silent_since is None):
            continue
        if matters(pool, state):
            with transaction.atomic():
                wake([pool.pk])
        else:
            _keep(pool, state, now)


def _known(pool: Pool) -> PoolState:
    return PoolState(
        pool.region_id, pool.gpu_type_id, pool.total_machines, pool.free_machines, pool.owed_machines, pool.seen_version
    )


def matters(pool: Pool, state: PoolState) -> bool:
    """Machines are owed that were not, or no more; something is free for which somebody waits; the provider is back."""
    returned = pool.waiting_since is not None and state.free > pool.free_machines
    return state.owed != pool.owed_machines or returned or pool.silent_since is not None


def _keep(pool: Pool, state: PoolState, now: datetime) -> None:
    """The numbers, unless a run has written newer ones. What falls is kept too, or a later rise to the same would be no news."""
    shown = (state.total, state.free) != (pool.total_machines, pool.free_machines)
    with change(now) as made:
        row = made.lock(Pool.objects.filter(pk=pool.pk, seen_version=pool.seen_version, free_machines=pool.free_machines))
        for mine in row:
            mine.total_machines, mine.free_machines, mine.seen_version, mine.seen_at = state.total, state.free, state.version, now
            if shown:
                made.save(mine.stream, mine, "total_machines", "free_machines", "seen_version", "seen_at")
            else:
                mine.save(update_fields=["seen_version", "seen_at"])
