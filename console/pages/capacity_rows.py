"""The Capacity page's rows, ready to be drawn: bars in percent, cells as looks, quotas and drills in words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Sum

from console.accounts.access import Actor
from console.accounts.models import Project
from console.capacity.drains.entries import span
from console.capacity.drawing.gauge import percent
from console.capacity.fleet import Fleet, Holder, Use, why
from console.capacity.models import PodVerdict, Quota, Reclaim
from console.capacity.reclaims import drills
from console.capacity.reclaims.drill import Totals
from console.clusters.models import Cluster

MOST_CELLS = 96  # a row draws so many nodes and counts the rest
DRILLS = 5
WORDS = {"booting": "joining", "sick": "not Ready", "held": "cordoned", "lost": "not heard from"}  # else as the state is called
Verdict = PodVerdict.Verdict


@dataclass(frozen=True)
class Segment:
    look: str
    x: str
    width: str


@dataclass(frozen=True)
class PoolRow:
    use: Use
    current: bool
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class HolderRow:
    holder: Holder
    cells: tuple[str, ...]
    more: int
    says: str
    why: str
    may_open: bool


@dataclass(frozen=True)
class QuotaRow:
    project: Project
    gpus: int
    asked: int
    own: bool
    set_by: str
    set_at: datetime | None

    @property
    def over(self) -> bool:
        return self.asked > self.gpus


@dataclass(frozen=True)
class DrillRow:
    """`page` is empty for who may not see the cluster. Only the newest has its steps."""

    reclaim: Reclaim
    gpus: int
    page: str
    steps: tuple[tuple[bool, str, str], ...] = ()  # done, what, how long


def pool_rows(fleet: Fleet) -> list[PoolRow]:
    return [PoolRow(use, use is fleet.looked_at, segments(use)) for use in fleet.uses]


def segments(use: Use) -> tuple[Segment, ...]:
    """Parts of the bar, left to right. Where our rows say more than the provider's last word, all of it still fits."""
    parts = [
        ("std", use.standard), ("pre", use.preemptible), ("boot", use.joining), ("drain", use.draining),
        ("others", use.others), ("free", use.free),
    ]  # fmt: skip
    whole = max(1, use.total, sum(gpus for _, gpus in parts))
    found, at = [], 0
    for look, gpus in parts:
        if gpus:
            found.append(Segment(look, percent(at, whole), percent(gpus, whole)))
            at += gpus
    return tuple(found)


def holder_rows(fleet: Fleet, actor: Actor) -> list[HolderRow]:
    return [_holder(holder, actor.role_in(holder.cluster.project_id) is not None) for holder in fleet.holders]


def _holder(holder: Holder, may_open: bool) -> HolderRow:
    looks = [
        f"{'pre' if line.preemptible else 'std'}{'' if line.state == 'ready' else f' {line.state}'}" for line in holder.lines
    ]
    looks += ["pre waiting"] * min(holder.waiting, MOST_CELLS)
    counts = Counter((line.preemptible, line.state) for line in holder.lines)
    words = [
        f"{number} {'preemptible' if preemptible else 'standard'} {WORDS.get(state, state)}"
        for (preemptible, state), number in sorted(counts.items())
    ]
    if holder.waiting:
        words.append(f"{holder.waiting} not yet machines")
    reasons = " · ".join(part for part in (why(holder.difference), holder.standard_why) if part)
    more = max(0, len(holder.lines) + holder.waiting - MOST_CELLS)
    return HolderRow(holder, tuple(looks[:MOST_CELLS]), more, ", ".join(words) or "no nodes", reasons, may_open)


def quota_rows() -> list[QuotaRow]:
    """Every project with what all its clusters ask for. Three queries."""
    own = {quota.project_id: quota for quota in Quota.objects.all()}
    rows = Cluster.objects.values_list("project_id").annotate(Sum("desired_preemptible_gpus")).order_by()
    asked: dict[UUID, int] = dict(rows)
    return [_quota(project, own.get(project.pk), asked.get(project.pk, 0)) for project in Project.objects.order_by("name", "pk")]


def _quota(project: Project, own: Quota | None, asked: int) -> QuotaRow:
    if own is None:
        return QuotaRow(project, settings.QUOTA_GPUS, asked, False, "", None)
    return QuotaRow(project, own.gpus, asked, True, own.set_by, own.set_at)


def drill_rows(actor: Actor, now: datetime) -> list[DrillRow]:
    """The last drills, the newest with its steps as far as they have come."""
    found = Reclaim.objects.filter(drill=True).select_related("cluster__project", "cluster__gpu_type")
    latest = list(found.order_by("-asked_at", "-pk")[:DRILLS])
    return [_drill(reclaim, actor, steps(drills.read(reclaim, now)) if reclaim is latest[0] else ()) for reclaim in latest]


def _drill(reclaim: Reclaim, actor: Actor, done: tuple[tuple[bool, str, str], ...]) -> DrillRow:
    gpus = reclaim.num_gpus or len(reclaim.answer["drains"]) * reclaim.cluster.gpu_type.gpus_per_node
    page = drills.page_of(reclaim) if actor.role_in(reclaim.cluster.project_id) is not None else ""
    return DrillRow(reclaim, gpus, page, done)


def steps(drill: drills.Drill) -> tuple[tuple[bool, str, str], ...]:
    """The four lines of a drill: closed, told, stopped, gone and replaced. A length stands where a step is over for all nodes."""
    totals = drill.report.totals
    window = max((line.deadline - line.notice_at for line in drill.report.nodes), default=None)
    deadline = f", deadline was {span(round(window.total_seconds()))}" if window is not None else ""
    nodes = f"{totals.nodes} {'node' if totals.nodes == 1 else 'nodes'}"
    back = f"{totals.gpus} GPUs replaced" if not totals.not_replaced else f"{totals.not_replaced} nodes not replaced"
    return (
        _step(f"{nodes} cordoned and announced", totals.cordoned),
        _step(f"{_pods(totals.pods)} told", totals.told if totals.pods else totals.cordoned),
        _step(_ends(totals), totals.last_pod_gone),
        _step(f"{nodes} gone{deadline}", totals.removed),
        _step(back, totals.replaced),
    )


def _step(what: str, seconds: float | None) -> tuple[bool, str, str]:
    if seconds is None:
        return (False, what, "–")
    return (True, what, f"{seconds:.1f} s" if seconds < 10 else span(round(seconds)))


def _pods(number: int) -> str:
    return f"{number} {'pod' if number == 1 else 'pods'}"


def _ends(totals: Totals) -> str:
    """What became of the pods, the good word first."""
    words = [
        (Verdict.FINISHED, "finished by themselves"), (Verdict.BUDGET_OVERRIDDEN, "had their budget overridden"),
        (Verdict.KILLED, "killed"), (Verdict.NEVER_STOPPED, "never stopped"), (Verdict.UNKNOWN, "gone unseen"),
        (Verdict.STOPPING, "stopping"),
    ]  # fmt: skip
    parts = [f"{totals.verdicts[verdict]} {what}" for verdict, what in words if totals.verdicts.get(verdict)]
    return f"{_pods(totals.pods)}: {', '.join(parts)}" if parts else "no pods but DaemonSets"


def takeable(clusters: Sequence[Holder]) -> list[tuple[str, str]]:
    """Clusters of the pool that hold preemptible machines, as choices: those without have nothing to take."""
    return [
        (str(one.cluster.pk), f"{one.cluster.name}, {_held(one)} GPUs")
        for one in clusters
        if _held(one) and one.cluster.mode != Cluster.Mode.OBSERVE
    ]


def _held(holder: Holder) -> int:
    return sum(line.gpus for line in holder.lines if line.preemptible and line.state != "draining")
