"""What the API takes and answers about reclaims, drains and drills."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from console.api.requests import Body
from console.capacity.models import Drain as Model
from console.capacity.models import PodVerdict


class ReclaimRequest(Body):
    """Either `num_gpus` or `nodes`."""

    num_gpus: int | None = Field(default=None, description="Whole nodes; those go whose loss costs least.")
    nodes: Annotated[list[Any] | None, Field(description="Names of nodes. Those that cannot go are refused one by one.")] = None
    drill: bool | None = Field(default=None, description="A real reclaim that ends with a report.")


class StartedDrain(BaseModel):
    drain_id: str
    node_name: str
    deadline: datetime


class RefusedNode(BaseModel):
    node_name: str
    code: str = Field(description="empty, malformed, unknown, standard, foreign or draining.")
    message: str


class ReclaimAnswer(BaseModel):
    reclaim_id: str
    drains: list[StartedDrain]
    refused: list[RefusedNode] = Field(description="Named nodes that cannot go, each with the reason.")


class Verdict(BaseModel):
    pod: str
    namespace: str
    verdict: PodVerdict.Verdict
    exit_code: int | None
    seconds: float | None = Field(description="From SIGTERM to its end; null until both are known.")
    given_grace: int | None = Field(description="Seconds it was given; null until it was told.")
    budget: str | None = Field(description="The disruption budget that holds it or was overridden.")


class DrainSummary(BaseModel):
    drain_id: str
    reclaim_id: str | None = Field(description="The reclaim it belongs to, if any.")
    node_name: str
    state: Model.State
    cause: Model.Cause
    why: str
    asked_by: str | None
    started_at: datetime
    deadline: datetime
    cordoned_at: datetime | None
    announced_at: datetime | None
    told_at: datetime | None = Field(description="Every evictable pod has been told.")
    emptied_at: datetime | None = Field(description="No evictable pod was left.")
    terminated_at: datetime | None
    removed_at: datetime | None
    pods_left: int = Field(description="At the deadline.")
    note: str | None = Field(description="What holds it just now, in a sentence.")


class Drain(DrainSummary):
    verdicts: list[Verdict]


class RefusedCount(BaseModel):
    source: str = Field(description="asked: by a person or a system; node: a taint or condition of its own.")
    reason: str
    count: int
    last_at: datetime


class Drains(BaseModel):
    drains: list[DrainSummary]
    refused_notices: list[RefusedCount] = Field(description="How often notices for nodes of this cluster were refused.")
    next_cursor: str | None = Field(description="Hand it in as `after` for what is older; null at the end.")


class DrillPod(BaseModel):
    pod: str
    namespace: str
    verdict: PodVerdict.Verdict
    exit_code: int | None
    seconds: float | None = Field(description="Used, from SIGTERM to its end.")
    of_seconds: int = Field(description="The drain's window.")
    checkpoint_minutes: float | None = Field(description="Work since its last checkpoint when it ended; null without one.")


class DrillNode(BaseModel):
    """Lengths are seconds since `notice_at`; null is a step that has not happened."""

    node_name: str
    gpus: int
    state: Model.State
    notice_at: datetime
    deadline: datetime
    cordoned: float | None
    told: float | None
    last_pod_gone: float | None
    removed: float | None
    replaced: float | None
    replaced_by: str | None
    replaced_at: datetime | None
    gpu_minutes_away: float
    pods: list[DrillPod]


class DrillTotals(BaseModel):
    """The slowest of each step, in seconds (null until the last node has taken it), and sums."""

    nodes: int
    gpus: int
    pods: int
    verdicts: dict[str, int]
    cordoned: float | None
    told: float | None
    last_pod_gone: float | None
    removed: float | None
    replaced: float | None
    not_replaced: int
    longest_pod_seconds: float | None
    longest_checkpoint_minutes: float | None
    gpu_minutes_away: float


class DrillReport(BaseModel):
    reclaim_id: str
    asked_at: datetime
    asked_by: str
    finished_at: datetime | None = Field(description="Null while it goes on.")
    nodes: list[DrillNode]
    totals: DrillTotals
    before: DrillTotals | None = Field(description="Of the drill before this one in the cluster.")
    before_asked_at: datetime | None


class Reclaim(BaseModel):
    reclaim_id: str
    asked_at: datetime
    asked_by: str
    num_gpus: int | None = Field(description="Null where nodes were named.")
    drill: bool
    finished_at: datetime | None = Field(description="Of a drill: its machines are gone and replaced.")
    drains: list[DrainSummary]
    refused: list[RefusedNode]
    report: DrillReport | None = Field(description="Of a drill.")
