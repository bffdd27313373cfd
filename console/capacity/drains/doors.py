"""Opening what a cluster's drains act on: its Kubernetes API and its machines' provider."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from console.capacity.drains.acts import Doors
from console.capacity.drains.views import Failed
from console.capacity.models import Pool
from console.capacity.providers import provider
from console.capacity.providers.base import Provider, ProviderError
from console.clusters.models import Cluster, Machine
from console.clusters.secrets import connection
from console.http import Unavailable
from console.kube.client import Kube
from console.kube.errors import KubeconfigRefused
from console.kube.kubeconfig import Connection

IN_FLIGHT = 64  # requests to one API at a time
TIMEOUT = 5.0  # seconds an answer may take: one that hangs holds up its round, which has 17


@dataclass(frozen=True)
class Keys:
    """How to reach both, read from the database before anything is sent."""

    connection: Connection | None
    closed_why: str
    provider: str
    observed: bool = False  # then not even a machine is ended


def keys_of(cluster_id: UUID) -> Keys:
    cluster = Cluster.objects.get(pk=cluster_id)
    pool = Pool.objects.get(region=cluster.region_id, gpu_type=cluster.gpu_type_id)
    if cluster.mode == Cluster.Mode.OBSERVE:
        return Keys(None, f"{cluster.name} is only observed: nothing is ever sent to it", pool.provider, observed=True)
    try:
        return Keys(connection(cluster), "", pool.provider)
    except (Unavailable, KubeconfigRefused) as error:
        return Keys(None, str(error), pool.provider)


@asynccontextmanager
async def open_doors(keys: Keys, open_provider: Callable[[str], Provider] = provider) -> AsyncIterator[Doors]:
    """For one run; a request beside them opens its own."""
    async with AsyncExitStack() as stack:
        kube = None
        if keys.connection is not None:
            kube = await stack.enter_async_context(Kube(keys.connection, IN_FLIGHT, TIMEOUT))
        machines = await stack.enter_async_context(open_provider(keys.provider))

        async def end_machine(machine: Machine) -> bool | Failed:
            if keys.observed:
                return Failed(keys.closed_why)
            try:
                await machines.terminate(machine.pk)
                found = await machines.look_up(machine.pk)
            except ProviderError as error:
                return Failed(str(error))
            return found is None or not found.there

        yield Doors(kube, keys.closed_why, end_machine)
