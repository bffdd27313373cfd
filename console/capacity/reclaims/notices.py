"""Notices that clouds leave on their nodes, as taints and conditions, before they take the machine away.

Which ones count, what they mean and how long the cloud leaves is a table (`fixtures/notices.json`): a new one is a line of data.
Taints that only warn (rebalancing, maintenance that ends in a reboot, a freeze) are not in it: the machine stays. What a node
carries is a column of its row, so a notice that cannot be acted on at once (automation is stopped) is acted on when it can be.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.db.models import Exists, OuterRef

from console.capacity.drains.changes import Start, start_drains
from console.capacity.models import Drain
from console.capacity.queries import automation
from console.capacity.reclaims.refusals import NODE, Refusal, refuse
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.kube.shapes import NodeShape
from console.timeline.changes import HALFTIDE, Change, change
from console.timeline.models import Entry

Noticed = tuple[Node, Machine | None]


@dataclass(frozen=True)
class Notice:
    """One line of the table: a taint (with this value, where one is given) or a condition that is True (and says this word).

    `why` is the second half of "… goes back: AWS takes this Spot instance back"; `seconds` is what the cloud leaves at least,
    None where that is at least the drain window.
    """

    name: str
    why: str
    taint: str = ""
    value: str = ""
    condition: str = ""
    says: str = ""
    seconds: int | None = None

    def on(self, shape: NodeShape) -> bool:
        if self.taint:
            return any(taint.key == self.taint and self.value in ("", taint.value) for taint in shape.taints)
        return any(
            found.type == self.condition and found.status == "True" and self.says in f"{found.reason} {found.message}"
            for found in shape.conditions
        )


@cache
def table() -> tuple[Notice, ...]:
    """Read once a process."""
    data = json.loads((settings.BASE_DIR / "fixtures" / "notices.json").read_text(encoding="utf-8"))
    return tuple(Notice(**line) for line in data["notices"])


def notice_of(shape: NodeShape) -> str:
    """The name of the notice that a node carries; of several, the one that leaves the least time. Empty: none."""
    found = [notice for notice in table() if notice.on(shape)]
    return min(found, key=_time_left).name if found else ""


def _time_left(notice: Notice) -> float:
    return float("inf") if notice.seconds is None else notice.seconds


def named(name: str) -> Notice:
    """A notice that an older table had, and this one has not, is still one."""
    return next((notice for notice in table() if notice.name == name), Notice(name, f"its cloud has given notice ({name})"))


def heed(made: Change, cluster: Cluster, noticed: Sequence[Noticed]) -> None:
    """Act on notices that nodes were just seen with. The cluster, the machines and the nodes are locked by the caller.

    A preemptible machine of ours is drained as preempted; a repeated notice changes nothing, an earlier deadline counts. A
    standard or foreign node is refused, said and counted: it is not ours to give back (aws/aws-node-termination-handler#272).
    While automation is stopped nothing is begun; but a preemption that runs hears that its machine goes sooner.
    """
    refused = [refusal for node, machine in noticed if (refusal := _not_ours(cluster, node, machine))]
    names = {refusal.node_name for refusal in refused}
    ours = [(node, machine) for node, machine in noticed if node.name not in names and machine is not None]
    refuse(made, cluster, NODE, refused, HALFTIDE)
    going = ours if automation().on else _preempted(ours)
    if going:
        _start(made, cluster, going)
    for node, _ in (one for one in ours if one not in going):
        message = f"{node.name} has notice ({named(node.notice).why}), but automation is stopped: its drain waits until it runs"
        subject = ("Node", node.name, node.uid)
        warning, of_class = Entry.Severity.WARNING, node.compute_class
        made.entry(cluster.stream, "NoticeWaits", message, severity=warning, subject=subject, compute_class=of_class)


def heed_waiting(now: datetime) -> None:
    """Start what a notice asks for and nothing has begun yet: automation runs again, or the cluster may be acted on now.

    Whether it may is asked again under the cluster's lock: it may only be observed since, or automation stopped. A node that is
    drained for our convenience is preempted now: what may hold that drain does not hold its cloud.
    """
    going = Drain.objects.filter(machine=OuterRef("machine"), cause=Drain.Cause.PREEMPTED, state__in=Drain.OPEN)
    noticed = Node.objects.exclude(notice="").exclude(Exists(going))
    waiting = noticed.filter(
        compute_class=ComputeClass.PREEMPTIBLE, machine__state__in=Machine.ALIVE, cluster__mode=Cluster.Mode.ACT
    )
    clusters = list(waiting.order_by("cluster_id").values_list("cluster_id", flat=True).distinct())
    if not clusters or not automation().on:
        return
    for cluster_id in clusters:
        with change(now) as made:
            cluster = next(iter(made.lock(Cluster.objects.filter(pk=cluster_id, mode=Cluster.Mode.ACT))), None)
            if cluster is None or not automation().on:
                continue
            machines = {row.pk: row for row in made.lock(Machine.objects.filter(nodes__in=waiting.filter(cluster=cluster)))}
            nodes = made.lock(Node.objects.filter(pk__in=waiting.filter(cluster=cluster), machine__in=machines))
            _start(made, cluster, [(node, machines[node.machine_id]) for node in nodes if node.machine_id])


def _preempted(noticed: Sequence[tuple[Node, Machine]]) -> list[tuple[Node, Machine]]:
    """Those of them whose preemption is under way."""
    machines = [machine.pk for _, machine in noticed]
    open_drains = Drain.objects.filter(machine__in=machines, cause=Drain.Cause.PREEMPTED, state__in=Drain.OPEN)
    known = set(open_drains.values_list("machine_id", flat=True))
    return [(node, machine) for node, machine in noticed if machine.pk in known]


def _start(made: Change, cluster: Cluster, ours: Iterable[tuple[Node, Machine]]) -> None:
    by_notice: dict[str, list[tuple[Node, Machine]]] = defaultdict(list)
    for node, machine in ours:
        by_notice[node.notice].append((node, machine))
    for name, found in by_notice.items():
        notice = named(name)
        starts = [Start(machine, node, Drain.Cause.PREEMPTED, notice.why) for node, machine in found]
        deadline = made.now + timedelta(seconds=notice.seconds) if notice.seconds is not None else None
        start_drains(made, cluster, starts, "", made.now, deadline=deadline)


def _not_ours(cluster: Cluster, node: Node, machine: Machine | None) -> Refusal | None:
    why = named(node.notice).why
    if machine is None:
        return Refusal(node.name, "foreign", f"{node.name} has notice ({why}), but is no machine of Halftide's.")
    if machine.compute_class != ComputeClass.PREEMPTIBLE:
        return Refusal(node.name, "standard", f"{node.name} has notice ({why}), but is standard and never taken back.")
    if cluster.mode != Cluster.Mode.ACT:
        return Refusal(node.name, "observed", f"{node.name} has notice ({why}), but {cluster.name} is only observed.")
    if machine.state not in Machine.ALIVE:
        return Refusal(node.name, "draining", f"{node.name} has notice ({why}), but its machine is on its way out already.")
    return None
