"""What crosses the queue: the clearing away of workloads that are gone for a day."""

from uuid import UUID

from celery import shared_task
from django.utils import timezone

from console.clusters.models import Cluster, Workload
from console.timeline.changes import change
from console.workloads.frames import KIND
from console.workloads.queries import DAY

MOST = 1000  # in one transaction; the rest is the next run's


@shared_task(name="workloads.clear")
def clear() -> None:
    """Rows of workloads whose last pod went more than a day ago go too, and from open pages."""
    now = timezone.now()
    old = Workload.objects.filter(gone_at__lt=now - DAY).order_by("pk").values_list("pk", "cluster_id")
    by_cluster: dict[UUID, list[UUID]] = {}
    for pk, cluster_id in old[:MOST]:
        by_cluster.setdefault(cluster_id, []).append(pk)
    for cluster_id, ids in by_cluster.items():
        with change(now) as made:
            made.lock(Cluster.objects.filter(pk=cluster_id))  # the watch writes under the same lock: nothing comes back meanwhile
            for row in made.lock(Workload.objects.filter(pk__in=ids, gone_at__lt=now - DAY)):
                made.gone(row.cluster_id, KIND, row.pk)
                row.delete()
