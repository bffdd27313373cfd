"""`make up` on this checkout: it starts, brings back what is killed, recovers from a kill of everything, and stops clean."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from console.env import ROOT, read_env_file

# Generous: what a start takes is measured elsewhere, on a machine with nothing else to do.
START_SECONDS = 90
STOP_SECONDS = 20


@dataclass
class Installation:
    """A `make up` with a state folder and ports of its own."""

    environment: dict[str, str]
    state: Path
    address: str
    runner: subprocess.Popen[str] | None = None

    def up(self) -> None:
        command = [sys.executable, "-m", "console.runner", "up"]
        self.runner = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.runner.stdout is not None
        said = []
        for line in self.runner.stdout:
            said.append(line)
            if "Ctrl-C stops everything" in line:
                return
        raise AssertionError("".join(said))

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

    def page(self) -> int:
        try:
            with urllib.request.urlopen(self.address, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def kill_all(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def within(seconds: float, true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return true()


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    port, sim_port, idp_port = free_ports(3)
    state = Path(f"/tmp/halftide-test-{os.getpid()}-up")
    own = {"HALFTIDE_STATE": str(state), "HALFTIDE_PORT": str(port),
           "HALFTIDE_SIM_PORT": str(sim_port), "HALFTIDE_IDP_PORT": str(idp_port)}  # fmt: skip
    # Nothing of the test run's own servers and settings: this installation brings its own.
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("HALFTIDE_", "DJANGO_"))}
    bare.pop("DATABASE_URL", None)
    bare.pop("REDIS_URL", None)
    here = Installation({**bare, **own}, state, f"http://127.0.0.1:{port}")
    try:
        here.up()
        yield here
    finally:
        here.kill_all()
        subprocess.run([sys.executable, "-m", "console.runner", "reset"], cwd=ROOT, env=here.environment, check=True)


def test_the_page_answers(installation: Installation) -> None:
    assert installation.page() < 500


def test_a_command_beside_it_finds_database_and_queue_by_itself(installation: Installation) -> None:
    bare = {name: value for name, value in installation.environment.items() if not name.endswith("_PORT")}
    look = "from django.conf import settings; print(settings.DATABASES['default']['HOST'], settings.REDIS_URL)"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", look],
        cwd=ROOT, env=bare, capture_output=True, text=True, check=True,
    )  # fmt: skip
    runtime = read_env_file(installation.state / "runtime.env")
    host, redis = done.stdout.split()
    assert host in runtime["DATABASE_URL"]
    assert redis == runtime["REDIS_URL"]


@pytest.mark.parametrize("part", ["console.asgi", "-n urgent", "beat", "redis-server", "bin/postgres"])
def test_a_killed_process_is_back_within_two_seconds(installation: Installation, part: str) -> None:
    killed = installation.pid(part)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert within(2, lambda: installation.pid(part) not in (None, killed))


def test_the_page_answers_again_after_all_of_them_were_killed_one_by_one(installation: Installation) -> None:
    def answers() -> bool:
        try:
            return installation.page() < 500
        except OSError:
            return False

    assert within(30, answers)


def test_a_killed_runner_takes_everything_with_it_and_the_next_start_finds_its_state(installation: Installation) -> None:
    assert installation.runner is not None
    installation.runner.kill()
    assert within(STOP_SECONDS, lambda: not installation.processes()), installation.processes()
    secrets = (installation.state / "secrets.env").read_text()
    installation.up()
    assert installation.page() < 500
    assert (installation.state / "secrets.env").read_text() == secrets


def test_after_a_kill_of_everything_at_once_the_next_start_recovers(installation: Installation) -> None:
    installation.kill_all()
    assert within(10, lambda: not installation.processes()), installation.processes()
    installation.up()
    assert installation.page() < 500


def test_a_second_start_beside_the_first_is_refused(installation: Installation) -> None:
    command = [sys.executable, "-m", "console.runner", "up"]
    done = subprocess.run(command, cwd=ROOT, env=installation.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "already (pid" in done.stderr
    assert installation.page() < 500


def test_ctrl_c_stops_all_of_it_cleanly(installation: Installation) -> None:
    assert installation.runner is not None
    installation.runner.send_signal(signal.SIGINT)
    assert installation.runner.wait(STOP_SECONDS + 5) == 0
    assert installation.processes() == {}
    assert not (installation.state / "runtime.env").exists()
    # PostgreSQL removes its pid file only when it ended in order.
    assert not (installation.state / "postgres" / "postmaster.pid").exists()
