"""What the pages of one cluster show, read once and in the order that loses nothing: first the head, then the rows.

The page carries the head's revision; socket and poll go on from there, so nothing falls between page and subscription.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from console.accounts.access import Actor
from console.accounts.models import Role
from console.capacity import panels, picture
from console.capacity.drawing.lines import Line
from console.capacity.drawing.nodes import cells, render_node
from console.capacity.picture import Picture
from console.clusters.access import get_cluster
from console.clusters.models import Cluster
from console.pages.days import place_of, under_days
from console.timeline import queries as ledger
from console.timeline.filters import Filter
from console.timeline.models import Stream

ROWS_FIRST = 50  # timeline rows on the page when it opens
NODES_FIRST = 24  # node rows on the overview; the Nodes tab has all of them
NODES_PAGE = 100

URGENT = ("draining", "sick", "lost", "held", "booting", "ready")


@dataclass(frozen=True)
class Opened:
    """A cluster somebody opened: what it is, how far its stream is, and what they may do here."""

    cluster: Cluster
    head: Stream
    picture: Picture
    now: datetime
    actor: Actor

    @property
    def may_operate(self) -> bool:
        return self.actor.may(self.cluster.project_id, Role.OPERATOR)

    def shown(self, tab: str) -> dict[str, Any]:
        """What every tab needs."""
        return {
            "cluster": self.cluster,
            "head": self.head,
            "now": self.now,
            "tab": tab,
            "parts": panels.parts(self.picture),
            "gauge_end": panels.gauge_end(self.picture),
            "alarm": panels.alarm(self.picture),
            "step": self.picture.step,
            "node_count": len(self.picture.lines),
            "may_operate": self.may_operate,
            "may_administer": self.actor.may(self.cluster.project_id, Role.ADMIN),
            "may_reclaim": self.actor.fleet_operator,
        }


def opened(actor: Actor, cluster_id: UUID) -> Opened:
    now = timezone.now()
    head = Stream.objects.get(pk=get_cluster(actor, cluster_id).stream)
    cluster = get_cluster(actor, cluster_id)  # once more: as it is at the head or later, never before it
    return Opened(cluster, head, picture.read(cluster, now), now, actor)


def strip(drawn: Picture) -> dict[str, Any]:
    return {
        "standard": cells(drawn.standard, drawn.dense, drawn.cluster.pk),
        "preemptible": cells(drawn.preemptible, drawn.dense, drawn.cluster.pk),
        "dense": drawn.dense,
    }


def first_nodes(drawn: Picture) -> list[str]:
    """The rows of the overview's table: what needs a look first where not all fit, always in the page's one order."""
    chosen = sorted(drawn.lines, key=lambda line: URGENT.index(line.state))[:NODES_FIRST]
    return node_rows(sorted(chosen, key=lambda line: line.sort), drawn.cluster.pk)


def node_rows(lines: Sequence[Line], cluster_id: UUID) -> list[str]:
    return [render_node(line, cluster_id) for line in lines]


def number_of(typed: str) -> int:
    """A page's number as it came in an address; nonsense is the first."""
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 6 else 0


def nodes_page(drawn: Picture, typed: str, node: str) -> dict[str, Any]:
    """One page of the nodes: the one with the node of that key, or the one typed. Nonsense is the first, too far is the last."""
    last = max(0, len(drawn.lines) - 1) // NODES_PAGE
    at = next((index for index, line in enumerate(drawn.lines) if line.key == node), None)
    number = min(number_of(typed), last) if at is None else at // NODES_PAGE
    rows = node_rows(drawn.lines[number * NODES_PAGE : (number + 1) * NODES_PAGE], drawn.cluster.pk)
    return {"nodes": rows, "pages": range(last + 1) if last else (), "page": number}


def timeline_rows(cluster: Cluster, now: datetime, actor: Actor) -> dict[str, Any]:
    """The newest rows under their days, whether there are older ones, and how far this person had looked."""
    entries, more = ledger.older(cluster.stream, ROWS_FIRST, Filter(), now)
    return {
        "days": under_days(entries, now),
        "more": more,
        "older": place_of(entries[-1]) if more else "",
        "look": ledger.last_look(actor.user.pk, cluster.stream) if actor.user else None,
    }


def kept_days() -> int:
    return int(settings.RETENTION_DAYS)
