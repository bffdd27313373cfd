"""The demo's *Try this* card: four things to do in a minute, ticked off by the ledger. Never outside the demo.

Opening a drain leaves no trace in a ledger, so the browser ticks that one.
"""

import shlex
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

from console.accounts.models import Role
from console.capacity.models import Drain
from console.capacity.picture import Picture
from console.timeline.models import Entry

DISMISSED = "halftide_try"  # a cookie, so that the page is drawn without the card from the start
WANT, TAKE = 64, 8  # GPUs


@dataclass(frozen=True)
class Step:
    key: str
    text: str
    says: str
    done: bool
    command: str = ""


def steps(request: HttpRequest, drawn: Picture) -> tuple[Step, ...]:
    """For who may do them; none outside the demo, where dismissed, and where there is nothing to preempt."""
    actor = request.actor  # type: ignore[attr-defined]
    if not settings.DEMO or DISMISSED in request.COOKIES or not actor.may(drawn.cluster.project_id, Role.OPERATOR):
        return ()
    entries = Entry.objects.filter(stream_id=drawn.cluster.stream)
    taken = Drain.objects.filter(cluster=drawn.cluster, reclaim__isnull=False)
    found = [
        Step(
            "target",
            f"Drag the target to {WANT}",
            "Nodes join one by one; the gauge says what is missing and why.",
            entries.filter(reason="TargetChanged", data__to__gte=WANT).exists(),
        )
    ]
    if actor.fleet_operator:
        says = "The nodes with the least unsaved work go, each pod gets its grace, and the target fills up again."
        done = entries.filter(reason="TogetherPreempted", drain_id__in=taken.values("pk")).exists()
        found.append(Step("reclaim", f"Reclaim {TAKE} GPUs", says, done))
    found.append(Step("drain", "Open a drain in the timeline", "It says of each pod what became of it.", False))
    if drawn.lines:
        says, done = "It is in the timeline within a second.", entries.filter(reason="NodeCordoned").exists()
        found.append(Step("kubectl", "Run this in a terminal", says, done, command(drawn)))
    return tuple(found)


def command(drawn: Picture) -> str:
    """Closes a node that nobody is about to take."""
    ready = [line.name for line in drawn.lines if line.state == "ready"] or [drawn.lines[0].name]
    kubeconfig = shlex.quote(str(settings.STATE_DIR / "kubeconfig"))
    return f"kubectl --kubeconfig {kubeconfig} --context {shlex.quote(drawn.cluster.name)} cordon {shlex.quote(ready[-1])}"
