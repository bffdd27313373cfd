"""How much work each node would lose: what the order of victims stands on. One query a pool, aggregated where the rows are."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Min
from django.db.models.functions import Coalesce

from console.clusters.models import Pod

NodeKey = tuple[UUID, str]


def unsaved(cluster_ids: Iterable[UUID], now: datetime) -> dict[NodeKey, float]:
    """Seconds since the last save of the pod that is longest without one, by cluster and node name.

    A pod saved at its `last-checkpoint`, else never since its start; not yet started, it has nothing to lose. Nodes without pods
    (but those of DaemonSets, mirror pods and finished ones) are left out: they are idle.
    """
    working = Pod.objects.filter(cluster__in=list(cluster_ids), daemonset=False, mirror=False, finished=False)
    saved = working.exclude(node_name="").values_list("cluster_id", "node_name")
    oldest = saved.annotate(saved=Min(Coalesce("last_checkpoint", "started_at")))
    return {(cluster, name): max(0.0, (now - at).total_seconds()) if at else 0.0 for cluster, name, at in oldest}
