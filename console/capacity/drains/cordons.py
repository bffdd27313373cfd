"""A person closes a node to new pods, or opens it again. Such a cordon is never lifted by automation."""

import asyncio

from console.accounts.access import Actor
from console.accounts.models import Role
from console.accounts.services import audit
from console.capacity.drains.changes import take_back
from console.capacity.models import Drain
from console.clusters.models import Cluster, Node
from console.clusters.secrets import connection
from console.http import Conflict, NotFound, Unavailable
from console.kube import errors, marks
from console.kube.client import Kube
from console.kube.kubeconfig import Connection
from console.timeline.changes import change
from console.timeline.who import doer

TIMEOUT = 5.0  # seconds for which a person waits for the cluster's API


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
        subject = ("Node", row.name, row.uid)
        made.entry(mine.stream, reason, f"{row.name} {what}", actor=doer(actor), subject=subject, compute_class=row.compute_class)
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
