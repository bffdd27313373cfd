"""What every new cluster needs, asked for by us or there already: a pool, and a name that its project does not have yet."""

from console.accounts.models import Project
from console.capacity.models import Pool
from console.clusters.models import Cluster
from console.http import Conflict, Unprocessable


def pool_called(region: str, gpu_type: str) -> Pool:
    """The pool of a GPU type in a region, by their names. Raises Unprocessable, which names those there are."""
    pool = Pool.objects.select_related("region", "gpu_type").filter(region_id=region, gpu_type_id=gpu_type).first()
    if pool is None:
        known = Pool.objects.order_by("region", "gpu_type").values_list("region_id", "gpu_type_id")
        pools = ", ".join(f"{place} {kind}" for place, kind in known)
        wanted = f"{gpu_type[:80]} in {region[:80]}"
        raise Unprocessable(f"There is no pool of {wanted}. There are: {pools or 'none yet'}.", param="gpu_type", code="no_pool")
    return pool


def take_name(project: Project, name: str) -> None:
    """Hold the project until the change ends, so that two of one name at a time meet here. Raises Conflict."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if Cluster.objects.filter(project=project, name=name).exists():
        raise Conflict(f"{project.name} has a cluster named {name} already.", param="name", code="name_taken")
