"""Real control planes, one a cluster, as children of this process: `make up KUBERNETES=real`.

A program beside us rather than an import: rooms on one line never meet, and the runner's command line is a door like any other.
They end with this process, however it ends, and their state is found again by the next one.
"""

import asyncio
import logging
import os
import shutil
import sys
from pathlib import Path

from console.env import ROOT

log = logging.getLogger(__name__)
AGAIN_SECONDS = 2.0
STOP_SECONDS = 12.0
COMMAND = ("-m", "console.runner.child", "SIGKILL", "-", "-m", "console.runner.controlplane")


class NoPlane(Exception):
    """A control plane could not be made; its text says where to look."""


class Planes:
    """The control planes below one folder, by cluster id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._prepared: dict[str, asyncio.Event] = {}

    def has(self, key: str) -> bool:
        """Whether this cluster's control plane is one of ours."""
        return (self._folder / key).exists()

    async def start(self, key: str) -> str:
        """Start one, and go on starting it when it ends. Returns its kubeconfig while it is still starting. Raises NoPlane."""
        home = self._folder / key
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        prepared = self._prepared[key] = asyncio.Event()
        task = self._tasks[key] = asyncio.create_task(self._keep(home, prepared))
        waiting = asyncio.ensure_future(prepared.wait())
        await asyncio.wait({task, waiting}, timeout=STOP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not prepared.is_set():
            task.cancel()
            raise NoPlane(f"The control plane did not start: see {home}.log")
        return (home / "admin.kubeconfig").read_text()

    async def stop(self, key: str) -> None:
        """End one; its state stays."""
        if task := self._tasks.pop(key, None):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def remove(self, key: str) -> None:
        """End one and forget its state."""
        if self.has(key):
            await self.stop(key)
            await asyncio.to_thread(shutil.rmtree, self._folder / key, ignore_errors=True)

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(self.stop(key) for key in list(self._tasks)))

    async def _keep(self, home: Path, prepared: asyncio.Event) -> None:
        while True:
            code = await self._run(home, prepared)
            log.warning("the control plane in %s ended with %s: see %s.log", home, code, home)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _run(self, home: Path, prepared: asyncio.Event) -> int:
        environment = {**os.environ, "HALFTIDE_PARENT_PID": str(os.getpid())}
        with home.with_suffix(".log").open("ab") as said:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *COMMAND, str(home), cwd=ROOT, env=environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=said, start_new_session=True,
            )  # fmt: skip
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                if line == b"prepared\n":
                    prepared.set()
            return await process.wait()
        finally:
            if process.returncode is None:
                await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
