"""Reading for a preview: the machines that a reclaim would choose now, their pods, how their kind ended before, and budgets.

Rows in a constant number of queries; only the budgets (and the labels they select by) are asked of the cluster's API, for a few
seconds at most. Where it does not answer, the preview stands without them and says so.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef

from console.capacity.asked import whole_nodes
from console.capacity.models import Drain, PodVerdict, Pool
from console.capacity.pools.inputs import machine_views, machines_of
from console.capacity.pools.victims import MachineView, cheapest
from console.capacity.reclaims.budgets import Budgets, budgets_of
from console.capacity.reclaims.naming import STANDING, cannot, named
from console.capacity.reclaims.preview import Exit, Owner, Preview, owner_of, preview
from console.clusters.models import Cluster, ComputeClass, Machine, Node, Pod
from console.clusters.secrets import connection
from console.http import Unavailable, Unprocessable
from console.kube.client import Kube
from console.kube.errors import KubeconfigRefused, KubeError
from console.kube.kubeconfig import Connection
from console.kube.shapes import BudgetShape, PodShape

LONGEST = 3.0  # seconds for which a person waits for the cluster's API
LATEST_DRAINS = 200  # whose verdicts say how pods of an owner end
MOST_NODES = 100  # that one preview may name


def of_gpus(cluster: Cluster, gpus: int, now: datetime) -> Preview:
    """If so many GPUs were reclaimed now, the machines that would go. Raises Unprocessable as the reclaim itself would."""
    step = cluster.gpu_type.gpus_per_node
    whole_nodes(gpus, step, "What is taken back", "num_gpus")
    if gpus < step:
        raise Unprocessable(f"At least one node is taken back: {step} GPUs.", param="num_gpus", code="nothing", nearest=[step])
    there = takeable(cluster, now)
    if len(there) < gpus // step:
        has = len(there) * step
        raise Unprocessable(
            f"{cluster.name} has {has} preemptible GPUs to take back, not {gpus}.", param="num_gpus", code="too_many", most=has
        )
    return _of_machines(cluster, [view.id for view in cheapest(there, gpus // step)], now)


def of_nodes(cluster: Cluster, names: Sequence[str], now: datetime) -> Preview:
    """If these nodes were reclaimed now. Raises Unprocessable where one of them could not go, as the reclaim itself would."""
    if not 0 < len(set(names)) <= MOST_NODES:
        raise Unprocessable(f"Name 1 to {MOST_NODES} nodes, not {len(set(names))}.", param="nodes", code="too_many")
    going, refused = named(list, cluster, names, now + timedelta(seconds=settings.DRAIN_WINDOW))
    if refused:
        raise cannot(refused, len(going) + len(refused))
    return _of_machines(cluster, [one.machine.pk for one in going], now)


def choices(cluster: Cluster) -> list[str]:
    """Names of the cluster's nodes that could be named, as many as a person can choose from. One query."""
    there = Machine.objects.filter(cluster=cluster, compute_class=ComputeClass.PREEMPTIBLE, state__in=STANDING)
    going = Drain.objects.filter(machine=OuterRef("pk"), state__in=Drain.OPEN)
    names = there.exclude(node_name="").exclude(Exists(going)).order_by("node_name").values_list("node_name", flat=True)
    return list(names[:MOST_NODES])


def takeable(cluster: Cluster, now: datetime) -> list[MachineView]:
    """The preemptible machines of a cluster that a reclaim could choose from."""
    pool = Pool.objects.get(region=cluster.region_id, gpu_type=cluster.gpu_type_id)
    views = machine_views(pool, list(Cluster.objects.filter(machines_of(pool))), None, now)
    mine = [view for view in views if view.cluster == cluster.pk and view.compute_class == ComputeClass.PREEMPTIBLE]
    return [view for view in mine if view.counts and view.state in STANDING]


def _of_machines(cluster: Cluster, chosen: Sequence[UUID], now: datetime) -> Preview:
    machines = Machine.objects.in_bulk(chosen)
    nodes = {node.machine_id: node for node in Node.objects.filter(cluster=cluster, machine__in=chosen)}
    names = [node.name for node in nodes.values()]
    pods = list(Pod.objects.filter(cluster=cluster, node_name__in=names))
    return preview(
        [(machines[key], nodes.get(key)) for key in chosen if key in machines],
        pods,
        read_budgets(cluster, names),
        _exits(cluster, pods),
        now,
        settings.DRAIN_WINDOW,
    )


def _exits(cluster: Cluster, pods: Sequence[Pod]) -> dict[Owner, Exit]:
    """Ends of pods with the same owners in the cluster's latest drains, in seconds from SIGTERM."""
    names = {owner_of(pod)[2] for pod in pods}
    latest = Drain.objects.filter(cluster=cluster).order_by("-started_at", "-pk").values("pk")[:LATEST_DRAINS]
    ended = PodVerdict.objects.filter(drain__in=latest, owner_name__in=names, told_at__isnull=False, ended_at__isnull=False)
    lengths: dict[Owner, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in ended:
        assert one.ended_at is not None
        assert one.told_at is not None
        took = (one.ended_at - one.told_at).total_seconds()
        lengths[one.namespace, one.owner_kind, one.owner_name][one.verdict].append(took)
    return {
        owner: Exit(max(by[PodVerdict.Verdict.FINISHED], default=None), max(by[PodVerdict.Verdict.KILLED], default=None))
        for owner, by in lengths.items()
    }


def read_budgets(cluster: Cluster, nodes: Collection[str]) -> Budgets:
    """The cluster's disruption budgets and what they stand over on these nodes. Never raises: what failed is a sentence."""
    if not nodes:
        return Budgets()
    try:
        way = connection(cluster)
    except Unavailable as error:
        return Budgets(unknown=error.message)
    except KubeconfigRefused as error:
        return Budgets(unknown=error.sentence)
    try:
        return asyncio.run(_ask(way, nodes))
    except KubeError as error:
        return Budgets(unknown=error.sentence)
    except TimeoutError:
        return Budgets(unknown=f"The Kubernetes API has not answered within {LONGEST:g} s.")


async def _ask(way: Connection, nodes: Collection[str]) -> Budgets:
    async with asyncio.timeout(LONGEST), Kube(way, timeout=LONGEST) as kube:
        await kube.version()  # opens the connection, which is no part of a round trip
        began = monotonic()
        budgets = await kube.list("poddisruptionbudgets")
        round_trip = monotonic() - began
        listings = await asyncio.gather(*(kube.list("pods", fields=f"spec.nodeName={name}") for name in nodes))
    broken = [*budgets.broken, *(sentence for listing in listings for sentence in listing.broken)]
    if broken:
        return Budgets(unknown=broken[0])
    shapes = [shape for shape in budgets.items if isinstance(shape, BudgetShape)]
    pods = [shape for listing in listings for shape in listing.items if isinstance(shape, PodShape)]
    return budgets_of(shapes, pods, round_trip)
