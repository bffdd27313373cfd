"""Workloads straight in the rows, on nodes of a believable fleet."""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from console.capacity.models import Drain, PodVerdict
from console.clusters.models import Cluster, Node, Pod, Workload


def a_workload(cluster: Cluster, name: str = "train", kind: str = "Job", namespace: str = "ml", **more: object) -> Workload:
    fields = {"first_seen_at": timezone.now() - timedelta(hours=2), **more}
    return Workload.objects.create(cluster=cluster, namespace=namespace, kind=kind, name=name, **fields)


def pod_of(workload: Workload, node: Node | None, number: int = 0, **more: object) -> Pod:
    """It runs for two hours and asked for preemptible; without a node it waits."""
    bare = workload.kind == "Pod"
    fields: dict[str, object] = {
        "name": workload.name if bare else f"{workload.name}-{number}",
        "node_name": node.name if node else "",
        "phase": "Running" if node else "Pending",
        "started_at": timezone.now() - timedelta(hours=2) if node else None,
        "gpus": 4,
        "wish": "required",
        **more,
    }
    return Pod(
        cluster=workload.cluster,
        workload=workload,
        uid=str(uuid.uuid4()),
        namespace=workload.namespace,
        owner_kind="" if bare else workload.kind,
        owner_name="" if bare else workload.name,
        **fields,
    )


def with_pods(workload: Workload, nodes: Sequence[Node | None], **more: object) -> list[Pod]:
    return Pod.objects.bulk_create(pod_of(workload, node, number, **more) for number, node in enumerate(nodes))


def a_verdict(
    drain: Drain, workload: Workload, pod: str = "", verdict: str = PodVerdict.Verdict.FINISHED, **more: object
) -> PodVerdict:
    bare = workload.kind == "Pod"
    fields: dict[str, object] = {"pod_uid": str(uuid.uuid4()), "told_at": drain.started_at, "asked_grace": 30, "given_grace": 30}
    return PodVerdict.objects.create(
        drain=drain,
        namespace=workload.namespace,
        name=pod or workload.name,
        owner_kind="" if bare else workload.kind,
        owner_name="" if bare else workload.name,
        verdict=verdict,
        **{**fields, **more},
    )
