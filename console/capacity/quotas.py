"""How many preemptible GPUs a project may ask for, in all its clusters together. Without a row of its own the setting counts.

A quota bounds what is asked, never what is there: lowering one below what is asked for takes nothing back, it refuses more.
"""

from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from console.accounts.access import Actor
from console.accounts.models import Project
from console.accounts.services import audit
from console.capacity.asked import GPUS_PARAM, MOST_GPUS
from console.capacity.models import Quota
from console.clusters.models import Cluster
from console.http import Forbidden, NotFound, Unprocessable


def quota_of(project: UUID) -> int:
    """GPUs."""
    found = Quota.objects.filter(pk=project).values_list("gpus", flat=True).first()
    return settings.QUOTA_GPUS if found is None else found


def asked_for(project: UUID) -> int:
    """Preemptible GPUs that all clusters of a project ask for."""
    return Cluster.objects.filter(project=project).aggregate(sum=Sum("desired_preemptible_gpus"))["sum"] or 0


def within_quota(project: Project, gpus: int, before: int) -> None:
    """Refuse (Unprocessable) a target that the project's clusters together may not ask for. The project's row is the lock."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    most = quota_of(project.pk)
    left = max(0, most - (asked_for(project.pk) - before))
    if gpus > left:
        raise Unprocessable(
            f"{project.name} may ask for {most} preemptible GPUs in all; {left} are left for this cluster.",
            param=GPUS_PARAM,
            code="quota",
            most=left,
        )


def set_quota(actor: Actor, project_id: UUID, gpus: int | None) -> int:
    """Give a project its own quota, or with None the setting's again. Returns what counts now. For fleet operators."""
    if not actor.fleet_operator:
        raise Forbidden("Only a fleet operator sets quotas. An administrator can name one.")
    if gpus is not None and not 0 <= gpus <= MOST_GPUS:
        raise Unprocessable(f"A quota is a number of GPUs from 0 to {MOST_GPUS:,}.", param="gpus", code="out_of_range")
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
        if project is None:
            raise NotFound("There is no project with this id.", param="project")
        before = quota_of(project.pk)
        own = Quota.objects.filter(pk=project.pk)
        if gpus is None:
            changed = own.delete()[0] > 0
        else:
            changed = own.values_list("gpus", flat=True).first() != gpus
            if changed:
                Quota.objects.update_or_create(
                    project=project, defaults={"gpus": gpus, "set_by": actor.name[:200], "set_at": timezone.now()}
                )
        now = quota_of(project.pk)
        if changed:
            after = {"gpus": now} if gpus is not None else {"gpus": now, "own": False}
            audit(actor, "project.quota.set", project.name, project, {"gpus": before}, after)
    return now
