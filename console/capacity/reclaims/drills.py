"""Drills in rows: reading one as facts, comparing it with the one before, and noting when it is over.

A drill is an ordinary reclaim; nothing waits for its end but its report. So the sweep looks each second at the few that run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch

from console.capacity.drains.entries import span
from console.capacity.models import Drain, PodVerdict, Reclaim
from console.capacity.reclaims.drill import Arrival, NodeFacts, PodFacts, Report, Totals, finished, report
from console.clusters.models import Cluster, ComputeClass, Machine
from console.timeline.changes import Change, change
from console.timeline.models import Entry

REASON = "DrillFinished"


@dataclass(frozen=True)
class Drill:
    """A drill and its report, with the figures of the drill before it in this cluster (None for the first)."""

    reclaim: Reclaim
    report: Report
    before: Totals | None
    before_at: datetime | None

    @property
    def running(self) -> bool:
        return self.reclaim.finished_at is None


def read(reclaim: Reclaim, now: datetime) -> Drill:
    """Of a drill: at most eight queries, however many nodes and pods."""
    earlier = Reclaim.objects.filter(cluster=reclaim.cluster_id, drill=True, asked_at__lt=reclaim.asked_at)
    previous = earlier.order_by("-asked_at", "-pk").first()
    before = _report(previous, now).totals if previous is not None else None
    return Drill(reclaim, _report(reclaim, now), before, previous.asked_at if previous is not None else None)


def finish(now: datetime) -> None:
    """Close the drills that are over, each once, with an entry that leads to the report."""
    for running in Reclaim.objects.filter(drill=True, finished_at=None).order_by("pk"):
        nodes = _nodes(running)
        if not _over(running, nodes, running.cluster, now):
            continue
        with change(now) as made:
            cluster = made.lock(Cluster.objects.filter(pk=running.cluster_id))[0]
            if Reclaim.objects.filter(pk=running.pk, finished_at=None).update(finished_at=now):
                running.finished_at = now
                _say(made, cluster, running, report(nodes, _arrivals(running, nodes, now), now).totals)


def page_of(reclaim: Reclaim) -> str:
    """Where its report is shown."""
    return f"/clusters/{reclaim.cluster_id}/drills/{reclaim.pk}"


def _over(running: Reclaim, nodes: Sequence[NodeFacts], cluster: Cluster, now: datetime) -> bool:
    arrivals = _arrivals(running, nodes, now)
    desired, allocated = cluster.desired_preemptible_gpus, cluster.allocated_preemptible_gpus
    return finished(nodes, arrivals, desired, allocated, running.asked_at, now)


def _report(reclaim: Reclaim, now: datetime) -> Report:
    until = reclaim.finished_at or now
    nodes = _nodes(reclaim)
    return report(nodes, _arrivals(reclaim, nodes, until), until)


def _nodes(reclaim: Reclaim) -> list[NodeFacts]:
    verdicts = Prefetch("verdicts", PodVerdict.objects.order_by("namespace", "name"))
    rows = reclaim.drains.select_related("machine").prefetch_related(verdicts).order_by("started_at", "pk")
    return [_facts(row, reclaim.asked_at) for row in rows]


def _facts(row: Drain, noticed_at: datetime) -> NodeFacts:
    return NodeFacts(
        name=row.node_name,
        gpus=row.machine.gpus,
        state=row.state,
        notice_at=noticed_at,  # of a scale-down that became part of the drill, not its own beginning
        deadline=row.deadline,
        cordoned_at=row.cordoned_at,
        told_at=row.told_at,
        emptied_at=row.emptied_at,
        removed_at=row.removed_at,
        pods=[
            PodFacts(pod.namespace, pod.name, pod.verdict, pod.exit_code, pod.told_at, pod.ended_at, pod.last_checkpoint)
            for pod in row.verdicts.all()
        ],
    )


def _arrivals(reclaim: Reclaim, nodes: Sequence[NodeFacts], until: datetime) -> list[Arrival]:
    """The machines that were asked for since and are Ready, as many as went: later ones stand in for nothing of this drill."""
    came = Machine.objects.filter(
        cluster=reclaim.cluster_id,
        compute_class=ComputeClass.PREEMPTIBLE,
        asked_at__gte=reclaim.asked_at,
        first_ready_at__lte=until,
    )
    gone = sum(node.state != Drain.State.STOPPED for node in nodes)
    rows = came.order_by("first_ready_at", "pk").values_list("node_name", "first_ready_at")[:gone]
    return [Arrival(name, at) for name, at in rows if at is not None]


def _say(made: Change, cluster: Cluster, reclaim: Reclaim, totals: Totals) -> None:
    made.entry(
        cluster.stream,
        REASON,
        sentence(reclaim, totals),
        severity=Entry.Severity.WARNING if totals.not_replaced else Entry.Severity.INFO,
        subject=("Cluster", cluster.name, str(cluster.pk)),
        data={"reclaim": str(reclaim.pk), "page": page_of(reclaim)},
    )


def sentence(reclaim: Reclaim, totals: Totals) -> str:
    """What the timeline says at the end."""
    nodes = f"{totals.nodes} {'node' if totals.nodes == 1 else 'nodes'} ({totals.gpus} GPUs)"
    gone = f" gone within {span(round(totals.removed))}" if totals.removed is not None else ""
    back = f"{totals.not_replaced} not replaced"
    if totals.replaced is not None:
        back = f"replaced within {span(round(totals.replaced))}"
    return (
        f"Drill by {reclaim.asked_by} is over: {nodes}{gone}, {back}; {totals.pods} "
        f"{'pod' if totals.pods == 1 else 'pods'} told, {totals.gpu_minutes_away:g} GPU-minutes away"
    )
