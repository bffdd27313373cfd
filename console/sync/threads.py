"""A few threads for database work, so that the loop that listens never waits for a query.

Each thread keeps its connection; one that broke is closed, and the next call opens another (deepfence/ThreatMapper#784).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

P = ParamSpec("P")
R = TypeVar("R")


class Threads:
    """`size` threads, and as many database connections."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._pool = ThreadPoolExecutor(size, name)

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it on one of the threads. What it raises is raised here."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, _guarded, function, args, kwargs)

    def close(self) -> None:
        """Let running transactions end, then close every connection."""
        together = threading.Barrier(self._size)
        for _ in range(self._size):
            self._pool.submit(_close, together)
        self._pool.shutdown(wait=True)


def _guarded(function: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    try:
        return function(*args, **kwargs)
    except (OperationalError, InterfaceError):
        connection.close()
        raise


def _close(together: threading.Barrier) -> None:
    together.wait()  # one for each thread: none may take two
    connection.close()
