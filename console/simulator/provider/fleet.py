"""The provider: pools, machines and the other tenants, and the one thing it promises, never two machines for one token."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime

from console.simulator.journal import Journal
from console.simulator.provider.demand import Curve, surge_at, wanted
from console.simulator.provider.machine import BOOTING, LOST, RUNNING, TERMINATED, Machine
from console.simulator.provider.market import Market
from console.simulator.provider.pools import Pool
from console.simulator.values import Json, stamp

log = logging.getLogger(__name__)
Key = tuple[str, str]
Work = Coroutine[None, None, None]
Power = Callable[[Machine, float, Callable[[], None]], Work]
TERMINATE_SECONDS = (0.5, 1.5)
FORGET_AFTER = 500  # terminated machines that can still be looked up


class NoCapacity(Exception):
    """The pool has no free machine."""


class UnknownPool(Exception):
    """No such pool."""


class Fleet:
    """All pools and machines. `power` runs one machine until cancelled; the clock gives instants."""

    def __init__(
        self, totals: Mapping[Key, tuple[int, Curve]], journal: Journal, clock: Callable[[], datetime], power: Power,
        *, boot_seconds: float, auto: bool, seed: int,
    ) -> None:  # fmt: skip
        self.boot_seconds, self._given = boot_seconds, (boot_seconds, auto)
        self.ends = asyncio.Event()  # while it is not set, machines that were asked to end go on
        self.ends.set()
        self.joins: list[float | None] = []  # how the next machines to be launched register; see Machine.joins_after
        self.version = 1
        self._wake = asyncio.Event()
        self._journal, self._clock, self._power, self._seed = journal, clock, power, seed
        self._markets = {key: Market(total, total, curve, auto, curve.base) for key, (total, curve) in totals.items()}
        for key, market in self._markets.items():
            if fact := journal.facts("demand").get(" ".join(key)):
                market.auto, market.wanted = False, fact["machines"]
        self._machines = {token: Machine(**fact) for token, fact in journal.facts("machine").items()}
        self._numbers = len(self._machines)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()

    def resume(self) -> None:
        """After a restart: machines that ran still run, those that booted boot, those that were leaving leave."""
        for machine in list(self._machines.values()):
            if machine.leaving and machine.state != TERMINATED:
                self._later(self._terminate(machine.token))
            elif machine.state in (BOOTING, RUNNING):
                self._start(machine, 0.0 if machine.state == RUNNING else self._boot_time(machine.token))
        self._notice()

    def pool(self, key: Key) -> Pool:
        """A pool as it is now. Raises UnknownPool."""
        market = self._markets.get(key)
        if market is None:
            raise UnknownPool(f"There is no pool of {key[1]} in {key[0]}.")
        held = [machine for machine in self._machines.values() if (machine.region, machine.gpu_type) == key]
        ours = sum(machine.state != TERMINATED for machine in held)
        return Pool(key[0], key[1], market.total, ours, market.wanted)

    def pools(self) -> list[Json]:
        """All pools as the control API says them."""
        return [self.shown(key) for key in self._markets]

    def shown(self, key: Key) -> Json:
        """One pool as the control API says it."""
        pool = self.pool(key)
        return {
            "region": pool.region, "gpu_type": pool.gpu_type, "total": pool.total, "free": pool.free, "owed": pool.owed,
            "version": self._markets[key].version,
        }  # fmt: skip

    async def wait(self, version: int, seconds: float) -> None:
        """Return when any pool's numbers are newer than `version`, or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                while self.version <= version:
                    await self._wake.wait()
        except TimeoutError:
            return

    def machines(self, region: str = "", gpu_type: str = "") -> list[Machine]:
        """The machines of a pool, or of all."""
        return [
            machine
            for machine in self._machines.values()
            if region in ("", machine.region) and gpu_type in ("", machine.gpu_type)
        ]

    def machine(self, token: str) -> Machine | None:
        """One machine."""
        return self._machines.get(token)

    def launch(self, asked: Machine) -> tuple[Machine, bool]:
        """A machine for a token; whether it is new. Raises NoCapacity or UnknownPool."""
        if known := self._machines.get(asked.token):
            return known, False
        if self.pool((asked.region, asked.gpu_type)).free < 1:
            raise NoCapacity(f"{asked.region} has no free {asked.gpu_type} machine.")
        self._numbers += 1
        number = self._numbers
        machine = replace(
            asked, asked_at=stamp(self._clock()), ip=f"127.{10 + number // 62_500}.{number // 250 % 250}.{number % 250 + 2}",
            provider_id=f"simulated://{asked.region}/m-{number:06d}", joins_after=self.joins.pop(0) if self.joins else 0.0,
        )  # fmt: skip
        self._keep(machine)
        self._start(machine, self._boot_time(machine.token))
        return machine, True

    def terminate(self, token: str) -> Machine | None:
        """Ask for a machine's end; asking again changes nothing."""
        machine = self._machines.get(token)
        if machine is None or machine.leaving:
            return machine
        self._keep(replace(machine, leaving=True))
        self._later(self._terminate(token))
        return self._machines[token]

    def lose(self, token: str) -> Machine | None:
        """The machine dies without a word: still ours to terminate, but nothing runs on it."""
        machine = self._machines.get(token)
        if machine is None or machine.state == TERMINATED:
            return machine
        self._stop(token)
        self._keep(replace(machine, state=LOST))
        return self._machines[token]

    def demand(self, key: Key, machines: int | None, *, auto: bool) -> None:
        """Set what other tenants want by hand, or give the pool back to its curve. By hand it outlives this process."""
        self.pool(key)
        market = self._markets[key]
        market.auto = auto
        if machines is not None:
            market.wanted = machines
        elif auto:
            market.wanted, market.surge = market.curve.base, None
        self._journal.note("demand", " ".join(key), None if auto else {"machines": market.wanted})
        self._notice()

    def capacity(self, key: Key, machines: int) -> None:
        """From now on a pool has so many machines in all. What we hold beyond them is owed."""
        self.pool(key)
        self._markets[key].total = machines
        self._notice()

    def restore(self) -> None:
        """Pools, demand and boots as this process was started. Machines stay as they are."""
        self.boot_seconds, auto = self._given
        self.joins.clear()
        self.ends.set()
        for key, market in self._markets.items():
            self._journal.note("demand", " ".join(key), None)
            market.total, market.auto, market.wanted, market.surge = market.given, auto, market.curve.base, None
        self._notice()

    async def run(self) -> None:
        """Let the demand rise and fall, for ever."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while True:
            await asyncio.sleep(1)
            for key, market in self._markets.items():
                if market.auto:
                    self._tide(key, market, loop.time() - start)
            self._notice()

    def _tide(self, key: Key, market: Market, elapsed: float) -> None:
        surge = surge_at(market.curve, f"{self._seed} {key}", elapsed)
        if surge == market.surge:
            return
        market.surge, pool = surge, self.pool(key)
        preemptible = sum(
            machine.compute_class == "preemptible" and machine.state != TERMINATED for machine in self.machines(*key)
        )
        market.wanted = wanted(market.curve, surge, total=pool.total, ours=pool.ours, preemptible=preemptible)
        log.info("other tenants in %s now want %d %s machines", key[0], market.wanted, key[1])

    def close(self) -> None:
        """Stop everything that runs."""
        for task in [*self._tasks.values(), *self._background]:
            task.cancel()

    def _boot_time(self, token: str) -> float:
        return self.boot_seconds * random.Random(token).uniform(0.7, 1.3)

    def _start(self, machine: Machine, boot_seconds: float) -> None:
        on_time = machine.joins_after == 0
        work = (
            self._power(machine, boot_seconds, lambda: self._booted(machine.token))
            if on_time
            else self._late(machine, boot_seconds)
        )
        self._tasks[machine.token] = asyncio.create_task(work)

    async def _late(self, machine: Machine, boot_seconds: float) -> None:
        """It boots, and the provider says that it runs, but its Node comes later or never."""
        await asyncio.sleep(boot_seconds)
        self._booted(machine.token)
        if machine.joins_after is not None:
            await asyncio.sleep(machine.joins_after)
            await self._power(machine, 0.0, lambda: None)

    def _booted(self, token: str) -> None:
        machine = self._machines[token]
        if machine.state == BOOTING:
            self._keep(replace(machine, state=RUNNING, booted_at=stamp(self._clock())))

    def _stop(self, token: str) -> None:
        if task := self._tasks.pop(token, None):
            task.cancel()

    async def _terminate(self, token: str) -> None:
        await asyncio.sleep(random.Random(f"end {token}").uniform(*TERMINATE_SECONDS))
        await self.ends.wait()
        self._stop(token)
        self._keep(replace(self._machines[token], state=TERMINATED))
        gone = [machine.token for machine in self._machines.values() if machine.state == TERMINATED]
        for old in gone[:-FORGET_AFTER]:
            del self._machines[old]
            self._journal.note("machine", old, None)

    def _later(self, work: Work) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _keep(self, machine: Machine) -> None:
        self._machines[machine.token] = machine
        self._journal.note("machine", machine.token, machine.kept())
        self._notice()

    def _notice(self) -> None:
        """Raise the version of each pool whose numbers moved, and wake who waits for that."""
        for key, market in self._markets.items():
            pool = self.pool(key)
            now = (pool.total, pool.free, pool.owed)
            if now != market.seen:
                self.version += 1
                market.seen, market.version = now, self.version
                self._wake.set()
                self._wake = asyncio.Event()
