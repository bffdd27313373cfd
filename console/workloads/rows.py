"""A workload as a row of the page: the same text on first load, by poll and by socket. No controls and no roles in it.

Names come from strangers; everything goes through a template that escapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.template.loader import get_template

from console.capacity.models import PodVerdict
from console.clusters.models import Cluster
from console.workloads import commands
from console.workloads.facts import PREEMPTIBLE, STANDARD, Owner
from console.workloads.fit import Finding, fit
from console.workloads.standing import Now, rank, stand, troubled
from console.workloads.words import count

Verdict = PodVerdict.Verdict
VERDICTS = {
    Verdict.STOPPING.value: "stopping",
    Verdict.FINISHED.value: "finished",
    Verdict.KILLED.value: "killed at the deadline",
    Verdict.BUDGET_OVERRIDDEN.value: "told despite a budget",
    Verdict.NEVER_STOPPED.value: "never stopped",
    Verdict.UNKNOWN.value: "with no end seen",
    Verdict.BLOCKED.value: "held by a budget",
}
BAD = {Verdict.KILLED.value, Verdict.NEVER_STOPPED.value}


@dataclass(frozen=True)
class Line:
    """Everything that a row says, decided once."""

    owner: Owner
    now: Now
    findings: tuple[Finding, ...]
    rank: int
    context: str  # of kubectl

    @property
    def preemptible(self) -> int:
        return self.owner.on(PREEMPTIBLE)

    @property
    def standard(self) -> int:
        return self.owner.on(STANDARD)

    @property
    def logs(self) -> str:
        return commands.logs(self.context, self.owner)

    @property
    def describe(self) -> str:
        return commands.describe(self.context, self.owner)

    @property
    def trouble(self) -> bool:
        return troubled(self.rank)

    @property
    def warned(self) -> bool:
        return any(finding.warns for finding in self.findings)

    @property
    def sort(self) -> str:
        """What needs a person first, then by name; the browser keeps this order too."""
        return f"{self.rank} {self.owner.namespace}/{self.owner.name} {self.owner.id.hex}"

    @property
    def text(self) -> str:
        """What the text filter looks at."""
        return f"{self.owner.namespace}/{self.owner.name} {self.owner.kind}".lower()

    @property
    def drained(self) -> str:
        """The last drains' verdicts: "3 finished, 1 killed at the deadline"."""
        last = self.owner.drained
        return ", ".join(f"{number} {VERDICTS.get(verdict, verdict)}" for verdict, number in last.verdicts) if last else ""

    @property
    def drained_badly(self) -> bool:
        last = self.owner.drained
        return last is not None and any(verdict in BAD for verdict, _ in last.verdicts)

    @property
    def preemptions(self) -> str:
        last = self.owner.drained
        return f"{count(last.preemptions, 'preemption')} in 24 h" if last and last.preemptions else ""


def line_of(cluster: Cluster, owner: Owner, now: datetime) -> Line:
    """What is to be said of a workload at an instant."""
    standing, findings = stand(owner), fit(owner, settings.DRAIN_WINDOW, now)
    return Line(owner, standing, findings, rank(standing, findings), cluster.name)


def render_row(cluster: Cluster, line: Line) -> str:
    """One `<tr>` (kind `workload` when sent alone)."""
    return get_template("workloads/_row.html").render({"cluster": cluster, "line": line, "owner": line.owner})
