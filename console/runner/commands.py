"""The runner's commands by name."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from console import env
from console.env import ROOT, state_dir
from console.runner import check, install
from console.runner.controlplane import build
from console.runner.errors import RunnerError
from console.runner.progress import step
from console.runner.reset import reset
from console.runner.up import VENV, up

CLIENTS = ROOT / ".venv-clients"
TESTING = ["requirements.txt", "requirements-test.txt"]


def _install(folder: Path, names: list[str]) -> None:
    with step("Python") as done:
        done.detail = install.make(folder)
    with step(f"Packages {folder.name}") as done:
        files = [ROOT / name for name in names]
        done.detail = install.ensure(folder, files, state_dir() / "log" / f"install{folder.name}.log")


def _clients() -> None:
    _install(CLIENTS, ["requirements-clients.txt"])


def _kubernetes() -> None:
    """Build what the tests need of a real Kubernetes, while somebody can see that it goes on."""
    if env.boolean("HALFTIDE_CONTROLPLANE", True):
        print("  Kubernetes", flush=True)
        build.programs(say=lambda text: print(f"    {text}", flush=True))


def _test() -> int:
    _install(VENV, TESTING)
    _clients()
    _kubernetes()
    return check.check(install.python_of(VENV))


def _contract() -> int:
    _install(VENV, TESTING)
    _clients()
    _kubernetes()
    return check.tests(install.python_of(VENV), [("contract", ["tests/contract"])], [])


def _controlplane() -> None:
    _install(VENV, ["requirements.txt"])
    os.chdir(ROOT)
    python = str(install.python_of(VENV))
    os.execv(python, [python, "-m", "console.runner.controlplane"])  # Ctrl-C is for it alone


def _bench() -> int:
    _install(VENV, TESTING)
    return subprocess.run([install.python_of(VENV), "-m", "tests.bench"], cwd=ROOT, check=False).returncode


def _kills() -> int:
    _install(VENV, TESTING)
    command: list[Path | str] = [install.python_of(VENV), "-m", "pytest", "-q", "tests/flows/test_kill_matrix.py"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "KILL_MATRIX": "full"}, check=False).returncode


COMMANDS: dict[str, Callable[[], int | None]] = {
    "up": up,
    "reset": reset,
    "install": lambda: _install(VENV, TESTING),
    "clients": _clients,
    "test": _test,
    "test-contract": _contract,
    "controlplane": _controlplane,
    "bench": _bench,
    "kills": _kills,
}


def run(arguments: list[str]) -> int:
    """Run the named command and return the exit code."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        raise RunnerError(f"Say one of {', '.join(COMMANDS)}.")
    return COMMANDS[arguments[0]]() or 0
