"""What crosses the queue: ids. Each task reads what is due now, under a lease, so a lost, late or doubled one does no harm."""

from uuid import UUID, uuid4

from celery import shared_task
from django.utils import timezone

from console.capacity import creating, sweeping
from console.capacity.drains import run as drains_run
from console.capacity.pools import reconcile


@shared_task(name="capacity.sweep")
def sweep() -> None:
    sweeping.sweep(timezone.now())


@shared_task(name="capacity.reconcile_pool")
def reconcile_pool(pool_id: str) -> None:
    reconcile.reconcile_pool(UUID(pool_id), owner=str(uuid4()))


@shared_task(name="capacity.drive_drains")
def drive_drains(cluster_id: str) -> None:
    drains_run.drive(cluster_id)


@shared_task(name="capacity.create_cluster")
def create_cluster(cluster_id: str) -> None:
    creating.create_cluster(UUID(cluster_id), owner=str(uuid4()))
