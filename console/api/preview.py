"""`GET …/drains/preview`: what would happen if GPUs or nodes were reclaimed now. It reads, and starts nothing."""

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router
from pydantic import BaseModel, Field

from console.api.routes import READ, asker
from console.capacity.reclaims import previewing
from console.capacity.reclaims.preview import NodeLoss, PodLoss, Preview
from console.clusters.access import get_cluster
from console.http import Unprocessable

NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"

Gpus = Annotated[int | None, Query(None, ge=1, le=1_000_000)]
Names = Annotated[str | None, Query(None, pattern=f"^{NAME}(,{NAME})*$", max_length=16_000)]

previews = Router(tags=["Drains"])


class PodPreview(BaseModel):
    pod: str
    namespace: str
    asked_grace_seconds: int
    given_grace_seconds: int = Field(description="Of what it asks for, what a reclaim can give it.")
    unsaved_minutes: float | None = Field(description="Since its last checkpoint; null where it says nothing of any.")
    running_minutes: float | None
    could_be_late: str | None = Field(description="Why it might not be done in time, by its own wish or by how its kind ended.")
    budgets_overridden: list[str] = Field(description="Budgets over it that do not allow all evictions of this reclaim.")
    already_stopping: bool


class NodePreview(BaseModel):
    node_name: str
    num_gpus: int
    reason: str
    pods: list[PodPreview]
    staying_pods: int = Field(description="DaemonSet and mirror pods, which go with the node.")


class BudgetPreview(BaseModel):
    name: str
    namespace: str
    pods: int = Field(description="Of those that would be told.")
    allowed: int = Field(description="Evictions it allows now.")
    overridden: int


class DrainsPreview(BaseModel):
    at: datetime
    window_seconds: int
    deadline: datetime = Field(description="When the machines would be gone at the latest.")
    nodes: list[NodePreview]
    budgets: list[BudgetPreview] | None = Field(description="Null where the cluster's API did not answer.")
    budgets_unknown: str | None = Field(description="Why nothing is known of budgets.")
    telling_seconds: float | None = Field(description="About how long until every pod has its SIGTERM; null where unknown.")
    longest_unsaved_minutes: float | None
    pods_with_unknown_unsaved: int
    pods_that_could_be_late: int


@previews.get(
    "/clusters/{cluster_id}/drains/preview",
    response={200: DrainsPreview, **READ},
    summary="Preview a reclaim",
    operation_id="preview_drains",
)
def preview_drains(request: HttpRequest, cluster_id: str, num_gpus: Gpus, nodes: Names) -> DrainsPreview:
    """Either `num_gpus`, those whose loss costs least, or `nodes` by name with commas between. Starts nothing."""
    cluster = get_cluster(asker(request, "num_gpus", "nodes"), cluster_id)
    if (num_gpus is None) == (nodes is None):
        raise Unprocessable("Say either num_gpus or nodes: how many GPUs, or which nodes.", param="num_gpus", code="one_of")
    now = timezone.now()
    if num_gpus is not None:
        return _shape(previewing.of_gpus(cluster, num_gpus, now))
    return _shape(previewing.of_nodes(cluster, (nodes or "").split(","), now))


def _shape(found: Preview) -> DrainsPreview:
    budgets = [
        BudgetPreview(name=one.name, namespace=one.namespace, pods=one.pods, allowed=one.allowed, overridden=one.over)
        for one in found.budgets
    ]
    return DrainsPreview(
        at=found.at,
        window_seconds=found.window,
        deadline=found.deadline,
        nodes=[_node(node) for node in found.nodes],
        budgets=None if found.budgets_unknown else budgets,
        budgets_unknown=found.budgets_unknown or None,
        telling_seconds=None if found.telling is None else round(found.telling, 3),
        longest_unsaved_minutes=_minutes(found.longest_unsaved),
        pods_with_unknown_unsaved=found.unsaved_unknown,
        pods_that_could_be_late=len(found.late),
    )


def _node(node: NodeLoss) -> NodePreview:
    pods = [_pod(pod) for pod in node.pods]
    return NodePreview(node_name=node.name, num_gpus=node.gpus, reason=node.says, pods=pods, staying_pods=node.staying)


def _pod(pod: PodLoss) -> PodPreview:
    return PodPreview(
        pod=pod.name,
        namespace=pod.namespace,
        asked_grace_seconds=pod.asked_grace,
        given_grace_seconds=pod.given_grace,
        unsaved_minutes=_minutes(pod.unsaved),
        running_minutes=_minutes(pod.running),
        could_be_late=pod.late or None,
        budgets_overridden=list(pod.budgets),
        already_stopping=pod.stopping,
    )


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 60, 1)
