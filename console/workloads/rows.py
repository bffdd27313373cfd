"""A workload as a row of the page: the same text on first load, by poll and by socket. No controls and no roles in it.

Names come from strangers, so every word is escaped here. Plain formatting, no template, as all that a page has a hundred of.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

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


def render_row(cluster: Cluster, line: Line) -> SafeString:
    """One `<tr>` (kind `workload` when sent alone)."""
    owner, key = line.owner, f"workload-{line.owner.id.hex}"
    name, namespace = escape(owner.name), escape(owner.namespace)
    address = reverse("workload", args=[cluster.pk, owner.id])
    saved, drain, fit_ = _saved(owner), _drain(line), "".join(_finding(one) for one in line.findings)
    return mark_safe(  # noqa: S308  (every word from outside is escaped)
        f'<tr id="{key}" data-key="{key}" data-sort="{escape(line.sort)}" data-namespace="{namespace}"'
        f' data-text="{escape(line.text)}" data-trouble="{int(line.trouble)}" data-name="{name}"'
        f' data-logs="{escape(line.logs)}" data-describe="{escape(line.describe)}">\n'
        f'<td class="full"><a class="name mono" href="{address}">{name}</a>'
        f"<small>{escape(owner.kind)} in {namespace}</small></td>\n"
        f'<td class="w-now full" data-label="Now">{_now(line.now)}</td>\n'
        f'<td class="num" data-label="Preemptible">{f"<b>{line.preemptible}</b>" if line.preemptible else NONE}</td>\n'
        f'<td class="num" data-label="Standard">{f"<b>{line.standard}</b>" if line.standard else NONE}</td>\n'
        f'<td data-label="Last checkpoint"{"" if saved else BLANK}>{saved or NONE}</td>\n'
        f'<td data-label="Last drain"{"" if drain else BLANK}>{drain or NONE}</td>\n'
        f'<td class="full w-fit{"" if fit_ else " blank"}" data-label="Fit">{fit_ or NONE}</td>\n'
        '<td class="num w-copy" data-copies></td>\n</tr>\n'
    )


NONE, BLANK = '<span class="muted">–</span>', ' class="blank"'


def _now(now: Now) -> str:
    original = f' title="{escape(now.original)}"' if now.original else ""
    since = ""
    if now.since:
        counts = f'<span data-since="{now.since.isoformat()}" title="Since {now.since:%Y-%m-%d %H:%M:%S} UTC"></span>'
        since = f', <span class="nowrap">for {counts}</span>'
    return (
        f'<span class="badge {now.look}"><svg class="i" aria-hidden="true"><use href="#{now.icon}"/></svg>{escape(now.word)}'
        f"</span><small{original}>{escape(now.sentence)}{since}</small>"
    )


def _saved(owner: Owner) -> str:
    """When its last checkpoint was, as the pods say; empty where nothing could be lost."""
    at = owner.last_checkpoint
    if at is None:
        return '<span class="muted">unsaved time: unknown</span>' if owner.unsaved_unknown else ""
    return _ago(at, f"{at:%Y-%m-%d %H:%M} UTC, as the pods say")


def _drain(line: Line) -> str:
    last = line.owner.drained
    if last is None:
        return ""
    look, preempted = ' class="over"' if line.drained_badly else "", line.preemptions
    return (
        f"{_ago(last.at, f'{last.at:%Y-%m-%d %H:%M:%S} UTC')}<small{look}>{escape(line.drained)}</small>"
        f"{f'<small>{preempted}</small>' if preempted else ''}"
    )


def _ago(at: datetime, title: str) -> str:
    """An instant that the browser turns into how long ago."""
    return f'<time data-ago datetime="{at.isoformat()}" title="{title}">{at:%H:%M} UTC</time>'


def _finding(one: Finding) -> str:
    look, icon = (" amber", "i-warning") if one.warns else ("", "i-info")
    mark = f'<svg class="i" aria-hidden="true"><use href="#{icon}"/></svg>'
    return f'<span class="v{look}">{mark}<span>{escape(one.sentence)}</span></span>'
