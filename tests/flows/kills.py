"""What the kill matrix kills, and the orchestrator that a second worker and a second beat need."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import redis

from console.env import ROOT
from console.runner.child import PARENT
from console.runner.processes import Process, console_processes
from tests.installation import Installation

READY = b" ready."
AGAIN = 0.5  # seconds until the orchestrator looks whether its processes still live


@dataclass(frozen=True)
class Victim:
    """`hit` sends the signal; `back` says whether it serves again, and by other processes than those in the given set.

    A worker serves from when each of its `logs` has said so since the kill. SIGKILL is a death; anything else is the restart
    that an orchestrator asks for, in which a process may still do something, and may do it wrong.
    """

    name: str
    part: str
    hit: Callable[[Installation, str, signal.Signals], set[int]]
    back: Callable[[Installation, str, set[int]], bool]
    logs: tuple[str, ...] = ()
    by: signal.Signals = signal.SIGKILL
    bystander: bool = False  # no drain depends on it

    def sizes(self, here: Installation) -> dict[Path, int]:
        return {path: path.stat().st_size for path in (here.state / "log" / name for name in self.logs)}

    def kill(self, here: Installation) -> set[int]:
        return self.hit(here, self.part, self.by)

    def serves(self, here: Installation, killed: set[int], sizes: dict[Path, int]) -> bool:
        ready = all(READY in path.read_bytes()[size:] for path, size in sizes.items())
        return ready and self.back(here, self.part, killed)


def pids(here: Installation, part: str) -> set[int]:
    return {pid for pid, command in here.processes().items() if part in command}


def children(here: Installation, part: str) -> set[int]:
    """Of a worker's processes those that work: the ones whose parent is one too."""
    family = pids(here, part)
    return {pid for pid in family if _parent(pid) in family}


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _send(those: set[int], by: signal.Signals) -> set[int]:
    for pid in those:
        try:
            os.kill(pid, by)
        except ProcessLookupError:
            continue
    return those


def everything(here: Installation, part: str, by: signal.Signals) -> set[int]:
    return _send(pids(here, part), by)


def only_the_children(here: Installation, part: str, by: signal.Signals) -> set[int]:
    return _send(children(here, part), by)


def only_the_parents(here: Installation, part: str, by: signal.Signals) -> set[int]:
    """Of a worker asked to end: it ends its children itself, and all of them must be others afterwards."""
    family = pids(here, part)
    _send(family - children(here, part), by)
    return family


def the_first(here: Installation, part: str, by: signal.Signals) -> set[int]:
    """PostgreSQL's own processes end with their first, and name themselves otherwise."""
    return _send({pid} if (pid := here.pid(part)) else set(), by)


def others_run(here: Installation, part: str, killed: set[int]) -> bool:
    now = pids(here, part)
    return bool(now) and not now & killed


def other_children_run(here: Installation, part: str, killed: set[int]) -> bool:
    now = children(here, part)
    return len(now) >= len(killed) and not now & killed


def page_answers(here: Installation, part: str, killed: set[int]) -> bool:
    try:
        return others_run(here, part, killed) and here.page() < 500
    except OSError:
        return False


def simulator_answers(here: Installation, part: str, killed: set[int]) -> bool:
    try:
        return others_run(here, part, killed) and bool(here.control("GET", "pools"))
    except httpx.HTTPError:
        return False


def redis_answers(here: Installation, part: str, killed: set[int]) -> bool:
    try:
        with redis.Redis.from_url(here.runtime()["REDIS_URL"]) as client:
            return others_run(here, part, killed) and bool(client.ping())
    except redis.RedisError:
        return False


def database_answers(here: Installation, part: str, killed: set[int]) -> bool:
    try:
        return here.pid(part) not in killed and bool(here.rows("SELECT 1 AS one"))
    except psycopg.OperationalError:
        return False


URGENT = ("worker-urgent.log", "worker-urgent-2.log")
# Bystanders are killed one after another while the same states are held; each of the others has a wave of its own.
DEATHS = (
    (Victim("worker-urgent (both)", "-n urgent", everything, others_run, URGENT),),
    (Victim("worker-urgent's children", "-n urgent", only_the_children, other_children_run),),
    (Victim("watch", "-m manage watch", everything, others_run),),
    (Victim("simulator", "-m console.simulator", everything, simulator_answers),),
    (Victim("Redis", "redis-server", everything, redis_answers),),
    (Victim("PostgreSQL", "bin/postgres", the_first, database_answers),),
    # Where a restart differs most from a death: running drains are cut off by the worker itself, and sessions by the server.
    (Victim("worker-urgent (both), restarted", "-n urgent", only_the_parents, others_run, URGENT, signal.SIGTERM),),
    (Victim("PostgreSQL, restarted", "bin/postgres", the_first, database_answers, by=signal.SIGINT),),
    (
        Victim("web", "console.web", everything, page_answers, bystander=True),
        Victim("worker", "-n default", everything, others_run, ("worker.log",), bystander=True),
        Victim("beat (both)", "celery -A console.beat", everything, others_run, bystander=True),
    ),
)
MORE_RESTARTS = (
    (
        Victim("web, restarted", "console.web", everything, page_answers, by=signal.SIGTERM, bystander=True),
        Victim(
            "worker, restarted", "-n default", only_the_parents, others_run, ("worker.log",), by=signal.SIGTERM, bystander=True
        ),
        Victim("beat (both), restarted", "celery -A console.beat", everything, others_run, by=signal.SIGTERM, bystander=True),
    ),
    (Victim("watch, restarted", "-m manage watch", everything, others_run, by=signal.SIGTERM),),
    (Victim("simulator, restarted", "-m console.simulator", everything, simulator_answers, by=signal.SIGTERM),),
    (Victim("Redis, restarted", "redis-server", everything, redis_answers, by=signal.SIGTERM),),
)


class Seconds:
    """A second urgent worker and a second beat beside those of the runner, brought back when they die, as replicas would be."""

    def __init__(self, here: Installation) -> None:
        self._here = here
        self._stop = threading.Event()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._thread = threading.Thread(target=self._keep)  # the processes die with this thread, not only with ours

    def __enter__(self) -> "Seconds":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for process in self._running.values():
            process.kill()
            process.wait()

    def _keep(self) -> None:
        known = {process.name: process for process in console_processes(self._here.state, 0, 0)}
        while not self._stop.is_set():
            for name in ("worker-urgent", "beat"):
                if name not in self._running or self._running[name].poll() is not None:
                    self._running[name] = self._start(known[name])
            self._stop.wait(AGAIN)

    def _start(self, process: Process) -> subprocess.Popen[bytes]:
        renamed = [part.replace("urgent@", "urgent2@").replace("/run/beat", "/run/beat2") for part in process.command]
        command = [sys.executable, "-m", "console.runner.child", process.death, "-", *renamed]
        settings = {"DJANGO_SETTINGS_MODULE": "console.settings", PARENT: str(os.getpid())}
        environment = {**self._here.environment, **self._here.runtime(), **settings, **process.environment}
        with (self._here.state / "log" / f"{process.name}-2.log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
