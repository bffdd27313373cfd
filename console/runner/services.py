"""PostgreSQL and Redis for as long as a `with` block lasts: what the tests run on when nobody brought servers."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from console.env import ROOT
from console.runner import install, postgres, redis
from console.runner.child import PARENT
from console.runner.processes import Process, postgres_process, redis_process
from console.runner.state import open_state, socket_dir

STOP_SECONDS = 10.0


@contextmanager
def servers(state: Path, python: Path, database: bool = True, queue: bool = True) -> Iterator[dict[str, str]]:
    """Start the servers that are wanted with their data in `state`; yields DATABASE_URL and REDIS_URL of those."""
    open_state(state)
    packages = install.packages_of(python.parent.parent)
    with ExitStack() as stack:
        addresses = {}
        owner = os.geteuid()
        if database:
            place = postgres.find_place(state, packages)
            stack.callback(shutil.rmtree, postgres.system_folder(state), ignore_errors=True)
            postgres.prepare(place)
            owner = place.uid
        sockets = socket_dir(state, owner)
        stack.callback(shutil.rmtree, sockets, ignore_errors=True)
        if database:
            stack.enter_context(_running(python, postgres_process(place, sockets), state))
            addresses["DATABASE_URL"] = postgres.address(sockets, "halftide")
            command = [str(python), "-m", "console.runner.databases", addresses["DATABASE_URL"]]
            subprocess.run(command, cwd=ROOT, check=True)
        if queue:
            data = state / "redis"
            data.mkdir(exist_ok=True, mode=0o700)
            stack.enter_context(_running(python, redis_process(packages, data, sockets), state))
            addresses["REDIS_URL"] = redis.address(sockets)
        yield addresses


@contextmanager
def _running(python: Path, process: Process, state: Path) -> Iterator[None]:
    command = [str(python), "-m", "console.runner.child", process.death, process.user or "-", *process.command]
    with (state / "log" / f"{process.name}.log").open("ab") as log:
        child = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, PARENT: str(os.getpid())}, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        child.send_signal(signal.Signals[f"SIG{process.stop}"])
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
