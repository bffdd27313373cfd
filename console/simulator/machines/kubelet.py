"""One machine: it boots, registers its Node, proves that it lives, and runs the pods it is given."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import httpx

from console.simulator.machines import node_body, said
from console.simulator.machines.client import LEASES, MERGE, Call, Client, Refused
from console.simulator.machines.pod_worker import PodWorker, live
from console.simulator.machines.snapshot import is_true
from console.simulator.machines.view import View
from console.simulator.values import Json, micro_stamp

log = logging.getLogger(__name__)
LEASE_SECONDS = 10.0  # as the real kubelet: a quarter of the lease's 40 s
STATUS_EVERY = 30  # leases between two status reports: five minutes
READY_SECONDS = 0.7  # from registration to Ready: the network plug-in's time


@dataclass(frozen=True)
class Hardware:
    """What a kubelet is told by its machine."""

    node_name: str
    provider_id: str
    region: str
    gpu_type: str
    ip: str
    labels: Json
    taints: list[Json]


class Kubelet:
    """The agent of one machine. Cancel `run` and the machine is dead: nothing says goodbye, as with a real one."""

    def __init__(self, client: Client, hardware: Hardware, nodes: View, pods: View, clock: Callable[[], datetime]) -> None:
        self._client, self._hardware, self._nodes, self._pods, self._clock = client, hardware, nodes, pods, clock
        self._workers: dict[str, tuple[PodWorker, asyncio.Task[None]]] = {}
        self._number = 0

    async def run(self, boot_seconds: float, booted: Callable[[], None]) -> None:
        """From power-on until cancelled. `boot_seconds` is 0 for a machine that only comes back with the simulator."""
        await asyncio.sleep(boot_seconds)
        try:
            while not await self._joined(booted):  # noqa: ASYNC110  # an API that may be away sends no event
                await asyncio.sleep(1)
            await self._beat()
        finally:
            for _, task in self._workers.values():
                task.cancel()

    async def _joined(self, booted: Callable[[], None]) -> bool:
        try:
            await self._register()
        except (httpx.HTTPError, Refused) as error:
            log.info("%s cannot join yet: %s", self._hardware.node_name, error)
            return False
        booted()
        for pod in list(self._pods.objects.values()):
            self.heard("ADDED", pod)
        return True

    async def _register(self) -> None:
        """Make the Node, or find it after a restart, and bring it to Ready."""
        what, now = self._hardware, self._clock()
        body = node_body.node(
            what.node_name, labels=what.labels, taints=what.taints, provider_id=what.provider_id, gpu_type=what.gpu_type,
            region=what.region, ip=what.ip, now=now,
        )  # fmt: skip
        path = f"/api/v1/nodes/{what.node_name}"
        try:
            node = await self._client.do(Call("POST", "/api/v1/nodes", body))
            await self._client.do(said.kubelet_of_node(node, "Starting", "Starting kubelet.", now))
        except Refused as refused:
            if refused.status != 409:
                raise
            node = await self._client.get(path)
        await self._renew(node)
        if not is_true(node, "Ready"):
            await asyncio.sleep(READY_SECONDS)
            status = {"status": {"conditions": node_body.heartbeat(node, self._clock())}}
            node = await self._client.do(Call("PATCH", f"{path}/status", status, MERGE))
            await self._client.do(
                said.kubelet_of_node(node, "NodeReady", f"Node {what.node_name} status is now: NodeReady", self._clock())
            )

    async def _renew(self, node: Json) -> None:
        try:
            renewed = {"spec": {"renewTime": micro_stamp(self._clock())}}
            await self._client.do(Call("PATCH", f"{LEASES}/{self._hardware.node_name}", renewed, MERGE))
        except Refused as refused:
            if refused.status != 404:
                raise
            await self._client.do(Call("POST", LEASES, node_body.lease(node, self._clock())))

    async def _beat(self) -> None:
        """Heartbeats for ever. A Node that somebody deleted is not made again, as with a real kubelet until it restarts."""
        name, beats = self._hardware.node_name, 0
        while True:
            await asyncio.sleep(LEASE_SECONDS)
            node = self._nodes.objects.get(("", name))
            if node is None:
                continue
            beats += 1
            try:
                await self._renew(node)
                if beats % STATUS_EVERY == 0 or not is_true(node, "Ready"):
                    status = {"status": {"conditions": node_body.heartbeat(node, self._clock())}}
                    await self._client.do(Call("PATCH", f"/api/v1/nodes/{name}/status", status, MERGE))
            except (httpx.HTTPError, Refused) as error:
                log.debug("%s: %s", name, error)

    def heard(self, kind: str, pod: Json) -> None:
        """A pod of this machine changed."""
        if pod["spec"].get("nodeName") != self._hardware.node_name:
            return
        uid = pod["metadata"]["uid"]
        known = self._workers.get(uid)
        if kind == "DELETED":
            if known is not None:
                known[1].cancel()
            return
        if known is None:
            self._number += 1
            address = f"10.{self._number // 250 + 1}.{int(self._hardware.ip.rsplit('.', 1)[-1])}.{self._number % 250 + 1}"
            worker = PodWorker(self._client, pod, self._hardware.ip, address, self._clock)
            task = asyncio.ensure_future(live(worker))
            task.add_done_callback(lambda _: self._workers.pop(uid, None))
            self._workers[uid] = worker, task
        elif int(pod["metadata"]["resourceVersion"]) > int(known[0].latest["metadata"]["resourceVersion"]):
            known[0].latest = pod
            known[0].woken.set()
