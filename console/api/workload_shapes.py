"""What the API answers about workloads."""

from datetime import datetime

from pydantic import BaseModel, Field

from console.workloads.standing import State


class WorkloadPods(BaseModel):
    """Of pods that have not ended."""

    preemptible: int = Field(description="On preemptible nodes.")
    standard: int = Field(description="On standard nodes.")
    waiting: int = Field(description="Without a node.")


class Finding(BaseModel):
    code: str = Field(
        description="For programs, such as no_checkpoint, none_on_standard, grace_cut, not_asked: see docs/workloads.md."
    )
    message: str
    warns: bool = Field(description="Somebody should change it.")


class LastDrain(BaseModel):
    started_at: datetime
    cause: str
    verdicts: dict[str, int] = Field(description="How many of its pods ended how, over drains that began within a minute.")
    preemptions_24h: int


class Workload(BaseModel):
    workload_id: str
    namespace: str
    kind: str = Field(description="Of who started it: Job, Deployment, RayJob, …; Pod for a bare one.")
    name: str
    first_seen_at: datetime
    gone_at: datetime | None = Field(description="Since when it has no pod; it is kept for a day.")
    state: State
    message: str = Field(description="Where it stands, for a person.")
    original_message: str | None = Field(description="Kubernetes' own words, where there are any.")
    needs_attention: bool
    num_gpus: int
    pods: WorkloadPods
    last_checkpoint: datetime | None = Field(description="The tenants' word; null where nothing says.")
    findings: list[Finding]
    last_drain: LastDrain | None = Field(description="Of the last 24 hours.")


class Workloads(BaseModel):
    workloads: list[Workload]
    next_cursor: str | None = Field(description="Hand it in as `after` for what was seen earlier; null at the end.")
