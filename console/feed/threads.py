"""Database work of the feed: off the loop, on a few threads, each giving its connection back when done.

Channels' own helper runs everything on one thread, so one slow read would hold up every browser; and its thread-per-call
cousins keep a connection each (django/channels#871).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

CONNECTIONS = 4  # a process

_threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="feed")


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking `work` on the feed's threads; its connection is given back (or closed when it has gone bad) afterwards."""

    def run() -> T:
        close_old_connections()
        try:
            return work(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(_threads, run)
