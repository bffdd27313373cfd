"""Writing what follows from nodes: how much is allocated, and the levels that the chart draws."""

from console.clusters.models import Cluster, Level, Node
from console.clusters.queries import allocated_gpus
from console.timeline.changes import Change


def count_allocated(made: Change, cluster: Cluster) -> bool:
    """Recount the locked cluster from its nodes, those that this change is about to write included; True where a number moved."""
    found = allocated_gpus(cluster.pk, [node for node in made.pending(Node) if node.cluster_id == cluster.pk])
    if (found["preemptible"], found["standard"]) == (cluster.allocated_preemptible_gpus, cluster.allocated_standard_gpus):
        return False
    moved = found["preemptible"] != cluster.allocated_preemptible_gpus
    cluster.allocated_preemptible_gpus = found["preemptible"]
    cluster.allocated_standard_gpus = found["standard"]
    made.save(cluster.stream, cluster, "allocated_preemptible_gpus", "allocated_standard_gpus")
    if moved:
        record_level(made, cluster)
    return True


def record_level(made: Change, cluster: Cluster) -> None:
    """One point of the chart: desired and allocated from now on."""
    Level.objects.create(
        cluster=cluster,
        at=made.now,
        desired=cluster.desired_preemptible_gpus,
        allocated=cluster.allocated_preemptible_gpus,
    )
