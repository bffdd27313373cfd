"""How well a cluster is heard, as rows: which kind is stale since when and why, one entry when it starts and one when it ends.

What fails deletes nothing and launches nothing; it only gets older, and says so (DESIGN 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from console.clusters.models import Cluster, KindState
from console.kube.shapes import Kind
from console.sync.room import PATIENCE, PICTURE, Hearing, Trouble
from console.sync.words import span
from console.timeline.changes import Change
from console.timeline.models import Entry

Verdicts = dict[Kind, Trouble | None]


def verdicts(hearing: Mapping[Kind, Hearing], now: datetime) -> Verdicts:
    """What the database should say and does not yet: trouble by kind, or None where it is over."""
    found: Verdicts = {}
    for kind, heard in hearing.items():
        verdict = heard.verdict(now)
        if isinstance(verdict, Trouble) and kind not in PICTURE and not _alone(hearing, verdict):
            continue  # part of an outage that is told already, or about to be
        if isinstance(verdict, Trouble) and heard.recorded != verdict.sentence:
            found[kind] = verdict
        elif verdict is True and heard.recorded != "":
            found[kind] = None
    return found


def _alone(hearing: Mapping[Kind, Hearing], trouble: Trouble) -> bool:
    """Whether the picture itself has been heard of long after this began."""
    heard = [hearing[kind].heard_at for kind in PICTURE]
    return all(at is not None and at - trouble.since >= PATIENCE for at in heard)


def states(cluster: Cluster) -> dict[str, KindState]:
    """How far each kind's picture reaches, by kind."""
    return {state.kind: state for state in KindState.objects.filter(cluster=cluster)}


def record(made: Change, cluster: Cluster, found: Verdicts, kinds: dict[str, KindState]) -> bool:
    """Write what is found on a locked cluster; True where it was lost or came back. The states are the caller's to save."""
    before = cluster.unreachable_since
    for kind, trouble in found.items():
        state = kinds.setdefault(kind, KindState(cluster=cluster, kind=kind))
        if kind not in PICTURE and bool(trouble) != bool(state.error):
            _told(made, cluster, kind, trouble)
        state.error = trouble.sentence[:300] if trouble else ""
        state.error_since = (state.error_since or trouble.since) if trouble else None
    failing = [state for state in kinds.values() if state.kind in PICTURE and state.error]
    if failing:
        _lost(made, cluster, min(failing, key=lambda state: (state.error_since or made.now, state.kind)))
    elif cluster.unreachable_since:
        _back(made, cluster)
    return cluster.unreachable_since != before


def _lost(made: Change, cluster: Cluster, state: KindState) -> None:
    """Say it once, however often it is tried; a new reason moves the panel and adds no row."""
    if cluster.unreachable_since and cluster.unreachable_why == state.error:
        return
    if cluster.unreachable_since is None:
        cluster.unreachable_since = state.error_since or made.now
        made.entry(
            cluster.stream,
            "KubernetesUnreachable",
            f"What Halftide shows of {cluster.name} is as of {cluster.unreachable_since:%H:%M:%S} UTC. {state.error}",
            severity=Entry.Severity.WARNING,
            subject=("Cluster", cluster.name, str(cluster.pk)),
        )
    cluster.unreachable_why = state.error
    made.save(cluster.stream, cluster, "unreachable_since", "unreachable_why")


def _back(made: Change, cluster: Cluster) -> None:
    assert cluster.unreachable_since is not None
    away = span(made.now - cluster.unreachable_since)
    cluster.unreachable_since, cluster.unreachable_why = None, ""
    made.save(cluster.stream, cluster, "unreachable_since", "unreachable_why")
    made.entry(
        cluster.stream,
        "KubernetesBack",
        f"{cluster.name} is heard again after {away}; everything that happened meanwhile has been read.",
        subject=("Cluster", cluster.name, str(cluster.pk)),
    )


def _told(made: Change, cluster: Cluster, kind: Kind, trouble: Trouble | None) -> None:
    """What only tells and decides nothing (Events) is missed by the timeline alone: said there, once, and its end once."""
    subject = ("Cluster", cluster.name, str(cluster.pk))
    if trouble is None:
        made.entry(cluster.stream, "EventsBack", f"The {kind} of {cluster.name} are read again.", subject=subject)
        return
    since = f"{trouble.since:%H:%M:%S} UTC"
    text = f"The {kind} of {cluster.name} are not read since {since}; its nodes and pods are. {trouble.sentence}"
    made.entry(cluster.stream, "EventsUnread", text, severity=Entry.Severity.WARNING, subject=subject)


def prove(cluster_id: UUID, at: datetime) -> None:
    """Move `proved_to` forward. It is no revision: a sign of life redraws nothing (kubernetes/kubernetes#29772)."""
    Cluster.objects.filter(Q(proved_to__lt=at) | Q(proved_to__isnull=True), pk=cluster_id).update(proved_to=at)
