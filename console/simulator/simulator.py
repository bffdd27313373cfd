"""The whole: clusters with their controllers, the fleet that puts machines into them, one door for all."""

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx

from console.kube.kubeconfig import Connection
from console.simulator import control, skew
from console.simulator.cluster import Cluster
from console.simulator.identity import Identity
from console.simulator.journal import Journal
from console.simulator.machines.client import Call, Client, Lanes, Refused
from console.simulator.machines.controllers import Controllers, Onlooker
from console.simulator.machines.kubelet import Hardware, Kubelet
from console.simulator.machines.templates import objects
from console.simulator.outside import Outside
from console.simulator.planes import Planes
from console.simulator.provider import kubeconfig
from console.simulator.provider.fleet import Fleet
from console.simulator.provider.machine import Machine
from console.simulator.settings import Settings, control_token
from console.simulator.values import Json
from console.simulator.web import Receive, Request, Response, Send, Stream, answer, read, send_response, send_stream

EXPIRE_EVERY = 60.0  # seconds between looks for old Events

# A real API server answers nobody for some seconds after its start, and then refuses what its controllers have yet to prepare.
SEED_AGAIN_SECONDS, SEED_TRIES = 0.5, 120

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The clock of the running process."""
    return datetime.now(UTC)


class Simulator:
    """Everything of one process. An ASGI application; `start` and `stop` are called by the process around it."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime] = utc_now) -> None:
        self.settings = settings
        self.token = control_token(settings.state)
        self.clusters: dict[str, Cluster | Outside] = {}
        self._clock = clock
        self._closing = asyncio.Event()
        self._journal = Journal(settings.state / "simulator" / "journal.sqlite")
        self._http = httpx.AsyncClient(timeout=10, transport=Lanes())
        self._controllers: dict[str, Controllers | Onlooker] = {}
        self._planes, self._adding = Planes(settings.state / "kubernetes"), asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.fleet = Fleet(
            settings.pools(), self._journal, clock, self._power,
            boot_seconds=settings.boot_seconds, auto=settings.demand, seed=settings.seed,
        )  # fmt: skip
        for fact in self._journal.facts("cluster").values():
            self._open(Identity(**fact))

    async def start(self) -> None:
        """Begin to live, once the port answers."""
        await asyncio.gather(*(self._planes.start(key) for key in self.clusters if self._planes.has(key)))
        for cluster in self.clusters:
            self._animate(cluster)
        self._write_kubeconfig()
        self.fleet.resume()
        self._tasks["demand"] = asyncio.create_task(self.fleet.run())
        self._tasks["expiry"] = asyncio.create_task(self._expire())

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_EVERY)
            for cluster in self.clusters.values():
                if isinstance(cluster, Cluster):
                    cluster.api.expire_events()

    async def stop(self) -> None:
        """Stop what runs and end the watches; everything is in the journal already."""
        self._closing.set()
        self.fleet.close()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(cluster.close() for cluster in self.clusters.values() if isinstance(cluster, Outside)))
        await self._http.aclose()
        await self._planes.close()

    def close(self) -> None:
        """Close the journal, once nobody can ask any more."""
        self._journal.close()

    def server(self, cluster: str) -> str:
        """The URL of a cluster's API."""
        return self._connection(self.clusters[cluster]).server

    async def add_cluster(self, identity: Identity) -> Cluster | Outside:
        """A new cluster, with its namespaces and workloads on their way; the same id again is the same cluster.

        Its API is that of its kubeconfig (somebody else's, so nothing is made in it), else a real control plane where the
        settings say so, else ours. Raises NoPlane or KubeconfigRefused.
        """
        attached = bool(identity.kubeconfig)
        async with self._adding:
            if known := self.clusters.get(identity.id):
                return known
            if attached:
                Outside(identity)  # refused before it is remembered
            elif self.settings.real:
                identity = replace(identity, kubeconfig=await self._planes.start(identity.id))
            else:
                identity = replace(identity, token=secrets.token_urlsafe(24))
            self._journal.note("cluster", identity.id, identity.kept())
            cluster = self._open(identity)
        self._animate(identity.id)
        if not attached:
            self._tasks[f"seed {identity.id}"] = asyncio.create_task(self._seed(identity))
        self._write_kubeconfig()
        return cluster

    async def remove_cluster(self, cluster: str) -> None:
        """The cluster and all that is in it; its machines go back to their pool."""
        for machine in self.fleet.machines():
            if machine.cluster_id == cluster:
                self.fleet.terminate(machine.token)
        if task := self._tasks.pop(cluster, None):
            task.cancel()
        gone = self.clusters.pop(cluster)
        del self._controllers[cluster]
        self._journal.note("cluster", cluster, None)
        self._journal.forget(cluster)
        self._write_kubeconfig()
        if isinstance(gone, Outside):
            await gone.close()
            await self._planes.remove(cluster)

    def kubeconfig(self, cluster: Cluster | Outside) -> str:
        """A cluster's own kubeconfig."""
        return kubeconfig.render({cluster.identity.name: self._connection(cluster)})

    def _connection(self, cluster: Cluster | Outside) -> Connection:
        if isinstance(cluster, Outside):
            return cluster.connection
        return Connection(f"{self.settings.origin}/clusters/{cluster.identity.id}", token=cluster.identity.token)

    def _client(self, cluster: str) -> Client:
        found = self.clusters[cluster]
        return found.client if isinstance(found, Outside) else Client(self._http, self.server(cluster))

    def _write_kubeconfig(self) -> None:
        named = {cluster.identity.name: self._connection(cluster) for cluster in self.clusters.values()}
        kubeconfig.write(self.settings.state / "kubeconfig", named)

    def _open(self, identity: Identity) -> Cluster | Outside:
        if identity.kubeconfig:
            cluster: Cluster | Outside = Outside(identity)
        else:
            cluster = Cluster(identity, self._journal, self._clock, self.token)
        self.clusters[identity.id] = cluster
        return cluster

    def _animate(self, cluster: str) -> None:
        found = self.clusters[cluster]
        controllers = found.controllers if isinstance(found, Outside) else Controllers(self._client(cluster), self._clock)
        self._controllers[cluster] = controllers
        self._tasks[cluster] = asyncio.create_task(controllers.run())

    async def add_workload(self, cluster: str, item: Json) -> list[Call]:
        """Start a workload on a cluster, through its API. What is there already stays."""
        client, calls = self._client(cluster), objects(item)
        for call in calls:
            await _make(client, call)
        return calls

    async def _seed(self, identity: Identity) -> None:
        """Make the namespaces and workloads of a new cluster, through its API."""
        client = self._client(identity.id)
        for name in self.settings.fixture["namespaces"]:
            await _make(client, Call("POST", "/api/v1/namespaces", {"metadata": {"name": name}}), SEED_TRIES)
        for item in self.settings.workloads(identity.name):
            for call in objects(item):
                await _make(client, call, SEED_TRIES)

    async def _power(self, machine: Machine, boot_seconds: float, booted: Callable[[], None]) -> None:
        """Run one machine until it is cancelled."""
        controllers = self._controllers[machine.cluster_id]
        nodes, pods = controllers.views["nodes"], controllers.views["pods"]
        hardware = Hardware(
            machine.node_name,
            machine.provider_id,
            machine.region,
            machine.gpu_type,
            machine.ip,
            dict(machine.labels),
            list(machine.taints),
        )
        kubelet = Kubelet(self._client(machine.cluster_id), hardware, nodes, pods, self._clock)
        pods.listen(kubelet.heard)
        try:
            await pods.listed.wait()
            await kubelet.run(boot_seconds, booted)
        finally:
            pods.forget(kubelet.heard)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        request = await read(scope, receive)
        if request is None:
            return
        response = await self._route(request)
        if "date" not in response.headers:
            response = replace(response, headers={**response.headers, "date": skew.http_date(self._clock())})
        if isinstance(response, Stream):
            await send_stream(response, receive, send, self._closing)
        else:
            await send_response(response, send)

    async def _route(self, request: Request) -> Response | Stream:
        parts = request.path.split("/", 3)
        if parts[1] == "clusters" and len(parts) > 2:
            cluster = self.clusters.get(parts[2])
            if not isinstance(cluster, Cluster):
                return answer({"error": f"There is no cluster {parts[2]!r} here."}, 404)
            return await cluster(replace(request, path="/" + (parts[3] if len(parts) > 3 else "")))
        if parts[1] == "healthz":
            return answer({"ok": True})
        if parts[1] == "control":
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return answer({"reason": "Unauthorized"}, 401)
            return await control.respond(self, request)
        return answer({"error": "Nothing is here: see /clusters/<id> and /control."}, 404)


async def _make(client: Client, call: Call, tries: int = 1) -> None:
    """Create something that may be there already."""
    for _ in range(tries):
        try:
            await client.do(call)
            return
        except Refused as refused:
            if refused.status == 409:
                return
            problem: Exception = refused
        except httpx.TransportError as error:
            problem = error
        await asyncio.sleep(SEED_AGAIN_SECONDS)
    log.warning("%s: %r", call.path, problem)
