"""A whole `make up` of a test's own: state folder, ports, processes that can be killed, and ways to ask what is true."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row

from console.env import ROOT, read_env_file

STOP_SECONDS = 20


def within(seconds: float, true: Callable[[], Any], every: float = 0.05) -> bool:
    """Whether it comes true in time. Bounds are generous: how long things take is measured elsewhere."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(every)
    return bool(true())


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


@dataclass
class Installation:
    """A `make up` with a state folder and ports of its own."""

    environment: dict[str, str]
    state: Path
    address: str
    simulator: str
    runner: subprocess.Popen[str] | None = None
    said: list[str] = field(default_factory=list)

    def up(self) -> None:
        command = [sys.executable, "-m", "console.runner", "up"]
        self.runner = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.runner.stdout is not None
        self.said = []
        for line in self.runner.stdout:
            self.said.append(line)
            if "Ctrl-C stops everything" in line:
                return
        raise AssertionError("".join(self.said))

    def reset(self) -> None:
        self.kill_all()
        assert within(10, lambda: not self.processes())
        subprocess.run([sys.executable, "-m", "console.runner", "reset"], cwd=ROOT, env=self.environment, check=True)

    def processes(self) -> dict[int, str]:
        """All that run for this state folder, by pid: each either carries its name in the environment or stands in it."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                known = f"HALFTIDE_STATE={self.state}\0".encode() in (process / "environ").read_bytes()
                if known or (process / "cwd").readlink().is_relative_to(self.state):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def pid(self, part: str) -> int | None:
        """The oldest process with `part` in its command line (a worker, not one of its pool)."""
        return next((pid for pid, command in sorted(self.processes().items()) if part in command), None)

    def signal_all(self, part: str, number: signal.Signals) -> None:
        """To every process with `part` in its command line, a worker's children included."""
        for pid, command in self.processes().items():
            if part in command:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue

    def kill_all(self) -> None:
        self.signal_all("", signal.SIGKILL)

    def page(self) -> int:
        try:
            with urllib.request.urlopen(self.address, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def runtime(self) -> dict[str, str]:
        return read_env_file(self.state / "runtime.env")

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """What the database says, asked beside the console and not through its code."""
        with psycopg.connect(self.runtime()["DATABASE_URL"], row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()

    def control(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The simulator's control API."""
        token = (self.state / "control-token").read_text().strip()
        answer = httpx.request(
            method, f"{self.simulator}/control/{path}", json=body, headers={"Authorization": f"Bearer {token}"}, timeout=30
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def api(
        self, method: str, path: str, body: dict[str, Any] | None = None, key: str = "ht_demo_operator_key"
    ) -> httpx.Response:
        return httpx.request(method, self.address + path, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30)


def fresh(name: str, **settings: str) -> Installation:
    """Not started yet. Nothing of the test run's own servers and settings reaches it: it brings its own."""
    port, sim_port, idp_port = free_ports(3)
    state = Path(f"/tmp/halftide-test-{os.getpid()}-{name}")
    own = {
        "HALFTIDE_STATE": str(state),
        "HALFTIDE_PORT": str(port),
        "HALFTIDE_SIM_PORT": str(sim_port),
        "HALFTIDE_IDP_PORT": str(idp_port),
        **settings,
    }
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("HALFTIDE_", "DJANGO_"))}
    bare.pop("DATABASE_URL", None)
    bare.pop("REDIS_URL", None)
    return Installation({**bare, **own}, state, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{sim_port}")
