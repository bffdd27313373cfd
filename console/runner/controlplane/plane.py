"""One control plane, started and stopped by pid; its programs die with whoever started it, however that ended.

Ready in about 9 s from nothing and 4 s on old state; about 500 MiB while idle.
"""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import yaml

from console.env import ROOT
from console.runner.child import PARENT
from console.runner.controlplane import certificates, files, flags
from console.runner.errors import RunnerError

READY_SECONDS = 120.0

# The API server waits up to a minute for open watches; nobody who stops it wants to.
STOP_SECONDS = 5.0

# A free port can be taken by another program before ours listens on it.
TRIES = 3

# What the controllers make last: with it, pods can be created.
LAST_MADE = "/api/v1/namespaces/default/serviceaccounts/default"


@dataclass(frozen=True)
class Running:
    """One of its programs."""

    name: str
    process: subprocess.Popen[bytes]


class ControlPlane:
    """A control plane whose keys, store and logs are in `home`. `with ControlPlane(…) as plane:` runs it.

    `programs` is the folder of `build.programs`. The port is the given one, else that of an earlier start in `home`, so that
    kubeconfigs handed out then still hold, else a free one. With `heartbeats` a node that is silent for 40 s turns NotReady, as
    anywhere; without, nodes need no kubelet. It has to be started by a thread that lives on: the kernel ends its programs with
    that thread.
    """

    def __init__(self, home: Path, programs: Path, *, heartbeats: bool = True, port: int | None = None) -> None:
        self.home = home.absolute()
        self.programs = programs
        self.heartbeats = heartbeats
        self.port = port or files.port(self.home) or 0
        self._fixed = self.port != 0
        self._running: list[Running] = []

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return files.file_of(self.home, "admin")

    @property
    def authority(self) -> Path:
        """The certificate to trust."""
        return self.home / "ca.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON object a line, one line an answered request."""
        return self.home / "audit.log"

    def __enter__(self) -> "ControlPlane":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def prepare(self) -> None:
        """Make keys, tokens and kubeconfigs, so that they can be handed out while it starts."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.authority.exists():
            certificates.make(self.home)
        self.port = self.port or _free_port()
        files.write(self.home, self.port)

    def start(self) -> None:
        """Returns when pods can be created. Raises RunnerError, and then nothing of it runs."""
        for attempt in range(1, TRIES + 1):
            self.prepare()
            try:
                self._start(_free_port())
                return
            except BaseException as error:
                self.stop()
                if attempt == TRIES or not isinstance(error, RunnerError):
                    raise
                if not self._fixed:
                    self.port = 0

    def _start(self, store: int) -> None:
        self._run("etcd", flags.etcd(store))
        self._run("kube-apiserver", flags.apiserver(self.port, store))
        self._wait_for("/readyz")
        self._run("kube-scheduler", flags.scheduler())
        self._run("kube-controller-manager", flags.controllers(self.heartbeats))
        self._wait_for(LAST_MADE)

    def _run(self, name: str, arguments: list[str]) -> None:
        # SIGKILL, since nobody would be left to bound the API server's wait for its watches.
        command = [sys.executable, "-m", "console.runner.child", "SIGKILL", "-", str(self.programs / name), *arguments]
        environment = {**os.environ, PARENT: str(os.getpid()), "PYTHONPATH": str(ROOT)}
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.home, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                # A session of its own: Ctrl-C is for the one who started it, who then stops all in order.
                start_new_session=True,
            )  # fmt: skip
        self._running.append(Running(name, process))

    def _wait_for(self, path: str) -> None:
        context = ssl.create_default_context(cafile=str(self.authority))
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        deadline = time.monotonic() + READY_SECONDS
        while True:
            self.check()
            try:
                with opener.open(request, timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                if time.monotonic() > deadline:
                    raise RunnerError(f"The API server does not answer {path}: see {self.home}/*.log.") from None
                time.sleep(0.1)

    @property
    def token(self) -> str:
        """The admin's."""
        return str(yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]["token"])

    def check(self) -> None:
        """Raise RunnerError when one of its programs has ended."""
        for running in self._running:
            if running.process.poll() is not None:
                log = self.home / f"{running.name}.log"
                said = (log.read_text(errors="replace").strip().splitlines() or [""])[-1]
                raise RunnerError(f"{running.name} ended with {running.process.returncode}: {said} (see {log})")

    def pid(self, name: str) -> int:
        """The pid of one of its programs, for whoever wants to stop or freeze it."""
        return next(running.process.pid for running in self._running if running.name == name)

    def stop(self) -> None:
        """End its programs in the opposite order, the store last."""
        while self._running:
            process = self._running.pop().process
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
