"""Everything a cluster page draws, read once in a constant number of queries, whatever the number of nodes.

Page, poll and socket draw from the same picture, so that they cannot differ.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from console.capacity import queries
from console.capacity.drawing.lines import Line, MachineRow, NodeRow, lines
from console.capacity.models import Drain
from console.capacity.pools.difference import Difference
from console.capacity.pools.observing import would_do
from console.capacity.pools.would import Would
from console.capacity.queries import Offer
from console.capacity.quotas import quota_of
from console.clusters.models import Cluster, Machine, Node
from console.clusters.queries import FREE, Price, prices

DENSE_ABOVE = 60  # cells with text up to here, small squares beyond


@dataclass(frozen=True)
class Picture:
    cluster: Cluster
    now: datetime
    difference: Difference
    offer: Offer
    price: Price
    quota: int  # GPUs that the project may ask for in all its clusters
    lines: tuple[Line, ...]
    would: tuple[Would, ...] = ()  # only where the cluster is observed

    @property
    def step(self) -> int:
        return self.cluster.gpu_type.gpus_per_node

    @property
    def dense(self) -> bool:
        return len(self.lines) > DENSE_ABOVE

    @property
    def preemptible(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.preemptible)

    @property
    def standard(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if not line.preemptible)

    @property
    def cost_now(self) -> Decimal:
        """Dollars an hour for what is here now, draining included: it is charged until it is gone."""
        return Decimal(sum((self._rate(line) * line.gpus for line in self.lines if line.charged), Decimal(0)))

    @property
    def on_demand_now(self) -> Decimal:
        """What the same nodes would cost on demand."""
        return self.price.on_demand * sum(line.gpus for line in self.lines if line.charged)

    @property
    def draining_gpus(self) -> int:
        return sum(line.gpus for line in self.preemptible if line.state == "draining" and line.charged)

    @property
    def waiting_nodes(self) -> int:
        """Asked for, and not yet even a machine."""
        wanted = self.difference.waiting + self.difference.held_by_pace + self.difference.blocked
        return max(0, wanted // self.step)

    def _rate(self, line: Line) -> Decimal:
        return self.price.preemptible if line.preemptible else self.price.on_demand


def read(cluster: Cluster, now: datetime) -> Picture:
    """The picture of one cluster as it stands. `cluster` comes with its region and GPU type."""
    pool = queries.pool_of(cluster)
    observed = cluster.mode == Cluster.Mode.OBSERVE and cluster.status == Cluster.Status.READY
    return Picture(
        cluster=cluster,
        now=now,
        difference=queries.difference(cluster, now),
        offer=queries.offer(pool),
        price=prices(now).get(cluster.gpu_type_id, FREE),
        quota=quota_of(cluster.project_id),
        lines=tuple(read_lines(cluster.pk)),
        would=would_do(cluster, pool, now) if observed else (),
    )


def read_lines(cluster_id: UUID) -> list[Line]:
    """A cluster's lines, in three queries."""
    machines = Machine.objects.filter(cluster_id=cluster_id).exclude(state__in=[Machine.State.GONE, Machine.State.GIVEN_UP])
    nodes = Node.objects.filter(cluster_id=cluster_id)
    return lines(
        map(MachineRow._make, machines.values_list(*MachineRow._fields)),
        map(NodeRow._make, nodes.values_list(*NodeRow._fields)),
        Drain.objects.filter(cluster_id=cluster_id, state__in=Drain.OPEN),
    )
