"""What people and other rooms change about capacity. Each writes its row, its ledger row and its audit row in one transaction.

Nothing here speaks to a provider or to Kubernetes: a change is committed, the pool is woken, and the answer goes out at once
(DESIGN 4).
"""

from console.accounts.access import Actor
from console.accounts.models import Project, Role
from console.accounts.services import audit
from console.capacity.asked import GPUS_PARAM, clean_name, some_standard, whole_nodes
from console.capacity.drains.cordons import cordon
from console.capacity.drains.ends import PodEnd, hold, node_gone, node_uncordoned_by_person, pod_ended
from console.capacity.enqueue import enqueue_on_commit
from console.capacity.founding import pool_called, take_name
from console.capacity.mode import set_mode
from console.capacity.models import Automation, Pool
from console.capacity.pools.wakes import wake, wake_pool
from console.capacity.quotas import set_quota, within_quota
from console.capacity.reclaims.notices import heed, notice_of
from console.capacity.reclaims.reclaim import reclaim
from console.clusters.changes import record_level
from console.clusters.models import Cluster, new_stream
from console.http import Conflict, Forbidden
from console.timeline.changes import Change, change
from console.timeline.models import INSTALLATION, Stream
from console.timeline.who import doer

__all__ = [
    "PodEnd",
    "cordon",
    "create_cluster",
    "heed",
    "hold",
    "node_gone",
    "node_uncordoned_by_person",
    "notice_of",
    "pod_ended",
    "reclaim",
    "set_mode",
    "set_quota",
    "set_standard",
    "set_target",
    "switch",
    "wake_pool",
]

CREATE = "capacity.create_cluster"
TARGET = "The preemptible target"


def set_target(actor: Actor, cluster: Cluster, gpus: int, based_on: int | None = None) -> Cluster:
    """Ask for preemptible GPUs. `based_on` is a revision of the cluster's stream that the caller has seen.

    Returns the cluster as it is now. Asking for what is asked for already changes and writes nothing. Raises Conflict with the
    newer target (`desired`, `target_revision`, `set_by`) where somebody was faster, Unprocessable for a number that cannot be.
    A number above the pool is fine: it waits (DESIGN 6).
    """
    actor.require(cluster.project_id, Role.OPERATOR)
    whole_nodes(gpus, cluster.gpu_type.gpus_per_node, TARGET, GPUS_PARAM)
    with change() as made:
        mine = _lock(made, cluster)
        before = mine.desired_preemptible_gpus
        if gpus == before:
            return mine
        if based_on is not None and based_on < mine.target_revision:
            raise _overtaken(mine)
        if gpus > before:
            within_quota(mine.project, gpus, before)
        mine.desired_preemptible_gpus = gpus
        mine.target_set_by, mine.target_set_at = actor.name, made.now
        made.save(mine.stream, mine, "desired_preemptible_gpus", "target_set_by", "target_set_at")
        made.stamp(mine.stream, mine, "target_revision")
        _say(made, actor, mine, "TargetChanged", f"Preemptible target from {before} to {gpus}", before, gpus)
        audit(actor, "cluster.target.set", mine.name, mine.project, {"gpus": before}, {"gpus": gpus})
        record_level(made, mine)
        wake_pool(mine.region_id, mine.gpu_type_id)
    return mine


def set_standard(actor: Actor, cluster: Cluster, gpus: int) -> Cluster:
    """Ask for standard GPUs, at least one node. Raises Unprocessable."""
    actor.require(cluster.project_id, Role.OPERATOR)
    some_standard(gpus, cluster.gpu_type.gpus_per_node)
    with change() as made:
        mine = _lock(made, cluster)
        before = mine.desired_standard_gpus
        if gpus == before:
            return mine
        mine.desired_standard_gpus, mine.standard_set_at = gpus, made.now
        made.save(mine.stream, mine, "desired_standard_gpus", "standard_set_at")
        _say(made, actor, mine, "StandardChanged", f"Standard GPUs from {before} to {gpus}", before, gpus)
        audit(actor, "cluster.standard.set", mine.name, mine.project, {"gpus": before}, {"gpus": gpus})
        wake_pool(mine.region_id, mine.gpu_type_id)
    return mine


def create_cluster(
    actor: Actor, project: Project, name: str, region: str, gpu_type: str, standard: int, preemptible: int = 0
) -> Cluster:
    """Ask for a cluster. Its Kubernetes API is made by a worker; `region` and `gpu_type` are names of a pool.

    Raises Unprocessable for a name or number that cannot be, Conflict for a name that the project has already.
    """
    actor.require(project.pk, Role.ADMIN)
    name = clean_name(name)
    pool = pool_called(region, gpu_type)
    step = pool.gpu_type.gpus_per_node
    some_standard(standard, step)
    whole_nodes(preemptible, step, TARGET, GPUS_PARAM)
    with change() as made:
        take_name(project, name)
        within_quota(project, preemptible, 0)
        cluster = Cluster(
            project=project,
            name=name,
            region=pool.region,
            gpu_type=pool.gpu_type,
            status_why="its Kubernetes API is being created",
            created_at=made.now,
            desired_standard_gpus=standard,
            desired_preemptible_gpus=preemptible,
            target_set_by=actor.name,
            target_set_at=made.now,
        )
        new_stream(cluster).save(force_insert=True)
        made.save(cluster.stream, cluster)
        made.stamp(cluster.stream, cluster, "target_revision")
        record_level(made, cluster)
        _say(made, actor, cluster, "ClusterCreated", f"{name} asked for: {standard} standard, {preemptible} preemptible GPUs")
        after = {"region": region, "gpu_type": gpu_type, "standard": standard, "preemptible": preemptible}
        audit(actor, "cluster.create", name, project, after=after)
        enqueue_on_commit(CREATE, str(cluster.pk))
    return cluster


def switch(actor: Actor, on: bool, why: str = "") -> Automation:
    """Stop or start everything that automation would begin: launches, drains, repairs. Running preemption drains finish."""
    if not actor.fleet_operator:
        raise Forbidden("Only a fleet operator stops or starts automation. An administrator can name one.")
    Stream.objects.get_or_create(pk=INSTALLATION, defaults={"kind": Stream.Kind.INSTALLATION})
    Automation.objects.get_or_create(pk=1)
    with change() as made:
        row = Automation.objects.select_for_update().get(pk=1)
        if row.on == on:
            return row
        row.on, row.why = on, why.replace("\x00", "\ufffd")[:300]
        row.changed_by, row.changed_at = actor.name, made.now
        row.save()
        reason, verb = ("AutomationStarted", "started") if on else ("AutomationStopped", "stopped")
        message = f"Automation {verb} by {actor.name}" + (f": {row.why}" if row.why else "")
        clusters = made.lock(Cluster.objects.all())
        for stream in (INSTALLATION, *(cluster.stream for cluster in clusters)):
            made.entry(stream, reason, message, actor=doer(actor))
        for cluster in clusters:  # their panels say why nothing comes
            made.save(cluster.stream, cluster)
        audit(actor, "automation.switch", "automation", before={"on": not on}, after={"on": on, "why": row.why})
        wake(Pool.objects.values_list("pk", flat=True))
    return row


def _lock(made: Change, cluster: Cluster) -> Cluster:
    found = made.lock(Cluster.objects.select_related("project", "region", "gpu_type").filter(pk=cluster.pk))
    if not found or found[0].status == Cluster.Status.DELETING:
        raise Conflict(f"{cluster.name} is being deleted.", code="deleting")
    return found[0]


def _overtaken(cluster: Cluster) -> Conflict:
    return Conflict(
        f"{cluster.target_set_by} changed the target to {cluster.desired_preemptible_gpus} GPUs meanwhile. "
        "Look at it and ask again if you still want to.",
        param=GPUS_PARAM,
        code="target_changed",
        desired=cluster.desired_preemptible_gpus,
        target_revision=cluster.target_revision,
        set_by=cluster.target_set_by,
    )


def _say(
    made: Change, actor: Actor, cluster: Cluster, reason: str, message: str, before: int | None = None, after: int | None = None
) -> None:
    data = {} if before is None else {"from": before, "to": after}
    made.entry(cluster.stream, reason, message, actor=doer(actor), subject=("Cluster", cluster.name, str(cluster.pk)), data=data)
