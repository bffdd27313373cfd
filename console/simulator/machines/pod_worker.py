"""One pod on one machine, from its arrival to its end: the part of a kubelet that drains are about.

The order others see is that of a real kubelet: ContainerCreating, Running; when its deletion is asked for, SIGTERM and the
program's own time; then Succeeded or Failed with exit code and time, still in the list; then deleted with grace 0.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import httpx

from console.simulator.machines import pod_status, said
from console.simulator.machines.client import MERGE, Call, Client, Refused, pod_path
from console.simulator.machines.program import CHECKPOINT, KILLED, end_of, program
from console.simulator.machines.snapshot import finished
from console.simulator.values import Json, instant, stamp

Clock = Callable[[], datetime]
CREATING_SECONDS = (0.2, 0.6)
STARTING_SECONDS = (0.5, 1.5)


class PodWorker:
    """Runs one pod. `latest` and `woken` are fed by whoever watches."""

    def __init__(self, client: Client, pod: Json, host: str, address: str, clock: Clock) -> None:
        self.latest = pod
        self.woken = asyncio.Event()
        self._client, self._host, self._address, self._clock = client, host, address, clock
        self._dice = random.Random(f"start {pod['metadata']['uid']}")
        self._program = program(pod)

    async def run(self) -> None:
        """Its whole life; returns when the pod needs this machine no more."""
        if finished(self.latest) and not self._leaving():
            await self._until(self._leaving)
        if not finished(self.latest) and pod_status.began(self.latest) is None and not self._leaving():
            await self._start()
        if not finished(self.latest) and not self._leaving():
            await self._work()
        await self._until(self._leaving)
        await self._stop()

    def _all(self, code: int) -> dict[str, int]:
        return dict.fromkeys(self._program.stops, code)

    def _leaving(self) -> bool:
        return "deletionTimestamp" in self.latest["metadata"]

    async def _until(self, true: Callable[[], bool]) -> None:
        while not true():
            await self._pause(3600)

    async def _pause(self, seconds: float) -> None:
        """Wait for that long, or until the pod changes."""
        self.woken.clear()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self.woken.wait()
        except TimeoutError:
            return

    async def _status(self, status: Json) -> None:
        self.latest = await self._client.do(Call("PATCH", pod_path(self.latest, "status"), {"status": status}, MERGE))

    async def _say(self, reason: str, message: str) -> None:
        await self._client.do(said.kubelet_of_pod(self.latest, reason, message, self._clock()))

    async def _start(self) -> None:
        await asyncio.sleep(self._dice.uniform(*CREATING_SECONDS))
        await self._status(pod_status.creating(self.latest, self._host, self._clock()))
        await asyncio.sleep(self._program.pulls_for)  # a kubelet that pulls does not look up, not even from a deletion
        await self._pause(self._dice.uniform(*STARTING_SECONDS))
        if self._leaving():
            return
        container = self.latest["spec"]["containers"][0]
        await self._say("Pulled", f'Container image "{container["image"]}" already present on machine')
        await self._say("Created", "Container created")
        await self._say("Started", "Container started")
        await self._status(pod_status.running(self.latest, self._host, self._address, self._clock()))

    async def _work(self) -> None:
        """Run, and save now and then, until told to stop or done."""
        began = instant(pod_status.began(self.latest)) or self._clock()
        ends = began + timedelta(seconds=self._program.runs_for) if self._program.runs_for is not None else None
        while not self._leaving():
            now = self._clock()
            if ends is not None and now >= ends:
                await self._status(pod_status.ended(self.latest, self._all(0), self._host, now))
                return
            waits = [(ends - now).total_seconds()] if ends else []
            if self._program.saves_every is not None:
                notes = self.latest["metadata"].get("annotations") or {}
                due = (instant(notes.get(CHECKPOINT)) or began) + timedelta(seconds=self._program.saves_every)
                if now >= due:
                    await self._save()
                    continue
                waits.append((due - now).total_seconds())
            await self._pause(min(waits, default=3600.0))

    async def _save(self) -> None:
        body = {"metadata": {"annotations": {CHECKPOINT: stamp(self._clock())}}}
        self.latest = await self._client.do(Call("PATCH", pod_path(self.latest), body, MERGE))

    async def _stop(self) -> None:
        """SIGTERM, then wait for the end; a deadline that moves while we wait counts."""
        metadata = self.latest["metadata"]
        if not finished(self.latest):
            if pod_status.began(self.latest) is not None:
                told = self._told()
                await self._say("Killing", f"Stopping container {self.latest['spec']['containers'][0]['name']}")
                while (end := end_of(self.latest, self._program, told)).at > self._clock():
                    await self._pause((end.at - self._clock()).total_seconds())
                if self._program.saves_every is not None and not end.killed:
                    await self._save()
                await self._status(pod_status.ended(self.latest, end.codes, self._host, self._clock()))
            elif self.latest["status"].get("containerStatuses"):
                await self._status(pod_status.ended(self.latest, self._all(KILLED), self._host, self._clock()))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        await self._client.do(Call("DELETE", pod_path(self.latest), options))

    def _told(self) -> datetime:
        """When SIGTERM came: now, or earlier where a restart interrupted the wait."""
        metadata = self.latest["metadata"]
        deadline = instant(metadata["deletionTimestamp"]) or self._clock()
        asked = deadline - timedelta(seconds=metadata.get("deletionGracePeriodSeconds", 0))
        return min(self._clock(), max(asked, instant(metadata["creationTimestamp"]) or asked))


async def live(worker: PodWorker) -> None:
    """Run a worker; a pod that vanishes under it (404, 409) ends it quietly, an API that is away is tried again."""
    while True:
        try:
            await worker.run()
        except Refused as refused:
            if refused.status in (404, 409, 422):
                return
            await asyncio.sleep(1)
        except httpx.HTTPError:
            await asyncio.sleep(1)
        else:
            return
