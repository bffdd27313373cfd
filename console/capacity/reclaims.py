"""What a person does to nodes: take preemptible GPUs back now, and close or open a single node."""

import asyncio

from console.accounts.access import Actor
from console.accounts.models import Role
from console.accounts.services import audit
from console.capacity.asked import whole_nodes
from console.capacity.drain_changes import Start, start_drains, take_back
from console.capacity.inputs import machine_views, machines_of
from console.capacity.models import Drain, Pool
from console.capacity.victims import cheapest
from console.capacity.wakes import wake_pool
from console.capacity.who import doer
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.clusters.secrets import connection
from console.http import Conflict, Forbidden, NotFound, Unavailable, Unprocessable
from console.kube import errors, marks
from console.kube.client import Kube
from console.kube.kubeconfig import Connection
from console.timeline.changes import change

STANDING = (Machine.State.BOOTING, Machine.State.JOINED)  # what was only asked for is not there to be taken
TIMEOUT = 5.0  # seconds for which a person waits for the cluster's API


def reclaim(actor: Actor, cluster: Cluster, gpus: int) -> list[Drain]:
    """Take preemptible GPUs of a cluster back now, those first whose loss costs least; the target stays, so they are refilled.

    For fleet operators. Raises Unprocessable for a number that is no whole number of nodes or more than there is.
    """
    if not actor.fleet_operator:
        raise Forbidden("Only a fleet operator takes GPUs back. An administrator can name one.")
    step = cluster.gpu_type.gpus_per_node
    whole_nodes(gpus, step, "What is taken back", "gpus")
    if gpus < step:
        raise Unprocessable(f"At least one node is taken back: {step} GPUs.", param="gpus", code="nothing", nearest=[step])
    with change() as made:
        mine = made.lock(Cluster.objects.select_related("project").filter(pk=cluster.pk))[0]
        if mine.mode == Cluster.Mode.OBSERVE:
            raise Conflict(f"{mine.name} is only observed: nothing is ever taken from it.", code="observed")
        pool = Pool.objects.get(region=mine.region_id, gpu_type=mine.gpu_type_id)
        machines = made.lock(Machine.objects.filter(cluster=mine, compute_class=ComputeClass.PREEMPTIBLE, state__in=STANDING))
        nodes = {row.machine_id: row for row in made.lock(Node.objects.filter(cluster=mine, machine__in=machines))}
        by_id = {machine.pk: machine for machine in machines}
        views = machine_views(pool, list(Cluster.objects.filter(machines_of(pool))), None, made.now)
        victims = cheapest([view for view in views if view.id in by_id and view.counts], gpus // step)
        if len(victims) < gpus // step:
            there = len(victims) * step
            raise Unprocessable(f"{mine.name} has {there} preemptible GPUs to take back, not {gpus}.", param="gpus", most=there)
        why = f"{actor.name} takes {gpus} GPUs back"
        starts = [Start(by_id[victim.id], nodes.get(victim.id), Drain.Cause.PREEMPTED, why) for victim in victims]
        drains = start_drains(made, mine, starts, actor.name, made.now, actor=doer(actor))
        names = [drain.node_name for drain in drains]
        audit(actor, "cluster.reclaim", mine.name, mine.project, after={"gpus": gpus, "nodes": names})
        wake_pool(mine.region_id, mine.gpu_type_id)
    return drains


def cordon(actor: Actor, cluster: Cluster, node: Node, on: bool) -> Node:
    """Close a node to new pods, or open it again, as a person: our automation never lifts such a cordon.

    Opening stops a drain that is no preemption ("taken back by …"); a preempted machine goes anyway, so that is refused with
    Conflict. Raises Unavailable where the cluster's API does not do it: then the node is as it was.
    """
    actor.require(cluster.project_id, Role.OPERATOR)
    if cluster.mode == Cluster.Mode.OBSERVE:
        raise Conflict(f"{cluster.name} is only observed: nothing is ever sent to it.", code="observed")
    if not on:
        _stop_drain(actor, cluster, node)
    _ask(connection(cluster), node, on, actor.name)
    with change() as made:
        mine = made.lock(Cluster.objects.filter(pk=cluster.pk))[0]
        found = made.lock(Node.objects.filter(pk=node.pk))
        if not found:
            raise NotFound(f"{node.name} is gone meanwhile.")
        row = found[0]
        before = {"unschedulable": row.unschedulable}
        row.unschedulable, row.cordoned_by = on, marks.by_person(actor.name)[:200] if on else ""
        made.save(mine.stream, row, "unschedulable", "cordoned_by")
        reason, what = ("NodeCordoned", "takes no new pods") if on else ("NodeUncordoned", "takes pods again")
        made.entry(mine.stream, reason, f"{row.name} {what}", actor=doer(actor), subject=("Node", row.name, row.uid))
        audit(actor, "node.cordon" if on else "node.uncordon", row.name, cluster.project, before, {"unschedulable": on})
    return row


def _stop_drain(actor: Actor, cluster: Cluster, node: Node) -> None:
    """Before the node opens: no pod of it may be told any more."""
    with change() as made:
        mine = made.lock(Cluster.objects.filter(pk=cluster.pk))[0]
        found = made.lock(Node.objects.filter(pk=node.pk))
        for drain in made.lock(Drain.objects.filter(cluster=mine, node_uid=node.uid, state__in=Drain.OPEN)):
            if drain.cause == Drain.Cause.PREEMPTED or drain.state in {Drain.State.DRAINED, Drain.State.TIMED_OUT}:
                raise Conflict(
                    f"{node.name} cannot be kept: {drain.why}, and its machine is gone by {drain.deadline:%H:%M:%S} UTC.",
                    code="goes_anyway",
                )
            take_back(made, mine, drain, found[0] if found else None, doer(actor), actor.name)


def _ask(way: Connection, node: Node, on: bool, by: str) -> None:
    async def patch() -> None:
        async with Kube(way, timeout=TIMEOUT) as kube:
            await kube.person_cordon(node.name, node.uid, on, by)

    try:
        asyncio.run(patch())
    except (errors.NotFound, errors.Conflict):
        raise NotFound(f"{node.name} is gone, or another node has its name now.") from None
    except errors.KubeError as error:
        raise Unavailable(f"{node.name} was not changed. {error.sentence}") from error
