"""PUT and POST of a cluster, and the ETag that guards them.

The ETag names what a PUT can change, the two targets, and not the whole answer: a node that turns Ready must not refuse
somebody's update. So an `If-Match` fails exactly when somebody asked for other numbers meanwhile.
"""

from uuid import UUID

from django.utils.http import parse_etags

from console.accounts.access import Actor
from console.accounts.models import Project, Role
from console.api.requests import ClusterCreate, ClusterUpdate
from console.capacity import services
from console.clusters.models import Cluster
from console.http import BadInput, DomainError, Forbidden, NotFound, PreconditionFailed, Unprocessable
from console.timeline.changes import change


def etag(cluster: Cluster) -> str:
    standard = cluster.standard_set_at.timestamp() if cluster.standard_set_at else 0
    return f'"{cluster.target_revision}-{standard * 1e6:.0f}"'


def update(actor: Actor, cluster: Cluster, asked: ClusterUpdate, if_match: str | None) -> Cluster:
    """Both numbers or none: one transaction. Raises PreconditionFailed with the newer numbers for an outdated `if_match`."""
    actor.require(cluster.project_id, Role.OPERATOR)
    with change() as made:
        found = made.lock(Cluster.objects.select_related("project", "region", "gpu_type").filter(pk=cluster.pk))
        if not found:
            raise NotFound(f"{cluster.name} was deleted meanwhile.", param="cluster_id")
        mine = found[0]
        if if_match is not None and not _holds(if_match, mine):
            raise _outdated(mine)
        if asked.num_gpus is not None:
            mine = services.set_standard(actor, mine, asked.num_gpus)
        if asked.num_preemptible_gpus is not None:
            mine = services.set_target(actor, mine, asked.num_preemptible_gpus)
    return mine


def create(actor: Actor, asked: ClusterCreate) -> Cluster:
    project = _project(actor, asked.project_id)
    try:
        return services.create_cluster(
            actor,
            project,
            asked.cluster_name,
            asked.region,
            asked.gpu_type,
            asked.num_gpus,
            asked.num_preemptible_gpus or 0,
        )
    except DomainError as error:
        error.param = "cluster_name" if error.param == "name" else error.param  # as the field is called here
        raise


def visible_project(actor: Actor, project_id: str, param: str) -> Project:
    """Raises NotFound for what is not there or not for this actor to know about."""
    try:
        wanted = UUID(project_id)
    except ValueError:
        raise BadInput(f"{param} is the id of a project; GET /v1/projects lists yours.", param=param, code="not_an_id") from None
    found = Project.objects.filter(pk=wanted).first()
    if found is None or actor.role_in(wanted) is None:
        raise NotFound("There is no project with this id, or you have no role in it.", param=param)
    return found


def _project(actor: Actor, project_id: str | None) -> Project:
    """The one that is named, else a key's own, else the only one in which the actor may create."""
    if project_id is not None:
        return visible_project(actor, project_id, "project_id")
    if actor.key is not None:
        return Project.objects.get(pk=actor.key.project_id)
    mine = Project.objects.all() if actor.everywhere == Role.ADMIN else Project.objects.filter(pk__in=_administered(actor))
    first = list(mine.order_by("pk")[:2])
    if not first:
        raise Forbidden("Clusters are created by administrators of a project. One of them can make you one.")
    if len(first) > 1:
        raise Unprocessable("You administer several projects: say which in project_id.", param="project_id", code="missing")
    return first[0]


def _administered(actor: Actor) -> list[UUID]:
    return [project for project, role in actor.roles.items() if role == Role.ADMIN]


def _holds(if_match: str, cluster: Cluster) -> bool:
    wanted = parse_etags(if_match)
    return wanted == ["*"] or etag(cluster) in wanted


def _outdated(cluster: Cluster) -> PreconditionFailed:
    return PreconditionFailed(
        f"{cluster.name} was changed since you read it: {cluster.desired_preemptible_gpus} preemptible and "
        f"{cluster.desired_standard_gpus} standard GPUs are asked for now. Read it again and send its new ETag.",
        param="If-Match",
        code="changed",
        desired_preemptible_gpus=cluster.desired_preemptible_gpus,
        num_gpus=cluster.desired_standard_gpus,
        etag=etag(cluster),
    )
