"""The clusters list: seven queries, whether there is one cluster or a thousand."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import Count, Q

from console.accounts.access import Actor
from console.accounts.models import Role
from console.capacity.drawing.gauge import percent
from console.capacity.drawing.money import amount
from console.capacity.models import Pool
from console.capacity.panels import Alarm
from console.clusters.access import visible
from console.clusters.models import Cluster, ComputeClass, Node
from console.clusters.queries import FREE, Price, alive_gpus, prices
from console.timeline.models import Entry
from console.timeline.queries import newest_of_each
from console.timeline.rows import ICONS

STALE_AFTER = timedelta(seconds=30)  # as the light of the cluster's own page
STANDARD, PREEMPTIBLE = ComputeClass.STANDARD.value, ComputeClass.PREEMPTIBLE.value


@dataclass(frozen=True)
class Row:
    cluster: Cluster
    sick: int
    stale: bool
    cost: Decimal
    saved: Decimal
    waiting_since: datetime | None
    last: Entry | None
    icon: str
    filled: str  # shares of the scale that all bars have in common
    asked: str

    @property
    def cost_text(self) -> str:
        return amount(self.cost)

    @property
    def waiting(self) -> bool:
        return self.cluster.desired_preemptible_gpus > self.cluster.allocated_preemptible_gpus

    @property
    def trouble(self) -> bool:
        return bool(self.sick or self.stale or self.cluster.unreachable_since)


@dataclass(frozen=True)
class Fleet:
    """All clusters one may see; `rows` are those that match, the counts are of all."""

    rows: tuple[Row, ...]
    every: tuple[Row, ...]
    scale: int
    find: str
    show: str
    may_create: bool
    several_projects: bool

    @property
    def waiting(self) -> int:
        return sum(row.waiting for row in self.every)

    @property
    def trouble(self) -> int:
        return sum(row.trouble for row in self.every)

    @property
    def alarm(self) -> Alarm:
        """For the tab's title and icon."""
        return Alarm(f"{self.trouble} need{'s' if self.trouble == 1 else ''} a look", "red") if self.trouble else Alarm("", "")

    @property
    def regions(self) -> int:
        return len({row.cluster.region_id for row in self.every})

    @property
    def standard(self) -> int:
        return sum(row.cluster.allocated_standard_gpus for row in self.every)

    @property
    def allocated(self) -> int:
        return sum(row.cluster.allocated_preemptible_gpus for row in self.every)

    @property
    def desired(self) -> int:
        return sum(row.cluster.desired_preemptible_gpus for row in self.every)

    @property
    def cost(self) -> str:
        return amount(sum((row.cost for row in self.every), Decimal(0)))

    @property
    def saved(self) -> str:
        return amount(sum((row.saved for row in self.every), Decimal(0)))


def fleet(actor: Actor, find: str, show: str, now: datetime) -> Fleet:
    """What the actor may see, with `find` in name, region, type or project, and `show` all, waiting or trouble."""
    clusters = list(visible(actor).order_by("name", "pk"))
    last, price, alive = newest_of_each(cluster.stream for cluster in clusters), prices(now), alive_gpus(clusters)
    sick = _not_ready(clusters)
    waits = {(pool.region_id, pool.gpu_type_id): pool.waiting_since for pool in Pool.objects.all()}
    scale = max([8, *(max(one.desired_preemptible_gpus, one.allocated_preemptible_gpus) for one in clusters)])
    every = tuple(
        _row(one, price.get(one.gpu_type_id, FREE), alive, sick, waits, last.get(one.stream), scale, now) for one in clusters
    )
    word = find.strip().lower()
    rows = tuple(row for row in every if _matches(row, word) and _belongs(row, show))
    may_create = Role.ADMIN in (actor.everywhere, *actor.roles.values())
    several = len({one.project_id for one in clusters}) > 1
    return Fleet(rows, every, scale, find, show, may_create, several)


def _matches(row: Row, word: str) -> bool:
    one = row.cluster
    return not word or any(word in text.lower() for text in (one.name, one.region_id, one.gpu_type_id, one.project.name))


def _belongs(row: Row, show: str) -> bool:
    return {"waiting": row.waiting, "trouble": row.trouble}.get(show, True)


def _not_ready(clusters: list[Cluster]) -> Counter[object]:
    here = Node.objects.filter(cluster__in=[one.pk for one in clusters], draining=False)
    been = Q(machine=None) | Q(machine__first_ready_at__isnull=False)  # else it is still coming, not sick
    rows = here.filter(been, Q(ready=False) | Q(ready=None))
    return Counter(dict(rows.values_list("cluster_id").annotate(Count("pk"))))


def _row(
    cluster: Cluster,
    price: Price,
    alive: dict[tuple[UUID, str], int],
    sick: Counter[object],
    waits: dict[tuple[str, str], datetime | None],
    last: Entry | None,
    scale: int,
    now: datetime,
) -> Row:
    allocated, desired = cluster.allocated_preemptible_gpus, cluster.desired_preemptible_gpus
    standard, preemptible = alive.get((cluster.pk, STANDARD), 0), alive.get((cluster.pk, PREEMPTIBLE), 0)
    return Row(
        cluster=cluster,
        sick=sick[cluster.pk],
        stale=cluster.proved_to is not None and now - cluster.proved_to > STALE_AFTER,
        cost=standard * price.on_demand + preemptible * price.preemptible,
        saved=preemptible * (price.on_demand - price.preemptible),
        waiting_since=waits.get((cluster.region_id, cluster.gpu_type_id)) if desired > allocated else None,
        last=last,
        icon=ICONS[Entry.Severity(last.severity)] if last else "",
        filled=percent(min(allocated, desired) if desired else allocated, scale),
        asked=percent(max(0, desired - allocated), scale),
    )
