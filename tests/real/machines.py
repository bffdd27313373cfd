"""Machines for a real Kubernetes: each is a simulated kubelet, which is a client of the API like any other.

They live on a thread with a loop of its own, as machines live beside a console. `Provider` is how the engine sees them. Their
faults are said by name: an answer that is lost, a machine that dies without a word, one that the provider does not end.
"""

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import httpx

from console.capacity.providers.base import Given, NewCluster, NoCapacity, Order, PoolState, Standing, Unclear
from console.simulator.machines.client import Client
from console.simulator.machines.kubelet import Hardware, Kubelet
from console.simulator.machines.view import View
from tests.controlplane.plane import Plane

PLACE = ("eu-north-1", "H100_SXM")


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Machine:
    """One that was launched. Without `task` it is off."""

    order: Order
    number: int
    standing: Standing = Standing.BOOTING
    task: "asyncio.Task[None] | None" = None

    @property
    def given(self) -> Given:
        return Given(self.order.token, f"real://{self.number}", self.standing, None)


@dataclass
class Machines:
    """`total` machines in one pool; `labels` go on every node, so that a test's pods find only its own."""

    plane: Plane
    labels: dict[str, str]
    total: int
    boot_seconds: float = 0.1
    swallow: set[str] = field(default_factory=set)  # verbs that are done and never answered
    stubborn: set[UUID] = field(default_factory=set)  # machines that the provider does not end, whatever it is told
    owed: int = 0
    known: dict[UUID, Machine] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="machines")
        self._thread.start()
        self._on_loop(self._open())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._on_loop(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for machine in self.known.values():
            self.plane.http.delete(f"/api/v1/nodes/{machine.order.node_name}")

    def _on_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        trust = ssl.create_default_context(cafile=self.plane.authority)
        headers = {"authorization": f"Bearer {self.plane.token}"}
        self._http = httpx.AsyncClient(verify=trust, headers=headers, timeout=10, trust_env=False)
        self._client = Client(self._http, self.plane.url)
        self._nodes, self._pods = View(self._client, "/api/v1/nodes"), View(self._client, "/api/v1/pods")
        self._views = [asyncio.create_task(view.run()) for view in (self._nodes, self._pods)]
        await self._pods.listed.wait()
        await self._nodes.listed.wait()

    async def _close(self) -> None:
        tasks = [*self._views, *(machine.task for machine in self.known.values() if machine.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.aclose()

    @property
    def there(self) -> list[Machine]:
        return [machine for machine in list(self.known.values()) if machine.standing is not Standing.TERMINATED]

    @property
    def selector(self) -> str:
        """Of their Nodes."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    @property
    def tokens(self) -> set[str]:
        """Of those that are there."""
        return {str(machine.order.token) for machine in self.there}

    @property
    def provider(self) -> "Provider":
        """As the engine sees them."""
        return Provider(self)

    def state(self) -> PoolState:
        return PoolState(*PLACE, self.total, max(0, self.total - len(self.there)), self.owed, len(self.known))

    def launch(self, order: Order) -> Given:
        if order.token not in self.known:
            if len(self.there) >= self.total:
                raise NoCapacity("nothing is free")
            self.known[order.token] = Machine(order, len(self.known) + 1)
            self._loop.call_soon_threadsafe(self._power_on, self.known[order.token])
        return self.known[order.token].given

    def end(self, token: UUID) -> None:
        if token in self.known and token not in self.stubborn:
            self.known[token].standing = Standing.TERMINATED
            self._loop.call_soon_threadsafe(self._power_off, self.known[token])

    def room(self, total: int) -> None:
        """So many machines there are from now on."""
        self.total = total

    def lose(self, name: str) -> None:
        """It dies without a word; the provider has not noticed."""
        machine = next(machine for machine in self.there if machine.order.node_name == name)
        self._on_loop(self._dies(machine))

    async def _dies(self, machine: Machine) -> None:
        self._power_off(machine)

    def _power_on(self, machine: Machine) -> None:
        machine.task = self._loop.create_task(self._live(machine))

    def _power_off(self, machine: Machine) -> None:
        if machine.task:
            machine.task.cancel()

    async def _live(self, machine: Machine) -> None:
        order, number = machine.order, machine.number
        ip = f"127.20.{number // 250}.{number % 250 + 1}"
        taints = [dict(taint) for taint in order.taints]
        labels = {**order.labels, **self.labels}
        what = Hardware(order.node_name, machine.given.provider_id, order.region, order.gpu_type, ip, labels, taints)
        kubelet = Kubelet(self._client, what, self._nodes, self._pods, now)
        self._pods.listen(kubelet.heard)
        try:
            await kubelet.run(self.boot_seconds, lambda: setattr(machine, "standing", Standing.RUNNING))
        finally:
            self._pods.forget(kubelet.heard)


class Provider:
    """The pool as the engine's provider."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    def __call__(self, name: str) -> Self:
        """Stands for `providers.provider`."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def _answered(self, verb: str) -> None:
        if verb in self._machines.swallow:
            raise Unclear("the answer was lost")

    async def pools(self) -> list[PoolState]:
        return [self._machines.state()]

    async def pool(self, region: str, gpu_type: str) -> PoolState:
        return self._machines.state()

    async def launch(self, order: Order) -> Given:
        given = self._machines.launch(order)
        self._answered("launch")
        return given

    async def look_up(self, token: UUID) -> Given | None:
        machine = self._machines.known.get(token)
        return machine.given if machine else None

    async def list(self, region: str, gpu_type: str) -> list[Given]:
        return [machine.given for machine in self._machines.known.values()]

    async def terminate(self, token: UUID) -> None:
        self._machines.end(token)
        self._answered("terminate")

    async def create_cluster(self, cluster: UUID, name: str, region: str) -> NewCluster:
        raise AssertionError("the cluster is there")
