"""`manage.py watch`: keep the picture of every cluster, until told to stop. As many may run as are wanted."""

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from console.sync.shifts import Shifts


class Command(BaseCommand):
    help = "Watch the Kubernetes clusters and write what happens in them. Ends cleanly on SIGTERM."
    requires_system_checks = ()  # it serves no pages, and a restart should take no longer than it must

    def handle(self, *_: Any, **__: Any) -> None:
        asyncio.run(_watch())


async def _watch() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Shifts(timezone.now).run(stop)
