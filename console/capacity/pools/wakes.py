"""Waking a pool: a row in the caller's transaction, and a hint to a worker once that has committed."""

from collections.abc import Iterable
from uuid import UUID

from django.utils import timezone

from console.capacity.enqueue import enqueue_on_commit
from console.capacity.models import Pool, PoolWake

RECONCILE = "capacity.reconcile_pool"


def wake(pools: Iterable[UUID]) -> None:
    """Ask for another run of these pools. Takes no lock that anybody waits for, so it may stand anywhere in a transaction."""
    rows = [PoolWake(pool_id=pool, at=timezone.now()) for pool in pools]
    PoolWake.objects.bulk_create(rows)
    for row in rows:
        enqueue_on_commit(RECONCILE, str(row.pool_id))


def wake_pool(region: str, gpu_type: str) -> None:
    """The same by what the pool is of; where there is no such pool, nothing."""
    wake(Pool.objects.filter(region_id=region, gpu_type_id=gpu_type).values_list("pk", flat=True))
