"""`make up`: from nothing to a page that answers, one line a step, until Ctrl-C.

The order is what makes it quick: the page's process loads while its tables are made, and listens once they stand
(`console.web`); nobody needs the workers before there is a page. Everything that can be refused is refused before the first
process runs.
"""

import http.client
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from console.env import ROOT, state_dir
from console.runner import install, interrupts, plan, postgres, redis
from console.runner.controlplane import build
from console.runner.errors import RunnerError
from console.runner.processes import Process, console_processes, postgres_process, redis_process
from console.runner.progress import step
from console.runner.state import demo_secrets, open_state, socket_dir, take_lock, write_private
from console.runner.supervise import Status, Supervisor

VENV = ROOT / ".venv"
PAGE_SECONDS = 60.0

# What ends a `kill -9` in a line on the terminal rather than in silence; supervisord itself acts within one second.
WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Servers:
    """The database and the queue of this start, with the processes that serve them (none when a person brought them)."""

    database: str
    idp_database: str
    redis: str
    processes: tuple[Process, ...]


def up() -> None:
    """Run until told to stop."""
    began = time.monotonic()
    state = state_dir()
    open_state(state)
    lock = take_lock(state)
    (state / "runtime.env").unlink(missing_ok=True)
    chosen = plan.read_plan(state)
    plan.require_ports(chosen)
    print("Halftide", flush=True)
    with step("Python") as done:
        done.detail = install.make(VENV)
    with step("Packages") as done:
        done.detail = install.ensure(VENV, [ROOT / "requirements.txt"], state / "log" / "install.log")
    if chosen.real:
        with step("Kubernetes") as done:
            folder = build.programs((*build.SERVERS, "kubectl"), say=lambda text: print(f"\n    {text}", end=" ", flush=True))
            done.detail = f"{build.VERSION}, programs in {folder}"
    with step("PostgreSQL, Redis") as done:
        servers, sockets, done.detail = prepare_servers(chosen)
    environment = {**os.environ, **plan.runtime(
        chosen, servers.database, servers.idp_database, servers.redis, demo_secrets(state)
    ), "DJANGO_SETTINGS_MODULE": "console.settings", "PYTHONUNBUFFERED": "1"}  # fmt: skip
    supervisor = Supervisor(install.python_of(VENV), state, sockets)
    try:
        start(supervisor, servers, chosen, environment, lock)
        print(f"  {'ready':<18} after {time.monotonic() - began:.1f} s\n\n{greeting(chosen)}", flush=True)
        watch(supervisor)
    finally:
        (state / "runtime.env").unlink(missing_ok=True)
        stop(supervisor)


def prepare_servers(chosen: plan.Plan) -> tuple[Servers, Path, str]:
    """Make ready what PostgreSQL and Redis need; nothing is started yet."""
    packages = install.packages_of(VENV)
    processes: list[Process] = []
    said = []
    owner = os.geteuid()
    if chosen.database_url is None:
        place = postgres.find_place(chosen.state, packages)
        postgres.prepare(place)
        owner = place.uid
        said.append(f"data in {place.data}" + (f" as user {place.user}" if place.user else ""))
    sockets = socket_dir(chosen.state, owner)
    if chosen.database_url is None:
        postgres.clear_socket(sockets)
        processes.append(postgres_process(place, sockets))
    if chosen.redis_url is None:
        data = chosen.state / "redis"
        data.mkdir(exist_ok=True, mode=0o700)
        processes.append(redis_process(packages, data, sockets))
    database = chosen.database_url or postgres.address(sockets, "halftide")
    servers = Servers(database, beside(database), chosen.redis_url or redis.address(sockets), tuple(processes))
    return servers, sockets, ", ".join(said) or "your own"


def beside(database: str) -> str:
    """The identity provider's database: it has people and sessions of its own, so it shares the server, not the tables."""
    parts = urlsplit(database)
    return urlunsplit(parts._replace(path=f"{parts.path}_idp"))


def start(supervisor: Supervisor, servers: Servers, chosen: plan.Plan, environment: dict[str, str], lock: int) -> None:
    """Start all processes in the order that makes the page answer soonest."""
    rest = {p.name: p for p in console_processes(chosen.state, chosen.port, chosen.idp_port)}
    with step("Supervisor"):
        supervisor.start([*servers.processes, *rest.values()], environment, lock)
        for process in (*servers.processes, rest.pop("web")):
            supervisor.begin(process)
    with step("Databases"):
        begin(environment, ["-m", "console.runner.databases", servers.database, servers.idp_database]).end()
    idp = {**environment, "DJANGO_SETTINGS_MODULE": "console.idp.settings"}
    with step("Tables, demo"):
        # One process each for tables and what is in them: starting another costs as much as either.
        demo = begin(environment, ["-m", "django", "demo", "--migrate"])
        seed = begin(idp, ["-m", "django", "seed_idp", "--migrate"])
        demo.end()
        seed.end()
    write_private(chosen.state / "runtime.env", public(environment))
    for name in ("idp", "simulator"):  # the provider reads its key as it starts, so it waits for the seed
        supervisor.begin(rest.pop(name))
    with step("Page"):
        await_answer(supervisor, chosen.address, "The page", chosen.state / "log" / "web.log")
    with step("Sign-in"):
        provider = f"http://127.0.0.1:{chosen.idp_port}"
        await_answer(supervisor, provider, "The identity provider", chosen.state / "log" / "idp.log")
    for process in rest.values():
        supervisor.begin(process)


def public(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that is ours, for `runtime.env`."""
    return {name: value for name, value in environment.items() if name.startswith(plan.OWN_PREFIX) or name in plan.ADDRESSES}


@dataclass(frozen=True)
class Command:
    """A command of the virtual environment that runs beside us."""

    arguments: list[str]
    process: subprocess.Popen[str]

    def end(self) -> None:
        """Wait for its end; one that failed stops the start, with what it said last."""
        try:
            said, _ = self.process.communicate()
        except BaseException:
            self.process.kill()
            raise
        if self.process.returncode != 0:
            raise RunnerError(f"`{' '.join(self.arguments)}` failed:\n{said.strip()[-2000:]}")


def begin(environment: Mapping[str, str], arguments: list[str]) -> Command:
    """Start one command of the virtual environment."""
    process = subprocess.Popen(
        [install.python_of(VENV), *arguments], cwd=ROOT, env=dict(environment),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return Command(arguments, process)


def await_answer(supervisor: Supervisor, address: str, what: str, log: Path) -> None:
    """Wait until an address answers; anything but a server error is an answer."""
    deadline = time.monotonic() + PAGE_SECONDS
    while time.monotonic() < deadline and supervisor.alive():
        try:
            with urllib.request.urlopen(address, timeout=PAGE_SECONDS):
                return
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return
            raise RunnerError(f"{what} answers with an error ({error.code}): see {log}.") from None
        except OSError:
            time.sleep(0.05)
    raise RunnerError(f"{what} does not answer: see {log}.")


def watch(supervisor: Supervisor) -> None:
    """Tell what dies and what comes back, until told to stop; supervisord does the bringing back."""
    before = {status.name: status for status in supervisor.status()}
    while supervisor.alive():
        time.sleep(WATCH_SECONDS)
        interrupts.heed()
        with suppress(OSError, http.client.HTTPException):
            now = {status.name: status for status in supervisor.status()}
            for line in changes(before, now):
                print(f"  {time.strftime('%H:%M:%S')}  {line}", flush=True)
            before |= settled(now)
    raise RunnerError("The supervisor has ended by itself, and everything under it: run `make up` again.")


def settled(now: Mapping[str, Status]) -> dict[str, Status]:
    """What the next look is compared with. A process that is starting is back only when it has stayed for a second."""
    return {name: status for name, status in now.items() if status.state != "STARTING"}


def changes(before: Mapping[str, Status], now: Mapping[str, Status]) -> list[str]:
    """What a person would want to read of two looks at the processes."""
    lines = []
    for name, status in now.items():
        last = before.get(name, status)
        if status.pid != last.pid and status.state == "RUNNING":
            lines.append(f"{name} is back (pid {status.pid})")
        elif status.state != last.state and status.state in ("BACKOFF", "EXITED", "FATAL"):
            lines.append(f"{name} ended: see its log")
    return lines


def stop(supervisor: Supervisor) -> None:
    """Stop everything. A second Ctrl-C must not leave half of it running, so it is not heard any more."""
    interrupts.ignore()
    if supervisor.alive():
        with step("Stopping"):
            supervisor.stop()


def greeting(chosen: plan.Plan) -> str:
    """What a person needs first."""
    return f"""\
  {chosen.address}

  people    ada (admin), olu (operator), vic (viewer), fay (no group); password: demo
  API keys  ht_demo_operator_key, ht_demo_admin_key
  kubectl   export KUBECONFIG={chosen.state / "kubeconfig"}   (one context a cluster)
  logs      {chosen.state / "log"}

  Ctrl-C stops everything; `make up` finds its state again; `make reset` forgets it.
"""
