"""A faulty server, a client of it, and a clock that only moves when somebody pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from console.kube.client import Kube
from console.kube.kubeconfig import Connection
from tests.kube.faulty import Faulty


class Clock:
    """Injected time: `pause` moves it at once and remembers for how long."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        self.start = self.now
        self.pauses: list[float] = []

    def __call__(self) -> datetime:
        return self.now

    def tick(self) -> float:
        """Seconds since the start."""
        return (self.now - self.start).total_seconds()

    async def pause(self, seconds: float) -> None:
        """Wait so long, in no time."""
        self.pauses.append(seconds)
        self.now += timedelta(seconds=seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def server(clock: Clock) -> AsyncIterator[Faulty]:
    async with Faulty() as faulty:
        faulty.clock = clock.tick
        yield faulty


@pytest.fixture
async def kube(server: Faulty, clock: Clock) -> AsyncIterator[Kube]:
    async with Kube(Connection(server.url), timeout=5, clock=clock, pause=clock.pause) as client:
        yield client
