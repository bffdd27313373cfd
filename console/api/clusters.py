"""A cluster's rows as the client's `Cluster`."""

import base64
import logging
from datetime import datetime

from console.accounts.access import Actor
from console.accounts.models import Role
from console.api import nodes
from console.api.queries import Facts, facts
from console.api.shapes import Cluster as Shape
from console.api.shapes import ClusterPhaseTransition, ClusterStatus, NodeLifecycleEvent
from console.clusters.models import Cluster, ComputeClass
from console.clusters.secrets import opened
from console.http import Unavailable
from console.timeline.models import Entry

log = logging.getLogger(__name__)


def shapes(clusters: list[Cluster], now: datetime) -> list[Shape]:
    """For the list: without kubeconfigs."""
    found = facts(clusters, now)
    return [_shape(cluster, found[cluster.pk], "") for cluster in clusters]


def shape(actor: Actor, cluster: Cluster, now: datetime) -> Shape:
    """Of one cluster, with its kubeconfig where the actor may act on it."""
    secret = kube_config(cluster) if actor.may(cluster.project_id, Role.OPERATOR) else ""
    return _shape(cluster, facts([cluster], now)[cluster.pk], secret)


def kube_config(cluster: Cluster) -> str:
    """Base64; empty while there is none, or while it cannot be opened: the rest of the cluster is worth reading all the same."""
    if not cluster.kubeconfig:
        return ""
    try:
        return base64.b64encode(opened(cluster).encode()).decode()
    except Unavailable as error:
        log.warning("api.kubeconfig_unreadable", extra={"cluster": str(cluster.pk), "why": error.message})
        return ""


def status_of(cluster: Cluster, found: Facts) -> ClusterStatus:
    """Missing preemptible GPUs are no fault of a cluster; a silent API or a standard node that is not Ready is."""
    if cluster.status == Cluster.Status.DELETING:
        return "Deleting"
    if cluster.status == Cluster.Status.CREATING:
        return "WaitingForControlPlaneNodes"
    sick = any(
        node.ready is not True for node in found.nodes if node.compute_class == ComputeClass.STANDARD and not node.draining
    )
    if cluster.unreachable_since is not None or (sick and cluster.allocated_standard_gpus):
        return "Degraded"
    return "Ready" if cluster.allocated_standard_gpus else "WaitingForDataPlaneNodes"


def event(entry: Entry) -> NodeLifecycleEvent:
    return NodeLifecycleEvent(node_id=entry.subject_name, reason=entry.reason, message=entry.message, timestamp=entry.at)


def _phases(cluster: Cluster) -> list[ClusterPhaseTransition]:
    found = [ClusterPhaseTransition(phase="CLUSTER_PHASE_WAITING_FOR_CONTROL_PLANE_NODES", transition_time=cluster.created_at)]
    if cluster.first_ready_at:
        found.append(ClusterPhaseTransition(phase="CLUSTER_PHASE_READY", transition_time=cluster.first_ready_at))
    return found


def _shape(cluster: Cluster, found: Facts, secret: str) -> Shape:
    return Shape(
        cluster_id=str(cluster.pk),
        cluster_name=cluster.name,
        cluster_type=Cluster.Kind(cluster.kind),
        status=status_of(cluster, found),
        region=cluster.region_id,
        project_id=str(cluster.project_id),
        gpu_type=cluster.gpu_type_id,
        num_gpus=cluster.desired_standard_gpus,
        desired_preemptible_gpus=cluster.desired_preemptible_gpus,
        allocated_preemptible_gpus=cluster.allocated_preemptible_gpus,
        kube_config=secret,
        gpu_worker_nodes=[nodes.of_node(node) for node in found.nodes] + [nodes.of_machine(one) for one in found.machines],
        deleted_gpu_worker_nodes=[nodes.deleted(machine) for machine in found.gone],
        phase_transitions=_phases(cluster),
        node_lifecycle_events=[event(entry) for entry in found.events],
        created_at=cluster.created_at,
        first_ready_at=cluster.first_ready_at,
        control_plane_ready=cluster.status == Cluster.Status.READY and cluster.unreachable_since is None,
    )
