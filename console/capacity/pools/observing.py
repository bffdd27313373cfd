"""Reading what `would` needs: the rows that the plan reads, with one cluster as if Halftide acted on it. Ten queries or so."""

from copy import copy
from datetime import datetime, timedelta

from django.conf import settings

from console.capacity.models import Pool
from console.capacity.pools.inputs import cluster_views, machine_views, machines_of, pool_view, returning
from console.capacity.pools.would import Names, Would, would
from console.capacity.providers.base import PoolState
from console.capacity.queries import automation
from console.clusters.models import Cluster, Machine


def would_do(cluster: Cluster, pool: Pool, now: datetime) -> tuple[Would, ...]:
    """What acting on the cluster would begin with, by what the provider said last."""
    acting = copy(cluster)
    acting.mode = Cluster.Mode.ACT
    others = Cluster.objects.filter(region=pool.region_id, gpu_type=pool.gpu_type_id).exclude(pk=cluster.pk)
    clusters = [acting, *others.order_by("pk")]
    switch = automation()
    machines = machine_views(pool, clusters, None, now)
    node_names = Machine.objects.filter(machines_of(pool), cluster=cluster).values_list("pk", "node_name")
    step = pool.gpu_type.gpus_per_node
    return would(
        pool_view(pool, _said(pool), switch, returning(pool), pool.next_try_at),
        cluster_views(clusters, switch, now, step),
        machines,
        cluster.pk,
        Names(step, dict(node_names.filter(pk__in=[view.id for view in machines if view.cluster == cluster.pk]))),
        now,
        timedelta(seconds=settings.GIVE_UP_AFTER),
    )


def _said(pool: Pool) -> PoolState | None:
    if pool.silent_since is not None:
        return None
    numbers = pool.total_machines, pool.free_machines, pool.owed_machines
    return PoolState(pool.region_id, pool.gpu_type_id, *numbers, pool.seen_version)
