"""A provider in this process, with the faults that real ones have: it is slow, refuses, forgets to answer, and answers twice."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self
from uuid import UUID

from console.capacity.providers.base import Given, NewCluster, NoCapacity, Order, PoolState, Refused, Standing, Unclear


class FakeProvider:
    """`total` machines of which `others` belong to other tenants. `before` runs at the start of each request, by its verb."""

    def __init__(self, total: int = 24, region: str = "eu-north-1", gpu_type: str = "H100_SXM") -> None:
        self.region, self.gpu_type, self.total = region, gpu_type, total
        self.others = 0
        self.machines: dict[UUID, Given] = {}
        self.orders: list[Order] = []  # each launch request, in order
        self.ended: list[UUID] = []
        self.asked: list[str] = []  # verbs
        self.most = 0  # machines that were there at one time
        self.silent = False
        self.swallow: set[str] = set()  # verbs whose answer never arrives, though they are done
        self.lie_free: int | None = None  # says so much is free, and refuses all the same
        self.refuse = ""
        self.before: Callable[[str], None] = lambda verb: None

    def __call__(self, name: str) -> Self:
        """Stands for `providers.provider`."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    @property
    def there(self) -> list[Given]:
        return [machine for machine in self.machines.values() if machine.there]

    @property
    def free(self) -> int:
        return max(0, self.total - self.others - len(self.there))

    async def _asked(self, verb: str) -> None:
        self.asked.append(verb)
        await asyncio.sleep(0)
        self.before(verb)
        if self.silent:
            raise Unclear("the provider does not answer")

    def _answered(self, verb: str) -> None:
        if verb in self.swallow:
            raise Unclear("the answer was lost")

    async def pools(self) -> list[PoolState]:
        await self._asked("pools")
        return [self._state()]

    async def pool(self, region: str, gpu_type: str) -> PoolState:
        await self._asked("pool")
        return self._state()

    def _state(self) -> PoolState:
        free = self.free if self.lie_free is None else self.lie_free
        owed = max(0, self.others + len(self.there) - self.total)
        return PoolState(self.region, self.gpu_type, self.total, free, owed, len(self.asked))

    async def launch(self, order: Order) -> Given:
        self.orders.append(order)
        await self._asked("launch")
        if self.refuse:
            raise Refused(self.refuse)
        if order.token not in self.machines:
            if self.free < 1:
                raise NoCapacity("nothing is free")
            self.machines[order.token] = Given(order.token, f"fake-{len(self.machines)}", Standing.BOOTING)
            self.most = max(self.most, len(self.there))
        self._answered("launch")
        return self.machines[order.token]

    async def look_up(self, token: UUID) -> Given | None:
        await self._asked("look_up")
        return self.machines.get(token)

    async def list(self, region: str, gpu_type: str) -> list[Given]:
        await self._asked("list")
        return list(self.machines.values())

    async def terminate(self, token: UUID) -> None:
        await self._asked("terminate")
        self.ended.append(token)
        if token in self.machines:
            self.machines[token] = replace(self.machines[token], standing=Standing.TERMINATED)
        self._answered("terminate")

    async def create_cluster(self, cluster: UUID, name: str, region: str) -> NewCluster:
        await self._asked("create_cluster")
        self._answered("create_cluster")
        return NewCluster(f"http://127.0.0.1:1/clusters/{cluster}", "apiVersion: v1\n")
