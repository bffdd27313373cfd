"""A cluster's Kubernetes API, made by the provider: asked for by the cluster's own id until the answer is there, so never two."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from console.capacity.models import Pool
from console.capacity.pools.wakes import wake_pool
from console.capacity.providers import provider as provider_named
from console.capacity.providers.base import NewCluster, Provider, ProviderError
from console.clusters import leases
from console.clusters.leases import Held, LeaseLost
from console.clusters.models import Cluster
from console.clusters.secrets import seal
from console.timeline.changes import change

LEASE = "create"

log = logging.getLogger(__name__)


def create_cluster(
    cluster_id: UUID,
    owner: str,
    *,
    open_provider: Callable[[str], Provider] = provider_named,
    clock: Callable[[], datetime] = timezone.now,
) -> bool:
    """True once the API is there. A failure keeps the lease until it runs out, which is the pause before the next try."""
    cluster = Cluster.objects.filter(pk=cluster_id, status=Cluster.Status.CREATING).first()
    if cluster is None:
        return True
    held = leases.take(LEASE, cluster_id, owner)
    if held is None:
        return False
    pool = Pool.objects.get(region=cluster.region_id, gpu_type=cluster.gpu_type_id)
    try:
        return _make(held, cluster, open_provider(pool.provider), clock)
    except LeaseLost:
        log.warning("run_overtaken", extra={"cluster": str(cluster_id), "owner": owner})
        return False


def _make(held: Held, cluster: Cluster, provider: Provider, clock: Callable[[], datetime]) -> bool:
    try:
        made_cluster = asyncio.run(_ask(provider, cluster))
    except ProviderError as error:
        _note(held, cluster.pk, f"the Kubernetes API cannot be created yet: {error}", clock())
        return False
    _note(held, cluster.pk, "", clock(), made_cluster)
    leases.release(held)
    return True


async def _ask(provider: Provider, cluster: Cluster) -> NewCluster:
    async with provider:
        return await provider.create_cluster(cluster.pk, cluster.name, cluster.region_id)


def _note(held: Held, cluster_id: UUID, why: str, now: datetime, made_cluster: NewCluster | None = None) -> None:
    with change(now) as made:
        leases.guard(held)
        for cluster in made.lock(Cluster.objects.filter(pk=cluster_id, status=Cluster.Status.CREATING)):
            if made_cluster is not None:
                cluster.kubeconfig = seal(made_cluster.kubeconfig)
                cluster.status, cluster.first_ready_at = Cluster.Status.READY, now
                subject = ("Cluster", cluster.name, str(cluster.pk))
                made.entry(cluster.stream, "ClusterCreated", f"The Kubernetes API of {cluster.name} is there", subject=subject)
                wake_pool(cluster.region_id, cluster.gpu_type_id)
            elif cluster.status_why == why[:300]:
                continue
            cluster.status_why = why[:300]
            made.save(cluster.stream, cluster, "kubeconfig", "status", "first_ready_at", "status_why")
