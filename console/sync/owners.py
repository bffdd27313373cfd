"""Workloads follow their pods: one row for each owner, numbered with the last change to any of its pods.

It is what a live page asks by revision. A row is made with the first pod and kept for a day after the last (`workloads.tasks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.models import Q

from console.clusters.models import Cluster, Pod, Workload
from console.timeline.changes import Change

Key = tuple[str, str, str]  # namespace, kind, name

BARE = "Pod"  # the kind of a workload that is a pod nobody makes anew


def follow(made: Change, cluster: Cluster, pods: Sequence[Pod], left: Iterable[UUID]) -> None:
    """Give each of these pods its workload, and number the workloads of which a pod changed or went (`left`, by id).

    Comes after the pods that went are deleted and before these are written. Their rows are locked behind those of nodes and
    before those of drains: the one order.
    """
    gone = set(left)
    by_key = {_key(pod): pod for pod in pods if not (pod.daemonset or pod.mirror)}
    if not by_key and not gone:
        return
    named = Q(namespace__in={key[0] for key in by_key}, name__in={key[2] for key in by_key})
    rows = made.lock(Workload.objects.filter(Q(pk__in=gone) | named, cluster=cluster))
    known = {(row.namespace, row.kind, row.name): row for row in rows}
    here: set[UUID] = set()
    for key in sorted(by_key):
        row = known.get(key) or Workload(cluster=cluster, namespace=key[0], kind=key[1], name=key[2], first_seen_at=made.now)
        known[key], row.gone_at = row, None
        here.add(row.pk)
        made.save(cluster.stream, row, "gone_at")
    for pod in pods:
        if not (pod.daemonset or pod.mirror):
            pod.workload_id = known[_key(pod)].pk
    lost = gone - here
    living = set(Pod.objects.filter(workload__in=lost).values_list("workload_id", flat=True)) if lost else set()
    for row in rows:
        if row.pk in lost:
            row.gone_at = None if row.pk in living else made.now
            made.save(cluster.stream, row, "gone_at")


def _key(pod: Pod) -> Key:
    return pod.namespace, pod.owner_kind or BARE, pod.owner_name or pod.name
