"""What the API takes. Integers are integers ("16", 16.0 and true are not), a field that nobody knows is refused, and null is as
good as leaving a field out: the published command line sends null for what was not given.

What the client can say and Halftide cannot do has a field too, of which only null is taken, with the sentence that explains it:
nothing that was asked for is ignored in silence.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from console.api.shapes import MACHINE_IMAGE

ON_DEMAND_ONLY = "Halftide's machines are all on demand: there are no reservations, no schedules and no end of a contract."
NO_POOL_SHARE = "Halftide has no prepaid capacity pools; every cluster draws on the pool of its region and GPU type."
NO_ADD_ONS = "Halftide installs nothing into a cluster; install it with the cluster's kubeconfig."
NO_VOLUMES = "Halftide keeps no volumes; use those of the cluster's storage classes."
NO_SLURM = "Slurm clusters are not offered here; only KUBERNETES is."
TARGETS_ONLY = "The number of GPUs is a target that you set; Halftide does not scale it by load."
NO_TESTS = "Halftide runs no acceptance tests."
NO_OIDC = "A cluster's own OIDC sign-in cannot be set here."

REFUSALS = {
    "reservation_start_time": ON_DEMAND_ONLY,
    "reservation_end_time": ON_DEMAND_ONLY,
    "duration_days": ON_DEMAND_ONLY,
    "num_reserved_gpus": ON_DEMAND_ONLY,
    "billing_type": ON_DEMAND_ONLY,
    "num_capacity_pool_gpus": NO_POOL_SHARE,
    "capacity_pool_id": NO_POOL_SHARE,
    "add_ons": NO_ADD_ONS,
    "cluster_config": NO_ADD_ONS,
    "install_traefik": NO_ADD_ONS,
    "volume_id": NO_VOLUMES,
    "shared_volume": NO_VOLUMES,
    "cluster_type": NO_SLURM,
    "slurm_image": NO_SLURM,
    "slurm_shm_size_gib": NO_SLURM,
    "auto_scale": TARGETS_ONLY,
    "auto_scale_max_gpus": TARGETS_ONLY,
    "acceptance_tests_params": NO_TESTS,
    "oidc_config": NO_OIDC,
    "nvidia_version_id": f"The machines bring their driver; the only version is {MACHINE_IMAGE}.",
    "cuda_version": f"The machines bring their CUDA; the only version is {MACHINE_IMAGE}.",
    "nvidia_driver_version": f"The machines bring their driver; the only version is {MACHINE_IMAGE}.",
}

Refused = Annotated[None, Field(description="Not offered: leave it out.")]
PlainName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=63)]
Image = Literal["machine-image"] | None
Kubernetes = Literal["KUBERNETES"] | None


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ClusterUpdate(Body):
    """What is left out stays as it is. Two numbers are set together or not at all."""

    num_preemptible_gpus: int | None = Field(
        default=None, description="The preemptible target: whole nodes. What the pool lacks, waits."
    )
    num_gpus: int | None = Field(default=None, description="Standard GPUs: whole nodes, at least one.")
    cluster_type: Kubernetes = None
    num_reserved_gpus: Refused = None
    num_capacity_pool_gpus: Refused = None
    reservation_end_time: Refused = None
    cluster_config: Refused = None
    add_ons: Refused = None


class ClusterCreate(Body):
    """`project_id` may be left out with a key (its project is meant), or where you administer one project only."""

    cluster_name: str = Field(description="Letters a to z, digits, hyphens; at most 63.")
    region: PlainName
    gpu_type: PlainName
    num_gpus: int = Field(description="Standard GPUs: whole nodes, at least one.")
    num_preemptible_gpus: int | None = Field(default=None, description="The preemptible target; 0 where left out.")
    project_id: str | None = None
    billing_type: Literal["ON_DEMAND"] | None = None
    cluster_type: Kubernetes = None
    nvidia_version_id: Image = None
    cuda_version: Image = None
    nvidia_driver_version: Image = None
    num_reserved_gpus: Refused = None
    num_capacity_pool_gpus: Refused = None
    capacity_pool_id: Refused = None
    duration_days: Refused = None
    reservation_start_time: Refused = None
    reservation_end_time: Refused = None
    auto_scale: Literal[False] | None = None
    auto_scale_max_gpus: Refused = None
    volume_id: Refused = None
    shared_volume: Refused = None
    install_traefik: Refused = None
    slurm_image: Refused = None
    slurm_shm_size_gib: Refused = None
    oidc_config: Refused = None
    add_ons: Refused = None
    cluster_config: Refused = None
    acceptance_tests_params: Refused = None
