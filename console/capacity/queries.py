"""Reading capacity: why not all is there, what a pool can give, what it costs. Constant queries, however many nodes."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import Exists, OuterRef

from console.capacity.models import Automation, Drain, Pool, Wait
from console.capacity.pools.difference import Coming, Difference, Waiting, difference_of
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.clusters.queries import FREE, Price, prices

__all__ = ["Cost", "Difference", "Offer", "automation", "cost", "difference", "differences", "offer", "open_drains", "pool_of"]


# As the light of the pages: what is older than this is red, and nothing is begun on it (DESIGN 16, guarantee 5).
OLD = timedelta(seconds=120)

ALLOCATED = {"ready": True, "draining": False, "startup_pending": False}  # as Node.allocated has it


def automation() -> Automation:
    """The stop switch as it stands; on where nobody has touched it."""
    return Automation.objects.filter(pk=1).first() or Automation()


def why_blocked(
    cluster: Cluster, switch: Automation, now: datetime, wait: Wait | None, silent_since: datetime | None = None
) -> str:
    """Why nothing may be started for a cluster, as a sentence's second half; empty where nothing stands in the way."""
    if not switch.on:
        since = f" since {switch.changed_at:%H:%M} UTC" if switch.changed_at else ""
        return f"automation is stopped by {switch.changed_by or 'somebody'}{since}" + (f": {switch.why}" if switch.why else "")
    if cluster.status == Cluster.Status.CREATING:
        return cluster.status_why or "its Kubernetes API is being created"
    if cluster.status == Cluster.Status.DELETING:
        return "it is being deleted"
    if cluster.mode == Cluster.Mode.OBSERVE:
        return "Halftide only observes this cluster"
    if cluster.unreachable_since is not None:
        why = f": {cluster.unreachable_why}" if cluster.unreachable_why else ""
        return f"Kubernetes is unreachable since {cluster.unreachable_since:%H:%M} UTC{why}"
    if cluster.proved_to is not None and now - cluster.proved_to > OLD:
        return f"what is known of it is from {cluster.proved_to:%H:%M:%S} UTC, and nothing is begun on an old picture"
    if silent_since is not None:
        return f"the provider of machines does not answer since {silent_since:%H:%M} UTC"
    if wait is not None and wait.refused_until is not None and now < wait.refused_until:
        return f"the provider refuses it: {wait.refused_why}"
    return ""


def difference(cluster: Cluster, now: datetime) -> Difference:
    """Of one cluster; see `differences`."""
    return differences([cluster], now)[cluster.pk]


def differences(clusters: Iterable[Cluster], now: datetime) -> dict[UUID, Difference]:
    """Of many clusters, in four queries."""
    clusters = list(clusters)
    ids = [cluster.pk for cluster in clusters]
    switch = automation()
    waits = {wait.cluster_id: wait for wait in Wait.objects.filter(cluster__in=ids)}
    pools = {(pool.region_id, pool.gpu_type_id): pool for pool in Pool.objects.all()}
    coming = _coming(ids)
    found: dict[UUID, Difference] = {}
    for cluster in clusters:
        wait = waits.get(cluster.pk)
        pool = pools.get((cluster.region_id, cluster.gpu_type_id))
        waiting = None
        if wait is not None and wait.preemptible:
            gpus = wait.preemptible * cluster.gpu_type.gpus_per_node
            waiting = Waiting(gpus, wait.since, pool.next_try_at if pool else None)
        found[cluster.pk] = difference_of(
            cluster.desired_preemptible_gpus,
            cluster.allocated_preemptible_gpus,
            coming[cluster.pk],
            waiting,
            why_blocked(cluster, switch, now, wait, pool.silent_since if pool else None),
        )
    return found


def _coming(clusters: list[UUID]) -> dict[UUID, list[Coming]]:
    """Preemptible machines that count toward the target and not, or not with all their GPUs, as allocated."""
    whole = Node.objects.filter(machine=OuterRef("pk"), gpus__gte=OuterRef("gpus"), **ALLOCATED)
    machines = list(
        Machine.objects.filter(cluster__in=clusters, compute_class=ComputeClass.PREEMPTIBLE, state__in=Machine.ALIVE)
        .exclude(drains__state__in=Drain.OPEN)
        .exclude(Exists(whole))  # nearly all of them, so they stay in the database
        .order_by("asked_at")
    )
    nodes = {node.machine_id: node for node in Node.objects.filter(machine__in=machines)}
    coming: dict[UUID, list[Coming]] = defaultdict(list)
    for machine in machines:
        found = _not_allocated(machine, nodes.get(machine.pk))
        if found is not None:
            coming[machine.cluster_id].append(found)
    return coming


def _not_allocated(machine: Machine, node: Node | None) -> Coming | None:
    if node is not None and node.allocated:
        lacking = machine.gpus - node.gpus
        return Coming(lacking, machine.asked_at, f"node {node.name} joined with {node.gpus} GPUs") if lacking > 0 else None
    if machine.first_ready_at is None:
        return Coming(machine.gpus, machine.asked_at)
    if node is None:
        return Coming(machine.gpus, machine.asked_at, f"Kubernetes shows no node of {machine.node_name}")
    if node.draining or node.ready is not True:
        return Coming(machine.gpus, machine.asked_at, f"node {node.name} is {'draining' if node.draining else 'not Ready'}")
    return Coming(machine.gpus, machine.asked_at, f"the startup script of {node.name} has not ended")


def pool_of(cluster: Cluster) -> Pool:
    """The pool that the cluster's machines come from. Raises Pool.DoesNotExist."""
    return Pool.objects.select_related("gpu_type").get(region=cluster.region_id, gpu_type=cluster.gpu_type_id)


@dataclass(frozen=True)
class Offer:
    """What a pool has, in GPUs. `could_give_gpus` is what a preemptible target could get at once: free and owed to nobody."""

    total_gpus: int
    free_gpus: int
    could_give_gpus: int


def offer(pool: Pool) -> Offer:
    """As the provider said it last."""
    step = pool.gpu_type.gpus_per_node
    unowed = max(0, pool.free_machines - pool.owed_machines)
    return Offer(pool.total_machines * step, pool.free_machines * step, unowed * step)


@dataclass(frozen=True)
class Cost:
    """Dollars an hour of the preemptible GPUs: now, and once the target is reached; each beside its price on demand. Exact."""

    price: Price
    now: Decimal
    most: Decimal
    on_demand_now: Decimal
    on_demand_most: Decimal


def cost(cluster: Cluster, now: datetime) -> Cost:
    """Of what is allocated and of what is desired, at the rate in force."""
    price = prices(now).get(cluster.gpu_type_id, FREE)
    allocated, desired = cluster.allocated_preemptible_gpus, cluster.desired_preemptible_gpus
    return Cost(
        price, allocated * price.preemptible, desired * price.preemptible, allocated * price.on_demand, desired * price.on_demand
    )


def open_drains(clusters: Iterable[UUID]) -> dict[UUID, list[Drain]]:
    """Open drains by cluster with their verdicts, oldest first, in two queries."""
    drains = Drain.objects.filter(cluster__in=list(clusters), state__in=Drain.OPEN).prefetch_related("verdicts")
    found: dict[UUID, list[Drain]] = defaultdict(list)
    for drain in drains.order_by("started_at", "pk"):
        found[drain.cluster_id].append(drain)
    return found
