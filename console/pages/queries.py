"""The clusters list: seven queries, whether there is one cluster or a thousand, and at most a page of them drawn.

The counts above the table are of all; the newest entry is read only for the rows that are shown.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Q

from console.accounts.access import Actor
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

PAGE = 100  # rows shown at once
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
    filled: str  # shares of the scale that all bars have in common
    asked: str
    last: Entry | None = None
    icon: str = ""

    @property
    def cost_text(self) -> str:
        return amount(self.cost)

    @property
    def last_day(self) -> str:  # written here, as the clock: a template's date filter takes several times as long
        return f"{self.last.at:%Y-%m-%d}" if self.last else ""

    @property
    def last_clock(self) -> str:
        return f"{self.last.at:%H:%M:%S}" if self.last else ""

    @property
    def waiting(self) -> bool:
        return self.cluster.desired_preemptible_gpus > self.cluster.allocated_preemptible_gpus

    @property
    def trouble(self) -> bool:
        return bool(self.sick or self.stale or self.cluster.unreachable_since)


@dataclass(frozen=True)
class Fleet:
    """All clusters one may see; `rows` are a page of the `matching` ones, the other counts are of all."""

    rows: tuple[Row, ...]
    matching: int
    page: int
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
    def pages(self) -> range:
        """Numbers of pages; none where one page holds all."""
        return range(-(-self.matching // PAGE)) if self.matching > PAGE else range(0)

    @property
    def asked(self) -> str:
        """This list as it stands in an address."""
        return urlencode({"q": self.find, "show": self.show, "page": self.page})

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


def fleet(actor: Actor, find: str, show: str, page: int, now: datetime) -> Fleet:
    """What the actor may see, with `find` in name, region, type or project, and `show` all, waiting or trouble."""
    clusters = list(visible(actor).order_by("name", "pk"))
    price, alive = prices(now), alive_gpus(clusters)
    sick = _not_ready(clusters)
    waits = {(pool.region_id, pool.gpu_type_id): pool.waiting_since for pool in Pool.objects.all()}
    scale = max([8, *(max(one.desired_preemptible_gpus, one.allocated_preemptible_gpus) for one in clusters)])
    every = tuple(_row(one, price.get(one.gpu_type_id, FREE), alive, sick, waits, scale, now) for one in clusters)
    word = find.strip().lower()
    matching = [row for row in every if _matches(row, word) and _belongs(row, show)]
    number = min(page, max(0, len(matching) - 1) // PAGE)
    rows = _with_last(matching[number * PAGE : (number + 1) * PAGE])
    several = len({one.project_id for one in clusters}) > 1
    return Fleet(rows, len(matching), number, every, scale, find, show, actor.administers, several)


def _with_last(rows: list[Row]) -> tuple[Row, ...]:
    last = newest_of_each(row.cluster.stream for row in rows)
    found = [(row, last.get(row.cluster.stream)) for row in rows]
    return tuple(replace(row, last=one, icon=ICONS[Entry.Severity(one.severity)]) if one else row for row, one in found)


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
        filled=percent(min(allocated, desired) if desired else allocated, scale),
        asked=percent(max(0, desired - allocated), scale),
    )
