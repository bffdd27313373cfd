"""What a drain decides from: its node and everything bound to the node's name, as Kubernetes shows them now.

One node is two requests. Where much of a cluster goes at once they were a third of all that an API server was asked while it
had the pods to tell (1.7 requests for each of 1,500 pods, `KUBERNETES=real python -m tests.bench rate`); then both lists of the
whole cluster, in pages, are less for everybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from console.capacity.drains.acts import Doors, failed
from console.capacity.drains.views import Failed, NodeView, PodView, Seen
from console.capacity.models import Drain
from console.kube import marks
from console.kube.errors import KubeError, NotFound, Throttled
from console.kube.shapes import NodeShape, PodShape

MOST_SECONDS = 2**31 - 1  # what the column takes; Kubernetes lets a pod ask for more than the age of the universe

MANY = 16  # drains due at once, below which each is looked at by itself
SHARE = 4  # and one node in so many of the cluster is due: a list of all brings four times what is needed, at the most


async def look(doors: Doors, drain: Drain) -> Seen | Failed:
    """The drain's node and everything bound to its name. An incomplete answer is no answer."""
    if doors.kube is None:
        return Failed(doors.closed_why)
    try:
        node = await doors.kube.node(drain.node_name)
    except NotFound:
        node = None
    except KubeError as error:
        return failed(error)
    try:
        pods = await doors.kube.list("pods", fields=f"spec.nodeName={drain.node_name}")
    except KubeError as error:
        return failed(error)
    if pods.broken:
        return Failed(pods.broken[0])
    return _seen(drain, node, (pod for pod in pods.items if isinstance(pod, PodShape)))


def pays(due: int, nodes: int) -> bool:
    """Whether `look_at_all` is the lesser work, for so many drains in a cluster of so many nodes."""
    return due >= MANY and due * SHARE >= nodes


async def look_at_all(doors: Doors, drains: Sequence[Drain]) -> Mapping[UUID, Seen | Failed]:
    """The same of many drains, by their ids, from two lists of the whole cluster.

    Empty where those prove nothing: a page did not come or had expired, or something in it, which may be on another node, cannot
    be read. Then each is to be looked at by itself. An API that asks to wait is not asked for each node instead.
    """
    if doors.kube is None:
        return {}
    try:
        nodes = await doors.kube.list("nodes")
        pods = await doors.kube.list("pods")
    except Throttled as error:
        return {drain.pk: failed(error) for drain in drains}
    except KubeError:
        return {}
    if nodes.broken or pods.broken:
        return {}
    named = {node.name: node for node in nodes.items if isinstance(node, NodeShape)}
    bound: dict[str, list[PodShape]] = {drain.node_name: [] for drain in drains}
    for pod in pods.items:
        if isinstance(pod, PodShape) and pod.node_name in bound:
            bound[pod.node_name].append(pod)
    return {drain.pk: _seen(drain, named.get(drain.node_name), bound[drain.node_name]) for drain in drains}


def _seen(drain: Drain, node: NodeShape | None, pods: Iterable[PodShape]) -> Seen:
    return Seen(node_view(node) if node is not None and is_of(drain, node) else None, tuple(map(pod_view, pods)))


def is_of(drain: Drain, node: NodeShape) -> bool:
    """Whether this node is the drain's: by uid, or, where the machine was none yet, by the machine it says it is."""
    return node.uid == drain.node_uid if drain.node_uid else node.labels.get(marks.MACHINE_LABEL) == str(drain.machine_id)


def node_view(node: NodeShape) -> NodeView:
    return NodeView(
        uid=node.uid,
        ready=node.ready,
        unschedulable=node.unschedulable,
        ours=marks.is_ours(node.annotations.get(marks.CORDONED_BY)),
        cause=node.annotations.get(marks.DRAIN_CAUSE, ""),
        deadline=_instant(node.annotations.get(marks.DRAIN_DEADLINE, "")),
        finalizers=node.finalizers,
        leaving=node.deletion_at is not None,
    )


def pod_view(pod: PodShape) -> PodView:
    """Clipped to what the columns take: a stranger's object must not stop the drain."""
    return PodView(
        uid=pod.uid,
        namespace=pod.namespace[:63],
        name=pod.name,
        owner_kind=pod.owner_kind[:63],
        owner_name=pod.owner_name,
        stays=pod.daemonset or pod.mirror,
        finished=pod.finished,
        grace_seconds=max(0, min(pod.grace_seconds, MOST_SECONDS)),
        deletion_at=pod.deletion_at,
        deletion_grace=pod.deletion_grace,
        ended_at=pod.ended_at,
        exit_code=pod.exit_code,
        last_checkpoint=pod.last_checkpoint,
    )


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
