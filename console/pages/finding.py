"""What a search finds: pages, clusters, nodes and entries that one may see. Four queries at most, each with a bound.

Entries are looked for among the newest of the installation only, because a text inside millions of rows has no index; the
timeline of a cluster has filters that go all the way back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.urls import reverse

from console.accounts.access import Actor
from console.clusters.access import visible
from console.clusters.models import Cluster, Node
from console.timeline.models import Entry
from console.timeline.rows import ICONS

EACH = 8  # hits of one kind; more are none that anybody reads
LATEST = 10_000  # entries of the installation that are looked through, newest first
LONGEST = 100  # characters of a search
WORDS = 5
FEW = 3  # clusters, up to which their tabs are hits too

TABS = (
    ("nodes", "Nodes"),
    ("workloads", "Workloads"),
    ("timeline", "Timeline"),
    ("scripts", "Startup scripts"),
    ("planner", "Checkpoint planner"),
)


@dataclass(frozen=True)
class Hit:
    title: str
    says: str
    href: str
    icon: str
    at: datetime | None = None


@dataclass(frozen=True)
class Group:
    title: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class Found:
    text: str
    groups: tuple[Group, ...]

    @property
    def count(self) -> int:
        return sum(len(group.hits) for group in self.groups)


def find(actor: Actor, typed: str) -> Found:
    """Everything that has all the words of what was typed. Nothing typed finds the pages and the first clusters."""
    text = typed.replace("\0", "").strip()[:LONGEST]
    words = text.lower().split()[:WORDS]
    groups = [Group("Clusters", tuple(_clusters(actor, words)))]
    if words:
        groups.append(Group("Nodes", tuple(_nodes(actor, words))))
    groups.append(Group("Pages", tuple(hit for hit in _pages(actor) if _has(hit.title, words))))
    if words:
        groups.append(Group("Newest entries", tuple(_entries(actor, words))))
    return Found(text, tuple(group for group in groups if group.hits))


def _has(text: str, words: Iterable[str]) -> bool:
    return all(word in text.lower() for word in words)


def _every(words: Iterable[str], *fields: str) -> Q:
    """Each word in one of the fields."""
    found = Q()
    for word in words:
        found &= Q(*((f"{field}__icontains", word) for field in fields), _connector=Q.OR)
    return found


def _clusters(actor: Actor, words: list[str]) -> list[Hit]:
    """Clusters; where the words name one of their tabs too ("aurora nodes"), those tabs instead."""
    asked = [(name, title) for name, title in TABS if any(title.lower().startswith(word) for word in words)]
    names = [word for word in words if not any(title.lower().startswith(word) for _, title in asked)]
    if not names:
        asked, names = [], words
    rows = visible(actor).filter(_every(names, "name", "region__name", "gpu_type__name", "project__name"))
    found = sorted(rows.order_by("name", "pk")[:EACH], key=lambda one: not _has(one.name, names))  # by name before by project
    hits = [Hit(one.name, _where(one), reverse("cluster", args=[one.pk]), "i-right") for one in found]
    tabs = asked or (TABS if words and len(found) <= FEW else ())
    inside = [Hit(f"{one.name}: {title}", "", reverse(name, args=[one.pk]), "i-open") for one in found for name, title in tabs]
    return inside[:EACH] if asked else hits + inside


def _where(cluster: Cluster) -> str:
    return f"{cluster.project.name} · {cluster.region_id} · {cluster.gpu_type_id}"


def _nodes(actor: Actor, words: list[str]) -> list[Hit]:
    rows = Node.objects.filter(_every(words, "name", "cluster__name"), _every(words[:1], "name"), cluster__in=visible(actor))
    return [
        Hit(node.name, f"{node.compute_class} · {node.cluster.name}", _node_page(node), "i-info")
        for node in rows.select_related("cluster").order_by("name", "pk")[:EACH]
    ]


def _node_page(node: Node) -> str:
    key = (node.machine_id or node.pk).hex
    return f"{reverse('nodes', args=[node.cluster_id])}?node={key}#node-{key}"


def _pages(actor: Actor) -> list[Hit]:
    hits = [Hit("Clusters", "Everything you may see", reverse("clusters"), "i-open")]
    if actor.fleet_operator:
        hits.append(Hit("Capacity", "Pools, who holds what, drills", reverse("capacity"), "i-open"))
    hits.append(Hit("Webhooks", "Who is told what, and what became of each message", reverse("webhooks"), "i-open"))
    if actor.administers:
        hits.append(Hit("Create a cluster", "A region, a GPU type, how many GPUs", reverse("new_cluster"), "i-plus"))
    return hits


def _entries(actor: Actor, words: list[str]) -> list[Hit]:
    """Through the newest rows by their number, and in those of the actor's clusters only."""
    newest = Entry.objects.order_by("-pk").values("pk")[:LATEST]
    rows = Entry.objects.filter(_every(words, "message", "reason", "actor_name"), pk__in=newest)
    found = list(rows.filter(stream_id__in=visible(actor).values("pk")).order_by("-at", "-pk")[:EACH])
    names = dict(visible(actor).filter(pk__in=[row.stream_id for row in found]).values_list("pk", "name"))
    return [_entry(row, names[row.stream_id]) for row in found if row.stream_id in names]


def _entry(row: Entry, cluster: str) -> Hit:
    """Its place in the timeline, among its neighbours."""
    address = f"{reverse('entry', args=[row.stream_id, row.pk])}#e{row.pk}"
    return Hit(row.message, f"{row.reason} · {cluster}", address, ICONS[Entry.Severity(row.severity)], row.at)
