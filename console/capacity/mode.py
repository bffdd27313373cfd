"""Observe or act: whether Halftide may write to a cluster at all (DESIGN 6).

Acting is the second step: by an administrator, confirmed with the cluster's name, and audited. Observing begins only where no
node of the cluster is on its way out: a drain that stops in its middle leaves a closed node, and pods that were told to go.
"""

from datetime import datetime

from console.accounts.access import Actor
from console.accounts.models import Role
from console.accounts.services import audit
from console.capacity.models import Drain
from console.capacity.pools.wakes import wake_pool
from console.clusters.models import Cluster
from console.http import BadInput, Conflict, Unprocessable
from console.timeline.changes import change
from console.timeline.who import doer

Mode = Cluster.Mode

SAYS = {
    Mode.ACT: "Halftide acts on {name} now: it launches, drains, cordons and labels",
    Mode.OBSERVE: "Halftide only observes {name} now: nothing is sent to it",
}


def set_mode(actor: Actor, cluster: Cluster, mode: str, confirm: str = "") -> Cluster:
    """Let Halftide act on a cluster, or only observe it. `confirm` is the cluster's name, asked for where it shall act.

    Returns the cluster as it is now; asking for what is so already changes and writes nothing. Raises BadInput for another
    mode, Unprocessable without the confirmation, Conflict while the cluster is made or ended, or while its nodes drain.
    """
    actor.require(cluster.project_id, Role.ADMIN)
    if mode not in Mode.values:
        raise BadInput(f"The mode is one of {' and '.join(Mode.values)}.", param="mode")
    with change() as made:
        mine = made.lock(Cluster.objects.select_related("project").filter(pk=cluster.pk))[0]
        before = mine.mode
        if mode == before:
            return mine
        if mine.status != Cluster.Status.READY:
            raise Conflict(f"{mine.name} is not ready: it is {mine.get_status_display().lower()}.", code="not_ready")
        if mode == Mode.ACT and confirm.strip() != mine.name:
            raise Unprocessable(
                f"Type the cluster's name, {mine.name}, to confirm that Halftide may act on it.", param="confirm", code="confirm"
            )
        if mode == Mode.OBSERVE:
            _nothing_drains(mine, made.now)
        mine.mode = mode
        made.save(mine.stream, mine, "mode")
        message = SAYS[Mode(mode)].format(name=mine.name)
        subject = ("Cluster", mine.name, str(mine.pk))
        made.entry(mine.stream, "ModeChanged", message, actor=doer(actor), subject=subject, data={"from": before, "to": mode})
        audit(actor, "cluster.mode.set", mine.name, mine.project, {"mode": before}, {"mode": mode})
        wake_pool(mine.region_id, mine.gpu_type_id)
    return mine


def _nothing_drains(cluster: Cluster, now: datetime) -> None:
    """A drain past its deadline is no reason to wait: what holds it may never end, and it waits like everything else."""
    going = Drain.objects.filter(cluster=cluster, due_at__isnull=False, deadline__gte=now).order_by("-deadline")
    last = going.first()
    if last is not None:
        nodes = f"{last.node_name} is" if len(going) == 1 else f"{len(going)} nodes of {cluster.name} are"
        raise Conflict(
            f"{nodes} draining, until {last.deadline:%H:%M:%S} UTC at the latest. Observing can begin when that has ended; "
            "the stop switch keeps new drains from starting meanwhile.",
            code="draining",
        )
