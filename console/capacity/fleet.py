"""The whole fleet as its operators see it: what each pool has and is short of, and who holds what of the one they look at.

A constant number of queries, whatever the number of clusters; only the pool that is looked at is read machine by machine.
Figures are GPUs.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Subquery, Sum

from console.capacity.drawing.lines import Line, lines
from console.capacity.models import Drain, Pool, Wait
from console.capacity.pools.difference import Difference
from console.capacity.queries import automation, differences
from console.clusters.models import Cluster, ComputeClass, Machine, Node

STANDARD, PREEMPTIBLE = ComputeClass.STANDARD.value, ComputeClass.PREEMPTIBLE.value
MISSING = (Machine.State.GONE, Machine.State.GIVEN_UP)
JOINING, DRAINING = "joining", "draining"

PoolKey = tuple[str, str]  # region, GPU type


@dataclass(frozen=True)
class Use:
    """What a pool has: as its provider said it last, and as our machines stand. `others`: neither free nor ours."""

    pool: Pool
    standard: int
    preemptible: int
    joining: int
    draining: int
    waiting: int
    short: int  # asked for and not allocated, waiting or not
    why: str  # what is short, in words

    @property
    def step(self) -> int:
        return self.pool.gpu_type.gpus_per_node

    @property
    def total(self) -> int:
        return self.pool.total_machines * self.step

    @property
    def free(self) -> int:
        return self.pool.free_machines * self.step

    @property
    def owed(self) -> int:
        return self.pool.owed_machines * self.step

    @property
    def ours(self) -> int:
        return self.standard + self.preemptible + self.joining + self.draining

    @property
    def others(self) -> int:
        return max(0, self.total - self.free - self.ours)


@dataclass(frozen=True)
class Taken:
    """The last time that a cluster lost nodes: how many, one of them, and when."""

    node: str
    count: int
    at: datetime

    @property
    def short(self) -> str:
        """The part of the name that tells machines apart."""
        return self.node.rsplit("-", 1)[-1][:7]


@dataclass(frozen=True)
class Holder:
    """A cluster in the pool that is looked at. `waiting` are nodes that are not even machines yet."""

    cluster: Cluster
    lines: tuple[Line, ...]
    difference: Difference
    standard_why: str
    taken: Taken | None

    @property
    def unmet(self) -> int:
        """Percent of the target that is not allocated, never 0 while anything is missing."""
        desired, missing = self.difference.desired, self.difference.desired - self.difference.allocated
        return max(1, round(100 * missing / desired)) if desired and missing > 0 else 0

    @property
    def waiting(self) -> int:
        wanted = self.difference.waiting + self.difference.held_by_pace + self.difference.blocked
        return wanted // self.cluster.gpu_type.gpus_per_node


@dataclass(frozen=True)
class Fleet:
    """`looked_at` is None where there is no pool."""

    uses: tuple[Use, ...]
    looked_at: Use | None
    holders: tuple[Holder, ...]

    @property
    def regions(self) -> int:
        return len({use.pool.region_id for use in self.uses})

    @property
    def machines(self) -> int:
        return sum(use.pool.total_machines for use in self.uses)

    def total(self, name: str) -> int:
        """Of one of the figures of a `Use`, over all pools."""
        return sum(getattr(use, name) for use in self.uses)


def read(now: datetime, wanted: UUID | None = None) -> Fleet:
    """All pools; and the clusters of the wanted one, else of the first that waits, else of the first."""
    pools = list(Pool.objects.select_related("region", "gpu_type").order_by("region_id", "gpu_type_id"))
    clusters = list(Cluster.objects.select_related("project", "region", "gpu_type").order_by("name", "pk"))
    waits = {wait.cluster_id: wait for wait in Wait.objects.all()}
    sums = _sums()
    on = automation().on
    mine: dict[PoolKey, list[Cluster]] = defaultdict(list)
    for cluster in clusters:
        mine[cluster.region_id, cluster.gpu_type_id].append(cluster)
    uses = tuple(_use(pool, sums[_key(pool)], mine[_key(pool)], waits, on) for pool in pools)
    chosen = next((use for use in uses if use.pool.pk == wanted), None)
    chosen = chosen or next((use for use in uses if use.waiting), None) or next(iter(uses), None)
    return Fleet(uses, chosen, _holders(mine[_key(chosen.pool)], now) if chosen else ())


def _key(pool: Pool) -> PoolKey:
    return (pool.region_id, pool.gpu_type_id)


def _sums() -> dict[PoolKey, Counter[str]]:
    """GPUs of our machines by pool and by what they are doing, in one query."""
    drained = Exists(Drain.objects.filter(machine=OuterRef("pk"), state__in=Drain.OPEN))
    machines = Machine.objects.exclude(state__in=MISSING).annotate(drained=drained)
    rows = machines.values("region_id", "gpu_type_id", "compute_class", "state", "drained").annotate(sum=Sum("gpus"))
    found: dict[PoolKey, Counter[str]] = defaultdict(Counter)
    for row in rows:
        doing = row["compute_class"] if row["state"] == Machine.State.JOINED else JOINING
        if row["drained"] or row["state"] == Machine.State.LEAVING:
            doing = DRAINING
        found[row["region_id"], row["gpu_type_id"]][doing] += row["sum"]
    return found


def _use(pool: Pool, sums: Counter[str], clusters: Sequence[Cluster], waits: Mapping[UUID, Wait], on: bool) -> Use:
    waiting = sum(wait.standard + wait.preemptible for one in clusters if (wait := waits.get(one.pk)) is not None)
    gaps = {one.name: _gap(one) for one in clusters}
    creating = [one.name for one in clusters if one.status == Cluster.Status.CREATING and gaps[one.name]]
    return Use(
        pool=pool,
        standard=sums[STANDARD],
        preemptible=sums[PREEMPTIBLE],
        joining=sums[JOINING],
        draining=sums[DRAINING],
        waiting=waiting * pool.gpu_type.gpus_per_node,
        short=sum(gaps.values()),
        why=_short(pool, bool(waiting), sum(gaps.values()), sums[JOINING], creating, on),
    )


def _gap(cluster: Cluster) -> int:
    standard = max(0, cluster.desired_standard_gpus - cluster.allocated_standard_gpus)
    return standard + max(0, cluster.desired_preemptible_gpus - cluster.allocated_preemptible_gpus)


def _short(pool: Pool, waits: bool, short: int, joining: int, creating: Sequence[str], on: bool) -> str:
    """Why something is short, as a sentence, the most general reason first; empty where nothing is."""
    if pool.silent_since is not None:
        return f"The provider does not answer since {pool.silent_since:%H:%M} UTC"
    if short and not on:
        return "Automation is stopped"
    if waits:
        since = f"No free node since {pool.waiting_since:%H:%M}" if pool.waiting_since else "No free node"
        tries = f", next try {pool.next_try_at:%H:%M:%S} UTC" if pool.next_try_at else ", next try within seconds"
        return since + tries
    if creating:
        names = creating[0] if len(creating) == 1 else f"{creating[0]} and {len(creating) - 1} more"
        return f"{names} {'is' if len(creating) == 1 else 'are'} being created"
    if short and joining:
        return f"{joining} joining"
    return "See below, cluster by cluster" if short else ""


def _holders(clusters: Sequence[Cluster], now: datetime) -> tuple[Holder, ...]:
    ids = [cluster.pk for cluster in clusters]
    machines: dict[UUID, list[Machine]] = defaultdict(list)
    nodes: dict[UUID, list[Node]] = defaultdict(list)
    drains: dict[UUID, list[Drain]] = defaultdict(list)
    for machine in Machine.objects.filter(cluster__in=ids).exclude(state__in=MISSING):
        machines[machine.cluster_id].append(machine)
    for node in Node.objects.filter(cluster__in=ids):
        nodes[node.cluster_id].append(node)
    for drain in Drain.objects.filter(cluster__in=ids, state__in=Drain.OPEN):
        drains[drain.cluster_id].append(drain)
    found, taken = differences(clusters, now), _taken(ids)
    return tuple(
        Holder(
            cluster=one,
            lines=tuple(lines(machines[one.pk], nodes[one.pk], drains[one.pk])),
            difference=found[one.pk],
            standard_why=_standard(one),
            taken=taken.get(one.pk),
        )
        for one in clusters
    )


def _standard(cluster: Cluster) -> str:
    short = cluster.desired_standard_gpus - cluster.allocated_standard_gpus
    return f"{short} standard to come" if short > 0 else ""


def _taken(clusters: Sequence[UUID]) -> dict[UUID, Taken]:
    """The newest preemption of each cluster, and how many nodes went with it: one short index range a cluster. Two queries."""
    preempted = Drain.objects.filter(cause=Drain.Cause.PREEMPTED)
    newest = preempted.filter(cluster=OuterRef("pk")).order_by("-started_at", "-id").values("pk")[:1]
    rows = Drain.objects.filter(pk__in=Cluster.objects.filter(pk__in=clusters).values_list(Subquery(newest)))
    latest = {row.cluster_id: row for row in rows}
    moments = {row.started_at for row in latest.values()}
    together = preempted.filter(cluster__in=list(latest), started_at__in=moments).values_list("cluster_id", "started_at")
    counts = {(cluster, at): number for cluster, at, number in together.annotate(Count("pk")).order_by()}
    return {
        cluster: Taken(row.node_name, counts.get((cluster, row.started_at), 1), row.started_at) for cluster, row in latest.items()
    }


def why(found: Difference) -> str:
    """The difference in words: what of the target is not allocated, each part with its reason. Empty where all of it is."""
    parts = []
    if found.joining:
        parts.append(f"{found.joining} joining")
    if found.held_by_pace:
        parts.append(f"{found.held_by_pace} held by pace")
    if found.waiting:
        since = f" since {found.waiting_since:%H:%M}" if found.waiting_since else ""
        tries = f", next try {found.next_try_at:%H:%M:%S}" if found.next_try_at else ""
        parts.append(f"{found.waiting} waiting{since}{tries}")
    if found.blocked:
        parts.append(f"{found.blocked} blocked: {found.blocked_why[:1].lower()}{found.blocked_why[1:].removesuffix('.')}")
    if found.leaving:
        parts.append(f"{found.leaving} too many, going back")
    return " · ".join(parts)
