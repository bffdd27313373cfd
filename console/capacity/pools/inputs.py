"""Rows into the plan's views: a constant number of queries, however many machines (see `plan`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce

from console.capacity.models import Automation, Drain, Pool, Wait
from console.capacity.pools.plan import ClusterView, PoolView
from console.capacity.pools.victims import MachineView
from console.capacity.providers.base import Given, PoolState, Standing
from console.capacity.queries import why_blocked
from console.clusters.models import Cluster, ComputeClass, Machine, Node, Pod

SETTLES = timedelta(seconds=60)  # how long a machine may be missing from a list, or a node outlive its machine, without a cause

Missing = (Machine.State.GONE, Machine.State.GIVEN_UP)


@dataclass(frozen=True)
class Listing:
    """All machines that the provider has for us in a pool, by token."""

    machines: Mapping[UUID, Given]

    @property
    def there(self) -> list[UUID]:
        return [token for token, given in self.machines.items() if given.there]


def machines_of(pool: Pool) -> "Q":
    return Q(region=pool.region_id, gpu_type=pool.gpu_type_id)


def returning(pool: Pool) -> set[UUID]:
    """Machines on their way back to the provider: draining, or leaving without a drain."""
    open_drain = Q(drains__state__in=Drain.OPEN)
    going = Machine.objects.filter(machines_of(pool)).filter(
        Q(state=Machine.State.LEAVING) | (open_drain & Q(state__in=Machine.ALIVE))
    )
    return set(going.values_list("pk", flat=True))


def pool_view(
    pool: Pool, state: PoolState | None, switch: Automation, back: Collection[UUID], next_try_at: datetime | None
) -> PoolView:
    """`back` are the machines that were on their way back before the provider was asked, or are now: its answer may be older."""
    return PoolView(
        total=state.total if state else pool.total_machines,
        free=state.free if state else 0,
        owed=state.owed if state else 0,
        returning=len(back),
        heard=state is not None,
        on=switch.on,
        next_try_at=next_try_at,
    )


def cluster_views(clusters: Sequence[Cluster], switch: Automation, now: datetime, step: int) -> list[ClusterView]:
    waits = {wait.cluster_id: wait for wait in Wait.objects.filter(cluster__in=[cluster.pk for cluster in clusters])}
    return [
        ClusterView(
            id=cluster.pk,
            name=cluster.name,
            standard=cluster.desired_standard_gpus // step,
            preemptible=cluster.desired_preemptible_gpus // step,
            blocked=why_blocked(cluster, switch, now, waits.get(cluster.pk)),
        )
        for cluster in clusters
    ]


def machine_views(pool: Pool, clusters: Sequence[Cluster], listing: Listing | None, now: datetime) -> list[MachineView]:
    """Machines that count or are on their way out, and nodes that outlived theirs. Four queries.

    Not those that were asked for before their cluster was only observed: they are not sent, and must not hold up the pool.
    """
    ids = [cluster.pk for cluster in clusters]
    nodes = {node.machine_id: node for node in Node.objects.filter(cluster__in=ids, machine__isnull=False)}
    unsent = Q(state=Machine.State.ASKED, cluster__in=[each.pk for each in clusters if each.mode == Cluster.Mode.OBSERVE])
    there = listing.there if listing else []
    outlived = Q(state__in=Missing, pk__in=nodes) & (Q(gone_at__lt=now - SETTLES) | Q(pk__in=there))
    here = Q(state__in=(*Machine.ALIVE, Machine.State.LEAVING))
    machines = list(Machine.objects.filter(machines_of(pool)).filter(here | outlived).exclude(unsent).order_by("pk"))
    draining, kept = _drains(machines, clusters, now)
    losses = _losses(ids, now)
    return [
        _view(machine, nodes.get(machine.pk), listing, losses, machine.pk in draining, machine.pk in kept, now)
        for machine in machines
    ]


def _view(
    machine: Machine,
    node: Node | None,
    listing: Listing | None,
    losses: Mapping[tuple[UUID, str], float],
    draining: bool,
    kept: bool,
    now: datetime,
) -> MachineView:
    unsaved = losses.get((node.cluster_id, node.name)) if node is not None else None
    lost, returns = _lost(machine, node, listing, now)
    return MachineView(
        id=machine.pk,
        cluster=machine.cluster_id,
        compute_class=ComputeClass(machine.compute_class),
        state=Machine.State(machine.state),
        gpus=machine.gpus,
        asked_at=machine.asked_at,
        was_ready=machine.first_ready_at is not None,
        ready=node is not None and node.ready is True,
        has_node=node is not None,
        draining=draining,
        kept=kept,
        lost=lost,
        returns=returns,
        idle=unsaved is None,
        unsaved=unsaved or 0.0,
    )


def _lost(machine: Machine, node: Node | None, listing: Listing | None, now: datetime) -> tuple[str, bool]:
    """Why a machine is beyond hope, and whether the provider still gets it back by our ending it.

    The provider's word alone is not enough: while Kubernetes shows its node Ready, the machine is there, whatever a list says.
    """
    if listing is None or machine.state not in (Machine.State.BOOTING, Machine.State.JOINED):
        return "", True
    if (node is not None and node.ready is True) or now - machine.asked_at < SETTLES:
        return "", True
    given = listing.machines.get(machine.pk)
    if given is None or not given.there:
        return "the provider no longer has this machine", False
    return ("the provider lost this machine" if given.standing is Standing.LOST else ""), True


def _drains(machines: Sequence[Machine], clusters: Sequence[Cluster], now: datetime) -> tuple[set[UUID], set[UUID]]:
    """Machines with an open drain or one that has just ended, and those that a person or a budget kept since the last change."""
    asked = {
        cluster.pk: {ComputeClass.STANDARD: cluster.standard_set_at, ComputeClass.PREEMPTIBLE: cluster.target_set_at}
        for cluster in clusters
    }
    draining: set[UUID] = set()
    kept: set[UUID] = set()
    classes = {machine.pk: ComputeClass(machine.compute_class) for machine in machines}
    rows = Drain.objects.filter(machine__in=classes)
    for drain in rows.exclude(state=Drain.State.REMOVED, removed_at__lte=now - SETTLES):
        if drain.state != Drain.State.STOPPED:
            draining.add(drain.machine_id)
            continue
        changed = asked[drain.cluster_id][classes[drain.machine_id]]
        if changed is None or drain.started_at >= changed:
            kept.add(drain.machine_id)
    return draining, kept


def _losses(clusters: Sequence[UUID], now: datetime) -> dict[tuple[UUID, str], float]:
    """The longest time that a pod of a node would lose, in seconds, by node; nodes without pods of anybody's are not in it."""
    pods = Pod.objects.filter(cluster__in=clusters, daemonset=False, mirror=False, finished=False).exclude(node_name="")
    rows = pods.values_list("cluster_id", "node_name").annotate(
        oldest=Min(Coalesce("last_checkpoint", "started_at")), pods=Count("pk")
    )
    return {(cluster, node): max(0.0, (now - oldest).total_seconds()) if oldest else 0.0 for cluster, node, oldest, _ in rows}
