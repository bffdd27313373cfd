"""supervisord: its configuration, its start, and the few questions the runner asks it.

supervisord brings back what dies; the runner only watches and tells. Its configuration is generated from the process
table at each start and is nothing to edit.
"""

import http.client
import os
import shlex
import signal
import socket
import subprocess
import time
import xmlrpc.client
from dataclasses import dataclass
from pathlib import Path

from console.env import ROOT
from console.runner.child import LOCK, PARENT
from console.runner.errors import RunnerError
from console.runner.processes import STOP_SECONDS, Process

# Tries before a process that ends at once is given up. The pause grows by one second with each, so this is over an hour.
START_TRIES = 100


@dataclass(frozen=True)
class Status:
    """What supervisord says of one process."""

    name: str
    pid: int
    state: str


class Supervisor:
    """A running supervisord, spoken to over its socket in the private socket folder."""

    def __init__(self, python: Path, state: Path, sockets: Path) -> None:
        self.python = python
        self.state = state
        self.socket = sockets / "supervisor.sock"
        self.child: subprocess.Popen[bytes] | None = None

    def start(self, processes: list[Process], environment: dict[str, str], lock: int) -> None:
        """Start supervisord with `processes`, none of them started yet; it holds `lock` as long as it lives."""
        config = self.state / "run" / "supervisord.conf"
        config.write_text(render(self.python, self.state, self.socket, processes))
        self.socket.unlink(missing_ok=True)
        command = [str(self.python), "-m", "console.runner.child", "SIGTERM", "-",
                   "-m", "supervisor.supervisord", "-n", "-c", str(config)]  # fmt: skip
        with (self.state / "log" / "supervisord.out").open("wb") as out:
            self.child = subprocess.Popen(
                command, cwd=ROOT, env={**environment, PARENT: str(os.getpid()), LOCK: str(lock)},
                pass_fds=(lock,), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                # A session of its own: Ctrl-C is for the runner, which then stops everything in order.
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 15
        while not self._answers():
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise RunnerError(f"The supervisor did not start: see {self.state / 'log' / 'supervisord.out'}.")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            self._call("getState")
        except (OSError, http.client.HTTPException):
            return False
        return True

    def _call(self, method: str, *arguments: object) -> object:
        with xmlrpc.client.ServerProxy("http://supervisor", transport=_UnixTransport(self.socket)) as server:
            return getattr(server.supervisor, method)(*arguments)

    def begin(self, process: Process) -> None:
        """Start one process, without waiting for it."""
        self._call("startProcess", process.full_name, False)

    def status(self) -> list[Status]:
        """All processes as they are now."""
        rows = self._call("getAllProcessInfo")
        if not isinstance(rows, list):
            raise TypeError(f"supervisord answered {rows!r}")
        return [Status(row["name"], row["pid"], row["statename"]) for row in rows]

    def alive(self) -> bool:
        """Whether supervisord itself still runs."""
        return self.child is not None and self.child.poll() is None

    def stop(self) -> None:
        """Stop everything: the console's processes together, then PostgreSQL and Redis. Returns when all have ended."""
        if self.child is None or not self.alive():
            return
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(sum(STOP_SECONDS.values()) + 5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class _UnixTransport(xmlrpc.client.Transport):
    """XML-RPC over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def make_connection(self, _host: object) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(10)
        connection.sock.connect(str(self.path))
        return connection


def render(python: Path, state: Path, control: Path, processes: list[Process]) -> str:
    """supervisord's configuration for this process table."""
    root = "user=root\n" if os.geteuid() == 0 else ""  # said aloud, it does not warn about it
    head = f"""\
[supervisord]
nodaemon=true
silent=true
minfds=256
{root}logfile={_escape(state / "log" / "supervisord.log")}
pidfile={_escape(state / "run" / "supervisord.pid")}
childlogdir={_escape(state / "log")}

[unix_http_server]
file={_escape(control)}
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
    groups = [
        f"[group:{group}]\nprograms={','.join(p.name for p in processes if p.group == group)}\npriority={priority}\n"
        for priority, group in enumerate(STOP_SECONDS, start=1)
        if any(p.group == group for p in processes)
    ]
    return "\n".join([head, *groups, *(_program(python, state, process) for process in processes)])


def _program(python: Path, state: Path, process: Process) -> str:
    command = [str(python), "-m", "console.runner.child", process.death, process.user or "-", *process.command]
    environment = ",".join(f'{name}="{_escape(value)}"' for name, value in process.environment.items())
    return f"""\
[program:{process.name}]
command={_escape(shlex.join(command))}
directory={_escape(ROOT)}
environment={environment}
autostart=false
autorestart=true
startsecs=1
startretries={START_TRIES}
stopsignal={process.stop}
stopwaitsecs={STOP_SECONDS[process.group]}
killasgroup=true
redirect_stderr=true
stdout_logfile={_escape(state / "log" / f"{process.name}.log")}
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=1
"""


def _escape(value: object) -> str:
    return str(value).replace("%", "%%")
