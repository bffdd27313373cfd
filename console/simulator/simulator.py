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

from console.simulator import control, skew
from console.simulator.cluster import Cluster, Identity
from console.simulator.journal import Journal
from console.simulator.machines.client import Call, Client, Lanes, Refused
from console.simulator.machines.controllers import Controllers
from console.simulator.machines.kubelet import Hardware, Kubelet
from console.simulator.machines.templates import objects
from console.simulator.provider import kubeconfig
from console.simulator.provider.fleet import Fleet
from console.simulator.provider.machine import Machine
from console.simulator.settings import Settings, control_token
from console.simulator.values import Json
from console.simulator.web import Receive, Request, Response, Send, Stream, answer, read, send_response, send_stream

EXPIRE_EVERY = 60.0  # seconds between looks for old Events

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The clock of the running process."""
    return datetime.now(UTC)


class Simulator:
    """Everything of one process. An ASGI application; `start` and `stop` are called by the process around it."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime] = utc_now) -> None:
        self.settings = settings
        self.token = control_token(settings.state)
        self.clusters: dict[str, Cluster] = {}
        self._clock = clock
        self._closing = asyncio.Event()
        self._journal = Journal(settings.state / "simulator" / "journal.sqlite")
        self._http = httpx.AsyncClient(timeout=10, transport=Lanes())
        self._controllers: dict[str, Controllers] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.fleet = Fleet(
            settings.pools(), self._journal, clock, self._power,
            boot_seconds=settings.boot_seconds, auto=settings.demand, seed=settings.seed,
        )  # fmt: skip
        for fact in self._journal.facts("cluster").values():
            self._open(Identity(**fact))

    async def start(self) -> None:
        """Begin to live, once the port answers."""
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
                cluster.api.expire_events()

    async def stop(self) -> None:
        """Stop what runs and end the watches; everything is in the journal already."""
        self._closing.set()
        self.fleet.close()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._http.aclose()

    def close(self) -> None:
        """Close the journal, once nobody can ask any more."""
        self._journal.close()

    def server(self, cluster: str) -> str:
        """The URL of a cluster's API."""
        return f"{self.settings.origin}/clusters/{cluster}"

    def add_cluster(self, identity: Identity) -> Cluster:
        """A new cluster, with its namespaces and workloads on their way; the same id again is the same cluster."""
        if known := self.clusters.get(identity.id):
            return known
        identity = replace(identity, token=secrets.token_urlsafe(24))
        self._journal.note("cluster", identity.id, identity.kept())
        cluster = self._open(identity)
        self._animate(identity.id)
        self._tasks[f"seed {identity.id}"] = asyncio.create_task(self._seed(identity))
        self._write_kubeconfig()
        return cluster

    def remove_cluster(self, cluster: str) -> None:
        """The cluster and all that is in it; its machines go back to their pool."""
        for machine in self.fleet.machines():
            if machine.cluster_id == cluster:
                self.fleet.terminate(machine.token)
        if task := self._tasks.pop(cluster, None):
            task.cancel()
        del self.clusters[cluster], self._controllers[cluster]
        self._journal.note("cluster", cluster, None)
        self._journal.forget(cluster)
        self._write_kubeconfig()

    def kubeconfig(self, cluster: Cluster) -> str:
        """A cluster's own kubeconfig."""
        identity = cluster.identity
        return kubeconfig.render({identity.name: (self.server(identity.id), identity.token)})

    def _write_kubeconfig(self) -> None:
        named = {cluster.identity.name: (self.server(key), cluster.identity.token) for key, cluster in self.clusters.items()}
        kubeconfig.write(self.settings.state / "kubeconfig", named)

    def _open(self, identity: Identity) -> Cluster:
        cluster = Cluster(identity, self._journal, self._clock, self.token)
        self.clusters[identity.id] = cluster
        return cluster

    def _animate(self, cluster: str) -> None:
        controllers = Controllers(Client(self._http, self.server(cluster)), self._clock)
        self._controllers[cluster] = controllers
        self._tasks[cluster] = asyncio.create_task(controllers.run())

    async def add_workload(self, cluster: str, item: Json) -> list[Call]:
        """Start a workload on a cluster, through its API. What is there already stays."""
        client, calls = Client(self._http, self.server(cluster)), objects(item)
        for call in calls:
            await _make(client, call)
        return calls

    async def _seed(self, identity: Identity) -> None:
        """Make the namespaces and workloads of a new cluster, through its API."""
        client = Client(self._http, self.server(identity.id))
        for name in self.settings.fixture["namespaces"]:
            await _make(client, Call("POST", "/api/v1/namespaces", {"metadata": {"name": name}}))
        for item in self.settings.workloads(identity.name):
            await self.add_workload(identity.id, item)

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
        kubelet = Kubelet(Client(self._http, self.server(machine.cluster_id)), hardware, nodes, pods, self._clock)
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
            if cluster is None:
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


async def _make(client: Client, call: Call) -> None:
    """Create something that may be there already."""
    try:
        await client.do(call)
    except Refused as refused:
        if refused.status != 409:
            log.warning("%s: %s", call.path, refused)
