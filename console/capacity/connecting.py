"""A cluster that is there already: Halftide is given a kubeconfig, looks whether it leads anywhere, and observes.

Nothing is ever sent to it before an administrator has let Halftide act (`mode`). A cluster that is known gets another way in the
same way: its token was replaced, or its address moved.
"""

import asyncio
from dataclasses import replace

from django.conf import settings

from console.accounts.models import Project
from console.accounts.services import audit
from console.capacity.asked import clean_name
from console.capacity.founding import pool_called, take_name
from console.clusters.models import Cluster, new_stream
from console.clusters.secrets import seal
from console.http import Unavailable, Unprocessable
from console.kube import kubeconfig
from console.kube.client import Kube
from console.kube.errors import KubeconfigRefused, KubeError
from console.kube.kubeconfig import Connection
from console.timeline.changes import Change, change

LIMIT = 10.0  # seconds that the cluster's API has to answer


def connect(project: Project, name: str, text: str, region: str, gpu_type: str) -> Cluster:
    """Take in a cluster, in *observe*. `region` and `gpu_type` name the pool that its GPUs belong to.

    Raises Unprocessable for a name, pool or kubeconfig that cannot be, Conflict for a name that the project has already, and
    Unavailable where the API does not answer or lets nobody read its nodes.
    """
    name = clean_name(name)
    pool = pool_called(region, gpu_type)
    version = _look(text)
    with change() as made:
        take_name(project, name)
        cluster = Cluster(
            project=project,
            name=name,
            region_id=pool.region_id,
            gpu_type_id=pool.gpu_type_id,
            status=Cluster.Status.READY,
            mode=Cluster.Mode.OBSERVE,
            created_at=made.now,
            first_ready_at=made.now,
            desired_standard_gpus=0,  # its nodes are its own; we ask for none
            kubeconfig=seal(text),
            kubernetes_version=version,
        )
        new_stream(cluster).save(force_insert=True)
        made.save(cluster.stream, cluster)
        _say(made, cluster, "ClusterConnected", f"{name} connected: Kubernetes {version}, only observed", "cluster.connect")
    return cluster


def reconnect(cluster: Cluster, text: str) -> Cluster:
    """Another kubeconfig for a cluster that is known; its watch begins anew with it. Raises Unprocessable or Unavailable."""
    version = _look(text)
    with change() as made:
        mine = made.lock(Cluster.objects.select_related("project").filter(pk=cluster.pk))[0]
        mine.kubeconfig, mine.kubernetes_version = seal(text), version
        made.save(mine.stream, mine, "kubeconfig", "kubernetes_version")
        _say(made, mine, "KubeconfigReplaced", f"{mine.name} has another kubeconfig now", "cluster.kubeconfig.replace")
    return mine


def _look(text: str) -> str:
    """The version of the API that the kubeconfig leads to, once its nodes could be read. Nothing is written to it."""
    try:
        way = replace(kubeconfig.parse(text, allowed_commands=settings.KUBECONFIG_COMMANDS), read_only=True)
        return asyncio.run(_ask(way))
    except KubeconfigRefused as error:
        raise Unprocessable(error.sentence, param="kubeconfig", code="kubeconfig") from error
    except KubeError as error:
        raise Unavailable(f"This kubeconfig leads to no cluster that can be read. {error.sentence}") from error


async def _ask(way: Connection) -> str:
    async with Kube(way, timeout=LIMIT) as kube:
        await kube.list("nodes")
        return (await kube.version())[:32]


def _say(made: Change, cluster: Cluster, reason: str, message: str, action: str) -> None:
    made.entry(cluster.stream, reason, message, subject=("Cluster", cluster.name, str(cluster.pk)))
    audit(None, action, cluster.name, cluster.project, after={"mode": cluster.mode, "version": cluster.kubernetes_version})
