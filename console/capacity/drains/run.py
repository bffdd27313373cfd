"""All due drains of one cluster, side by side in one loop, under one lease, for as long as something is due.

A round looks at every due drain (at very many together), lets `step` decide, sends what it asks for with up to 64 requests in
flight, and writes what came of it in one transaction. Nothing is remembered between rounds but rows: a run that dies anywhere
is taken over by the next, which looks again. Pods are told in the order of their owners, so that those who belong together hear
of it together.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import monotonic
from typing import ParamSpec, TypeVar
from uuid import UUID, uuid4

from django.db import connection as database
from django.utils import timezone

from console.capacity.drains import acts as drain_acts
from console.capacity.drains import looks
from console.capacity.drains import rows as drain_rows
from console.capacity.drains.acts import Doors
from console.capacity.drains.changes import DRIVE
from console.capacity.drains.doors import IN_FLIGHT, Keys, keys_of, open_doors
from console.capacity.drains.step import learn, step
from console.capacity.drains.views import Action, Delete, DrainView, Evict, Failed, Outcome, Seen, Step
from console.capacity.drains.window import ends_at, grace_for, rest_of, rested
from console.capacity.enqueue import enqueue
from console.capacity.models import Drain
from console.clusters import leases
from console.clusters.leases import Held, LeaseLost

State = Drain.State

LEASE = "drains"
# Shorter than other leases: a machine whose last step died with a worker must still be gone by its deadline + 15 s.
LEASE_SECONDS = 8
RENEW_EVERY = 2.0  # seconds
NO_NEW_ROUND = 12.0  # seconds after the start; what is due then is left to the next run
# Seconds after the start. Pods whose turn has not come then are left to the next run, and what is on its way is answered before
# the stop: cut off, the answers would be lost to us and, on a slow API, the work to it (Kubernetes 1.36 says 504 in its log).
NO_NEW_TELLING = 15.0
STOP = 17.0  # seconds: a round that takes longer is cut off and taken up again, before the task's own limit of 20

P = ParamSpec("P")
T = TypeVar("T")
OpenDoors = Callable[[Keys], AbstractAsyncContextManager[Doors]]
Answer = tuple[Action, Outcome, datetime]


@dataclass
class _Work:
    """One due drain in a round."""

    row: Drain
    before: DrainView
    step: Step


def drive(cluster_id: UUID | str, *, doors: OpenDoors = open_doors, clock: Callable[[], datetime] = timezone.now) -> None:
    """Take the cluster's drains as far as they go now. Does nothing where another run is at it; whatever is cut off stays due.

    What its time did not suffice for goes on with the next worker at once, not with the next sweep.
    """
    run = _Run(UUID(str(cluster_id)), doors, clock)
    with suppress(LeaseLost, TimeoutError):
        asyncio.run(run.run())
    if monotonic() >= run.until and drain_rows.is_due(run.cluster_id, clock()):
        enqueue(DRIVE, str(cluster_id))


class _Run:
    def __init__(self, cluster_id: UUID, doors: OpenDoors, clock: Callable[[], datetime]) -> None:
        self.cluster_id = cluster_id
        self.doors = doors
        self.clock = clock
        # One thread and so one connection for everything this run reads and writes, which ends with it.
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="drains")
        self.slots = asyncio.Semaphore(IN_FLIGHT)
        began = monotonic()
        self.until, self.tells_until = began + NO_NEW_ROUND, began + NO_NEW_TELLING
        self.quiet: dict[tuple[UUID, str, str], datetime] = {}  # until when the API asked not to be asked this again

    async def run(self) -> None:
        try:
            async with asyncio.timeout(STOP):
                while await self._turn():
                    continue
        finally:
            self.thread.submit(_close_database)
            self.thread.shutdown()

    async def _turn(self) -> bool:
        """Take the lease and go through rounds. True where another turn is wanted at once: a drain fell due after the last look,
        and the run that its hint began found the lease still taken.
        """
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4()}"
        held = await self.db(leases.take, LEASE, self.cluster_id, owner, LEASE_SECONDS)
        if held is None:
            return False
        await self._under(held)
        return monotonic() < self.until and await self.db(drain_rows.is_due, self.cluster_id, self.clock())

    async def db(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, partial(work, *args, **kwargs))

    async def _under(self, held: Held) -> None:
        """Rounds, while the lease is renewed beside them; losing it cuts them off."""
        rounds = asyncio.create_task(self._rounds(held))
        renewals = asyncio.create_task(self._renew(held))
        try:
            await asyncio.wait({rounds, renewals}, return_when=asyncio.FIRST_COMPLETED)
            (rounds if rounds.done() else renewals).result()
        finally:
            rounds.cancel()
            renewals.cancel()
            await asyncio.gather(rounds, renewals, return_exceptions=True)
            await self.db(leases.release, held)

    async def _renew(self, held: Held) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY)
            await self.db(leases.renew, held)

    async def _rounds(self, held: Held) -> None:
        rows = await self.db(drain_rows.due, self.cluster_id, self.clock())
        if not rows:
            return
        async with self.doors(await self.db(keys_of, self.cluster_id)) as doors:
            while rows and monotonic() < self.until:
                await self._round(held, doors, rows)
                rows = await self.db(drain_rows.due, self.cluster_id, self.clock())

    async def _round(self, held: Held, doors: Doors, rows: Sequence[Drain]) -> None:
        seen = await self._looks(doors, rows)
        works = await gather([self._decide(doors, row, seen.get(row.pk)) for row in rows])
        tells = [(work, one) for work in works for one in work.step.actions if isinstance(one, Evict | Delete)]
        tells.sort(key=lambda tell: tell[1].fate.owner)
        others: list[tuple[_Work, list[Action]]] = [
            (work, [one for one in work.step.actions if not isinstance(one, Evict | Delete)]) for work in works
        ]
        sent = others + [(work, [one]) for work, one in tells]
        answers: dict[UUID, list[Answer]] = {work.row.pk: [] for work in works}
        for work, found in await gather([self._in_order(doors, work, actions) for work, actions in sent]):
            answers[work.row.pk] += found
        now = self.clock()
        pairs = [(work.before, learn(work.step.drain, answers[work.row.pk], now)) for work in works]
        await self.db(drain_rows.store, held, self.cluster_id, pairs, now)

    async def _looks(self, doors: Doors, rows: Sequence[Drain]) -> Mapping[UUID, Seen | Failed]:
        """Of many at once, where that is less work for the API."""
        looking = [row for row in rows if _looks_at(row)]
        if len(looking) < looks.MANY:
            return {}  # so that a few cost the database no question either
        if not looks.pays(len(looking), await self.db(drain_rows.count_nodes, self.cluster_id)):
            return {}
        async with self.slots:
            return await looks.look_at_all(doors, looking)

    async def _decide(self, doors: Doors, row: Drain, seen: Seen | Failed | None) -> _Work:
        before = drain_rows.view_of(row)
        if seen is None and _looks_at(row):
            async with self.slots:
                seen = await looks.look(doors, row)
        if isinstance(seen, Failed):
            now = self.clock()
            found = step(before, None, now)
            due = found.drain.due_at
            if due is not None and found.drain.state == before.state:
                due = max(due, rested(before, rest_of(seen), now))
            return _Work(row, before, replace(found, drain=replace(found.drain, due_at=due, note=seen.sentence[:300])))
        view = before
        if seen is not None and seen.node is not None and not before.node_uid:
            view = replace(before, node_uid=seen.node.uid)  # the machine became a node after all
        return _Work(row, before, step(view, seen, self.clock()))

    async def _in_order(self, doors: Doors, work: _Work, actions: Sequence[Action]) -> tuple[_Work, list[Answer]]:
        """Actions of one drain, one after another. A grace is counted from when it is sent, not from when it was decided."""
        answers: list[Answer] = []
        for wanted in actions:
            async with self.slots:
                if isinstance(wanted, Evict | Delete) and monotonic() >= self.tells_until:
                    break
                at, action = self.clock(), wanted
                if isinstance(wanted, Evict | Delete) and wanted.grace:
                    action = replace(wanted, grace=grace_for(wanted.fate.asked_grace, ends_at(work.before), at))
                answers.append((action, await self._asked(doors, work, action, at), at))
        return work, answers

    async def _asked(self, doors: Doors, work: _Work, action: Action, at: datetime) -> Outcome:
        """What came of an action; unasked where the API wanted to be left alone with it until later than now."""
        key = (work.row.pk, type(action).__name__, action.fate.uid if isinstance(action, Evict | Delete) else "")
        if (left := (self.quiet.get(key, at) - at).total_seconds()) > 0:
            return Failed("The Kubernetes API asks us to wait.", left)
        outcome = await drain_acts.act(doors, work.row, work.step.drain.node_uid, action)
        if isinstance(outcome, Failed) and outcome.wait:
            self.quiet[key] = self.clock() + rest_of(outcome)
        return outcome


def _looks_at(row: Drain) -> bool:
    """While the provider is asked to end the machine, there is nothing to see."""
    return row.terminated_at is not None or row.state not in {State.DRAINED, State.TIMED_OUT}


def _close_database() -> None:
    """Of the thread it runs in: `database.close` itself would be that of whoever names it."""
    database.close()


async def gather(things: Sequence[Awaitable[T]]) -> list[T]:
    """All of them, in order. Where one raises (a fault of ours: refusals are answers), the others are ended first."""
    tasks = [asyncio.ensure_future(thing) for thing in things]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
