"""What the API answers, in the shapes of the published client: every field that it declares without a default is here.

Fields for what Halftide has not (reservations, capacity pools, CPU workers, volumes) are there with their empty value, because
the client reads them; a field that Halftide could only invent is 0 or says where it comes from.
"""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from console.clusters.models import Cluster as Model
from console.clusters.models import ComputeClass
from console.timeline.models import Entry

ClusterStatus = Literal["WaitingForControlPlaneNodes", "WaitingForDataPlaneNodes", "Ready", "Degraded", "Deleting"]
NodePhase = Literal[
    "NODE_PHASE_PENDING", "NODE_PHASE_BOOTSTRAPPING", "NODE_PHASE_RUNNING", "NODE_PHASE_SUCCEEDED", "NODE_PHASE_FAILED"
]
ClusterPhase = Literal["CLUSTER_PHASE_WAITING_FOR_CONTROL_PLANE_NODES", "CLUSTER_PHASE_READY"]

# Halftide picks no driver: the machines of a pool bring theirs. The client wants one to name, so there is one.
MACHINE_IMAGE = "machine-image"


class Error(BaseModel):
    message: str = Field(description="What happened and what to do about it, for a person.")
    type: str
    param: str | None = Field(description="The field or parameter that is at fault.")
    code: str | None = Field(description="For a program.")


class ErrorEnvelope(BaseModel):
    """Beside the four fixed fields `error` carries what helps to go on, such as `nearest` or `desired`."""

    error: Error


class NodePhaseTransition(BaseModel):
    phase: NodePhase
    transition_time: datetime


class GPUWorkerNode(BaseModel):
    node_id: str = Field(description="The node's name in Kubernetes, as in node_lifecycle_events.")
    instance_id: str = Field(description="The machine behind the node, for its whole life; a foreign node's uid.")
    host_name: str
    status: str = Field(description="Pending, Booting, Running, Cordoned, NotReady, Unknown, Draining, Deleted or Failed.")
    num_gpus: int
    num_cpu_cores: int = Field(default=0, description="Not measured: always 0.")
    memory_gib: float = Field(default=0.0, description="Not measured: always 0.")
    networks: list[str] = Field(description="Addresses inside the cluster.")
    phase_transitions: list[NodePhaseTransition]
    marked_for_deletion: bool = False
    compute_class: ComputeClass = Field(description="Halftide's own; the client ignores it.")


class DeletedGPUWorkerNode(GPUWorkerNode):
    deleted_at: datetime


class NodeLifecycleEvent(BaseModel):
    node_id: str = Field(description="The node's name in Kubernetes.")
    reason: str = Field(description="TogetherScaledUp, TogetherPreempted, TogetherScaledDown, NodeCordoned, …")
    message: str
    timestamp: datetime


class ClusterPhaseTransition(BaseModel):
    phase: ClusterPhase
    transition_time: datetime


class Cluster(BaseModel):
    cluster_id: str
    cluster_name: str
    cluster_type: Model.Kind
    status: ClusterStatus
    region: str
    project_id: str
    billing_type: Literal["ON_DEMAND"] = "ON_DEMAND"
    gpu_type: str
    num_gpus: int = Field(description="Standard GPUs asked for.")
    num_reserved_gpus: int = 0
    num_capacity_pool_gpus: int = 0
    num_cpu_workers: int = 0
    desired_preemptible_gpus: int = Field(description="The target.")
    allocated_preemptible_gpus: int = Field(description="On nodes that are Ready and not draining.")
    cuda_version: str = MACHINE_IMAGE
    nvidia_driver_version: str = MACHINE_IMAGE
    kube_config: str = Field(description="Base64 of the kubeconfig, for operators and when one cluster is read; else empty.")
    add_ons: list[dict[str, object]] = []
    volumes: list[dict[str, object]] = []
    control_plane_nodes: list[dict[str, object]] = Field(default=[], description="Always empty: no machines of a pool.")
    gpu_worker_nodes: list[GPUWorkerNode]
    deleted_gpu_worker_nodes: list[DeletedGPUWorkerNode] = Field(description="Of the last 72 hours; no capacity.")
    phase_transitions: list[ClusterPhaseTransition]
    node_lifecycle_events: list[NodeLifecycleEvent] = Field(
        description="Of the last 72 hours, newest first, one for each node and reason."
    )
    created_at: datetime
    first_ready_at: datetime | None
    control_plane_ready: bool


class Clusters(BaseModel):
    clusters: list[Cluster]


class DriverVersion(BaseModel):
    id: str = MACHINE_IMAGE
    cuda_version: str = MACHINE_IMAGE
    nvidia_driver_version: str = MACHINE_IMAGE
    os: str = MACHINE_IMAGE


class Region(BaseModel):
    name: str
    supported_instance_types: list[str] = Field(description="GPU types of which there is a pool.")
    driver_versions: list[DriverVersion]


class Regions(BaseModel):
    regions: list[Region]


class Project(BaseModel):
    id: str
    name: str
    slug: str
    organization_id: str
    organization_name: str


class Projects(BaseModel):
    data: list[Project]
    next_cursor: str | None


class Named(BaseModel):
    id: str
    name: str


class WhoamiProject(Named):
    slug: str


class Id(BaseModel):
    id: str


class WhoamiKey(BaseModel):
    type: Literal["project_api_key"] = "project_api_key"
    api_key: Id
    organization: Named
    project: WhoamiProject


class WhoamiPerson(BaseModel):
    type: Literal["user_jwt"] = "user_jwt"
    user: Id


class LedgerEvent(NodeLifecycleEvent):
    id: str
    severity: Entry.Severity
    count: int = Field(description="How often Kubernetes repeated it.")
    actor: str = Field(description="Who did it: a person, a key, Halftide or Kubernetes.")


class LedgerEvents(BaseModel):
    node_lifecycle_events: list[LedgerEvent]
    next_cursor: str | None = Field(description="Hand it in as `after` for what is older; null at the end.")
