"""What to do at the API after a commit. The ledger is the truth: an errand that fails is tried again or was a courtesy."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from console.clusters.models import Cluster, ComputeClass, Machine
from console.kube import marks
from console.kube.client import Kube
from console.kube.errors import Forbidden, KubeError
from console.kube.shapes import LeaseShape
from console.sync.apply import NodeNews
from console.sync.nodes import Told
from console.sync.words import SCALED_UP, Line
from console.timeline.changes import change
from console.timeline.models import Entry

log = logging.getLogger(__name__)

REFUSED = "KubernetesRefused"
SAID_AGAIN = timedelta(hours=1)

# Kubernetes forgets Events after an hour; an arrival older than this is no news to those who watch it there.
STILL_NEWS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Announce:
    """Emit the Event of an arrival on its Node. Its name derives from the machine, so a repeat is no second Event."""

    name: str
    node_name: str
    node_uid: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Relabel:
    """Put a machine's compute class back on its node."""

    node_name: str
    node_uid: str
    preemptible: bool


@dataclass(frozen=True, slots=True)
class LastProof:
    """Read a silent node's Lease once: its renewTime is the machine's last proof of life (DESIGN 11)."""

    node_name: str
    machine: UUID


@dataclass(frozen=True, slots=True)
class Unmark:
    """Take our marks off a node that a person has opened, as it was seen then."""

    node_name: str
    node_uid: str
    resource_version: str


Errand = Announce | Relabel | LastProof | Unmark

MAY_NOT: dict[type[Errand], str] = {
    Announce: "say on a Node that it has arrived",
    Relabel: "put a node's compute-class label back",
    LastProof: "read when a silent node was last known to live",
    Unmark: "take its marks off a node that a person has opened",
}


def errands(told: Sequence[Told], lines: Sequence[Line], *, may_act: bool) -> list[Errand]:
    """What follows from what was seen. Where we only observe, no write verb is ever sent."""
    todo: list[Errand] = []
    for one in told:
        if one.machine and one.news is NodeNews.NOT_READY and one.shape.ready is None:
            todo.append(LastProof(one.row.name, one.machine.pk))
        if one.machine and one.news is NodeNews.RELABELLED and may_act:
            todo.append(Relabel(one.row.name, one.row.uid, one.row.compute_class == ComputeClass.PREEMPTIBLE))
        if one.news is NodeNews.LEFTOVER and may_act:
            todo.append(Unmark(one.row.name, one.row.uid, one.shape.resource_version))
    todo += [Announce(line.own_event, line.name, line.uid, line.message, line.at) for line in lines if line.own_event]
    return todo


def unannounced(cluster_id: UUID, now: datetime) -> list[Errand]:
    """Arrivals whose Event has not been seen: whoever should have emitted it may have died first."""
    if not Cluster.objects.filter(pk=cluster_id, mode=Cluster.Mode.ACT).exists():
        return []
    rows = Entry.objects.filter(stream=cluster_id, at__gte=now - STILL_NEWS, reason=SCALED_UP, seen_at=None)
    return [
        Announce(str(row.own_event), row.subject_name, row.subject_uid, row.message, row.at)
        for row in rows.exclude(own_event=None)
    ]


async def run(kube: Kube, errand: Errand) -> datetime | Forbidden | None:
    """Do it. What comes back is for `note`: of LastProof the instant, or a missing right. Other trouble is logged and left."""
    try:
        match errand:
            case Announce(name, node_name, node_uid, message, at):
                await kube.emit_event(
                    name=name, node_name=node_name, node_uid=node_uid, reason=SCALED_UP, type="Normal", message=message, at=at
                )
            case Relabel(node_name, node_uid, preemptible):
                await kube.set_label(node_name, node_uid, marks.CLASS_LABEL, marks.PREEMPTIBLE if preemptible else None)
            case Unmark(node_name, node_uid, resource_version):
                await kube.unmark(node_name, node_uid, resource_version)
            case LastProof(node_name):
                lease = await kube.get("leases", node_name, "kube-node-lease")
                return lease.renew_time if isinstance(lease, LeaseShape) else None
    except KubeError as error:
        log.warning("errand_failed", extra={"errand": type(errand).__name__, "why": error.sentence})
        return error if isinstance(error, Forbidden) else None
    return None


def note(cluster_id: UUID, errand: Errand, came: datetime | Forbidden, now: datetime) -> None:
    """Write what came of an errand: a proof of life, or that this cluster's account lacks a right."""
    if isinstance(came, Forbidden):
        _note_refusal(cluster_id, errand, came, now)
    elif isinstance(errand, LastProof):
        note_proof(errand.machine, came)


def _note_refusal(cluster_id: UUID, errand: Errand, why: Forbidden, now: datetime) -> None:
    """Say it once an hour for each kind of errand, however many nodes there are."""
    kind = type(errand).__name__
    with change(now) as made:
        for cluster in made.lock(Cluster.objects.filter(pk=cluster_id)):
            said = Entry.objects.filter(stream=cluster_id, reason=REFUSED, at__gte=now - SAID_AGAIN, data__errand=kind)
            if not said.exists():
                text = f"Halftide may not {MAY_NOT[type(errand)]} in {cluster.name}. {why.sentence}"
                subject = ("Cluster", cluster.name, str(cluster.pk))
                severity = Entry.Severity.WARNING
                made.entry(cluster.stream, REFUSED, text, severity=severity, subject=subject, data={"errand": kind})


def note_proof(machine: UUID, at: datetime) -> None:
    """The last proof of life of a machine that fell silent, where it is earlier than what the node's condition told."""
    Machine.objects.filter(Q(last_proof_at__gt=at), pk=machine, joined_at__lt=at).update(last_proof_at=at)
