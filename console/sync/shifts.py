"""Which clusters this process watches. Watchers share them by lease, so that as many processes may run as are wanted.

Each second: who is there, who is free, who has gone. A lease lasts 15 s and is renewed each 5; a process that dies leaves its
clusters to another, which lists before it writes anything.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import monotonic
from uuid import UUID, uuid4

from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now

from console.clusters import leases, secrets
from console.clusters.leases import Held, LeaseLost
from console.clusters.models import Cluster, Lease
from console.http import Unavailable
from console.kube.errors import KubeconfigRefused
from console.kube.kubeconfig import Connection
from console.sync.room import PICTURE, Trouble
from console.sync.threads import Threads
from console.sync.watcher import ClusterWatch
from console.sync.writer import enter, write

log = logging.getLogger(__name__)

LEASE = "watch"
ROUND = 1.0  # seconds between two looks at which clusters there are
WRITERS = 4  # threads, and so database connections, for all clusters of a process
LONGEST_PAUSE = 30.0  # seconds before a watch that fell over is started again, at most


Door = tuple[bytes, str]  # kubeconfig and mode: where either changes, the watch begins again with a connection that fits


@dataclass
class Shift:
    """One cluster that is ours for now."""

    held: Held
    door: Door
    task: asyncio.Task[None]
    renewed: float


class Shifts:
    """One watch process. `run` until told to stop; every lease is given back then."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._owner = f"{neighbourhood()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._threads = Threads(WRITERS, "sync")
        # Renewals have a thread of their own: a burst that keeps all writers busy must not cost a lease.
        self._leases = Threads(1, "lease")
        self._shifts: dict[UUID, Shift] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until `stop` is set."""
        try:
            while not stop.is_set():
                try:
                    await self._round()
                except (OperationalError, InterfaceError) as error:
                    log.warning("database_unreachable", extra={"why": str(error).strip()})
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), ROUND)
        finally:
            await self._end()

    async def _round(self) -> None:
        there, taken = await self._leases.call(census)
        over = [found for found, ours in self._shifts.items() if ours.task.done() or there.get(found) != ours.door]
        for cluster_id in over:
            await self._drop(cluster_id)
        for cluster_id, shift in self._shifts.items():
            if monotonic() - shift.renewed >= leases.RENEW_EVERY:
                await self._renew(cluster_id, shift)
        for cluster_id in there.keys() - self._shifts.keys() - taken:
            held = await self._leases.call(leases.take, LEASE, cluster_id, self._owner)
            if held:
                task = asyncio.create_task(self._keep(cluster_id, held), name=f"watch-{cluster_id}")
                self._shifts[cluster_id] = Shift(held, there[cluster_id], task, monotonic())

    async def _renew(self, cluster_id: UUID, shift: Shift) -> None:
        try:
            await self._leases.call(leases.renew, shift.held)
            shift.renewed = monotonic()
        except LeaseLost:
            log.warning("watch_lost", extra={"cluster": str(cluster_id)})
            shift.task.cancel()

    async def _drop(self, cluster_id: UUID) -> None:
        """Stop watching and give the lease back, so that whoever comes next need not wait for its end."""
        shift = self._shifts.pop(cluster_id)
        shift.task.cancel()
        await asyncio.wait([shift.task])
        if not shift.task.cancelled() and (error := shift.task.exception()):
            log.error("watch_ended", extra={"cluster": str(cluster_id)}, exc_info=error)
        await self._leases.call(leases.release, shift.held)

    async def _keep(self, cluster_id: UUID, held: Held) -> None:
        """One cluster's watch, started again after whatever made it fall. One of the process's doors: a fault of ours in one
        cluster must not end the others'."""
        pause, refused_since = 1.0, self._clock()
        while True:
            started = monotonic()
            try:
                connection = await self._threads.call(open_connection, cluster_id)
                await ClusterWatch(cluster_id, connection, held, self._threads, self._clock).run()
            except (KubeconfigRefused, Unavailable) as error:
                await self._refused(cluster_id, held, refused_since, str(error))
            except (OperationalError, InterfaceError):
                log.warning("database_unreachable", extra={"cluster": str(cluster_id)})
            except ExceptionGroup as group:
                if group.subgroup(LeaseLost):
                    return
                log.exception("watch_fell", extra={"cluster": str(cluster_id)}, exc_info=group)
            pause = 1.0 if monotonic() - started > LONGEST_PAUSE else min(pause * 2, LONGEST_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.8, 1))  # noqa: S311 - spreads restarts, keeps no secret

    async def _refused(self, cluster_id: UUID, held: Held, since: datetime, sentence: str) -> None:
        """A kubeconfig that cannot be used is a cluster that cannot be reached."""
        room = await self._threads.call(enter, cluster_id, held)
        with suppress(LeaseLost):
            await self._threads.call(write, room, [Trouble(kind, since, sentence) for kind in PICTURE], self._clock())

    async def _end(self) -> None:
        for cluster_id in list(self._shifts):
            with suppress(OperationalError, InterfaceError):  # then the leases run out by themselves
                await self._drop(cluster_id)
        self._threads.close()
        self._leases.close()


def census() -> tuple[dict[UUID, Door], set[UUID]]:
    """Kubeconfig and mode by cluster, of those that have one, and which of them somebody watches.

    A lease whose process died beside us is given back here: its successor is up in two seconds, and in the rest of the fifteen
    a drain's pods would end unseen. Where we err, the fence keeps the two apart.
    """
    rows = Cluster.objects.filter(kubeconfig__isnull=False).values_list("pk", "kubeconfig", "mode")
    taken: set[UUID] = set()
    for lease in Lease.objects.filter(kind=LEASE, until__gt=Now()):
        if died_here(lease.owner):
            leases.release(Held(lease.kind, lease.object_id, lease.owner, lease.fence))
        else:
            taken.add(lease.object_id)
    return {pk: (bytes(kubeconfig), mode) for pk, kubeconfig, mode in rows if kubeconfig}, taken


def neighbourhood() -> str:
    """Where process numbers mean the same to two processes: this host, and on Linux this pid namespace."""
    try:
        space = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        space = 0
    return f"{socket.gethostname()[:50]}:{space}"


def died_here(owner: str) -> bool:
    """Whether a lease's owner was a process beside us that is no more."""
    place, _, rest = owner.rpartition(":")[0].rpartition(":")
    if place != neighbourhood() or not rest.isdecimal():
        return False
    with suppress(PermissionError):
        try:
            os.kill(int(rest), 0)  # asks, and sends nothing
        except ProcessLookupError:
            return True
    return False


def open_connection(cluster_id: UUID) -> Connection:
    """How to reach a cluster. Raises Unavailable or KubeconfigRefused."""
    return secrets.connection(Cluster.objects.get(pk=cluster_id))
