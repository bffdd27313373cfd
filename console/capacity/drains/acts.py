"""The requests by which a drain acts. What went wrong comes back as an answer.

Each may be sent again after any doubt: cordon and Event are the same on every try, eviction and deletion name the pod's uid,
`terminate` the machine's token.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from console.capacity.drains.changes import REASONS, announcement, event_name
from console.capacity.drains.verdicts import Fate
from console.capacity.drains.views import (
    Action,
    Announce,
    Cordon,
    Delete,
    Evict,
    Failed,
    Outcome,
    RemoveNode,
    Terminate,
    Unmark,
)
from console.capacity.models import Drain
from console.clusters.models import Machine
from console.kube import marks
from console.kube.client import Kube
from console.kube.errors import Broken, Forbidden, KubeError, Refused, Throttled
from console.kube.shapes import Absent, Evicted

EndMachine = Callable[[Machine], Awaitable[bool | Failed]]


@dataclass(frozen=True)
class Doors:
    """Where a cluster's drains act: its Kubernetes API (None, and why, while there is none) and the machines' provider."""

    kube: Kube | None
    closed_why: str
    end_machine: EndMachine  # whether the provider confirms that the machine is gone


async def act(doors: Doors, drain: Drain, node_uid: str, action: Action) -> Outcome:
    """Carry out one action on the drain's node, as the row and `node_uid` name it."""
    if isinstance(action, Terminate):
        return await doors.end_machine(drain.machine)
    if doors.kube is None:
        return Failed(doors.closed_why)
    try:
        return await _ask(doors.kube, drain, node_uid, action)
    except KubeError as error:
        return failed(error)


def failed(error: KubeError) -> Failed:
    """What a drain keeps of it: its sentence, and for how long the API asks not to be asked."""
    return Failed(error.sentence, error.retry_after if isinstance(error, Throttled) else 0)


async def _ask(kube: Kube, drain: Drain, node_uid: str, action: Action) -> Outcome:
    match action:
        case Cordon(mark):
            by = marks.SYSTEM if mark else None
            await kube.cordon(drain.node_name, node_uid, cause=drain.cause, deadline=drain.deadline, by=by)
            return True
        case Announce():
            await kube.emit_event(
                name=event_name(drain.pk, drain.cause),
                node_name=drain.node_name,
                node_uid=node_uid,
                reason=REASONS[Drain.Cause(drain.cause)],
                type="Warning" if drain.cause == Drain.Cause.PREEMPTED else "Normal",
                message=announcement(drain),
                at=drain.started_at,
            )
            return True
        case Evict(fate, grace):
            return await _evict(kube, drain, fate, grace)
        case Delete(fate, grace):
            return await kube.delete_pod(fate.namespace, fate.name, fate.uid, grace)
        case RemoveNode():
            return await kube.delete_node(drain.node_name, node_uid)
        case Unmark():
            return await _unmark(kube, drain.node_name, node_uid)
        case Terminate():
            raise AssertionError("the provider ends machines, not Kubernetes")


async def _evict(kube: Kube, drain: Drain, fate: Fate, grace: int) -> Outcome:
    """Where the machine goes anyway, what forbids it and is no budget (a webhook, a missing right) costs the pod no notice."""
    try:
        return await kube.evict(fate.namespace, fate.name, fate.uid, grace)
    except (Forbidden, Refused, Broken):
        if drain.cause != Drain.Cause.PREEMPTED:
            raise
    return Evicted() if await kube.delete_pod(fate.namespace, fate.name, fate.uid, grace) else Absent()


async def _unmark(kube: Kube, name: str, uid: str) -> bool:
    """False where the node was closed meanwhile: that cordon is not ours, and what to do about our marks is for the next look."""
    node = await kube.node(name)
    if node.uid != uid or node.unschedulable:
        return False
    await kube.unmark(name, uid, node.resource_version)
    return True
