"""Notices that cannot be followed: each is said once in the timeline and counted, and none holds up another.

A system outside may send the same wrong notice each second, so a repeat within ten minutes is the same row with a higher count.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F

from console.capacity.models import RefusedNotices
from console.clusters.models import Cluster
from console.timeline.changes import Actor, Change
from console.timeline.models import Entry

REASON = "NoticeRefused"
SAME = timedelta(minutes=10)  # within which a repeat is no new row
MOST_SAID = 5  # sentences of one row; the rest is a number
SHOWN = 60  # characters of a wrong name that a sentence repeats

ASKED, NODE = "asked", "node"  # where a notice comes from


@dataclass(frozen=True)
class Refusal:
    """One node of a notice, and why not. `code` is for programs.

    empty, malformed, unknown, standard, foreign, draining, observed. A name that is none stands here as `shown` says it, which
    any column can keep.
    """

    node_name: str
    code: str
    message: str


def refuse(made: Change, cluster: Cluster, source: str, refused: Sequence[Refusal], actor: Actor) -> None:
    """Say and count what was refused. The cluster is locked by the caller, so no two of these meet in its rows."""
    if not refused:
        return
    for code, number in Counter(refusal.code for refusal in refused).items():
        row, _ = RefusedNotices.objects.get_or_create(cluster=cluster, source=source, reason=code, defaults={"last_at": made.now})
        RefusedNotices.objects.filter(pk=row.pk).update(count=F("count") + number, last_at=made.now)
    message = f"Notice refused. {said(refused)}"
    same = Entry.objects.filter(stream=cluster.stream, reason=REASON, at__gte=made.now - SAME, message=message)
    for entry in same.filter(actor_name=actor.name).order_by("-at")[:1]:
        entry.count, entry.last_at = entry.count + 1, made.now
        made.save(cluster.stream, entry, "count", "last_at")
        return
    made.entry(
        cluster.stream,
        REASON,
        message,
        actor=actor,
        severity=Entry.Severity.WARNING,
        subject=("Cluster", cluster.name, str(cluster.pk)),
        data={"refused": [vars(refusal) for refusal in refused[:MOST_SAID]], "number": len(refused)},
    )


def shown(name: object) -> str:
    """A wrong name as JSON writes it, cut where it is long: a stranger's text, and safe to keep."""
    text = json.dumps(name, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def said(refused: Sequence[Refusal]) -> str:
    """The sentences of the first few, and how many more there are."""
    more = len(refused) - MOST_SAID
    return " ".join(refusal.message for refusal in refused[:MOST_SAID]) + (f" And {more} more." if more > 0 else "")
