"""Fetch a cluster or refuse: lookup and permission in one line of a view.

What somebody may not see is not there (404), so that nobody learns of other projects' clusters; what they may see but not
change is refused with who can help (403).
"""

from uuid import UUID

from django.db.models import QuerySet

from console.accounts.access import Actor
from console.accounts.models import Role
from console.clusters.models import Cluster
from console.http import NotFound


def visible(actor: Actor) -> QuerySet[Cluster]:
    """The clusters of every project in which the actor has a role. A key sees its own project only, through its roles."""
    clusters = Cluster.objects.select_related("project", "region", "gpu_type")
    if actor.everywhere is not None:
        return clusters
    return clusters.filter(project_id__in=list(actor.roles))


def get_cluster(actor: Actor, cluster_id: UUID | str, role: Role = Role.VIEWER) -> Cluster:
    """The cluster, if the actor may see it and holds `role` in its project."""
    try:
        wanted = UUID(str(cluster_id))
    except ValueError:
        raise NotFound("There is no cluster with this id.", param="cluster_id") from None
    cluster = visible(actor).filter(pk=wanted).first()
    if cluster is None:
        raise NotFound("There is no cluster with this id, or it belongs to a project you have no role in.", param="cluster_id")
    actor.require(cluster.project_id, role)
    return cluster


def get_cluster_for_fleet(actor: Actor, cluster_id: UUID) -> Cluster:
    """As `get_cluster`, and for fleet operators every cluster of every project: they reclaim and drill across projects."""
    if not actor.fleet_operator:
        return get_cluster(actor, cluster_id)
    found = Cluster.objects.select_related("project", "region", "gpu_type").filter(pk=cluster_id).first()
    if found is None:
        raise NotFound("There is no cluster with this id.", param="cluster_id")
    return found
