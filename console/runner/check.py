"""`make test`: lint, types, import rules, then every test; each with a heading and its time.

All of them run even if an early one fails, so that one run shows all there is to mend. pytest comes last, in three runs: what
only computes and asks PostgreSQL, and what talks to a Kubernetes, each by two workers; what races a real clock alone after them.
What did not run, for want of a real Kubernetes or of machines, is said in the last lines.
"""

import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from console import env
from console.env import ROOT
from console.runner import left_out

# django-stubs reads the settings to know the models; it connects to nothing.
PLACEHOLDERS = {
    "DATABASE_URL": "postgresql://types@localhost/types",
    "REDIS_URL": "redis://localhost",
    "HALFTIDE_SECRET_KEY": "types",
}

# What takes minutes: property tests as long as in CI, and the kill matrix. pytest by itself takes fewer examples, and no matrix.
LONG_RUNS = {"HYPOTHESIS_PROFILE": "ci", "KILL_MATRIX": "short"}

STEPS = (
    ("Lint (ruff)", ["-m", "ruff", "check", "."]),
    ("Types (mypy, strict)", ["-m", "mypy"]),
    ("Import rules (import-linter)", ["-c", "from importlinter.cli import lint_imports_command as run; run()"]),
)

# Folders whose tests want a Kubernetes, real or simulated, and mostly wait for it; and those that race a real clock.
KUBERNETES = [f"tests/{name}" for name in ("controlplane", "contract", "kube", "simulator", "real", "machines")]
ALONE = [f"tests/{name}" for name in ("feed", "flows", "runner")]
TWO = ["-n", "2", "--dist", "loadfile"]

RUNS = (
    ("rooms", [*TWO, *(f"--ignore={folder}" for folder in (*KUBERNETES, *ALONE))]),
    ("Kubernetes", [*TWO, *KUBERNETES]),
    ("whole installations", ALONE),
)


def check(python: Path) -> int:
    """Run everything and return 0 only if all of it is well."""
    failed = [heading for heading, arguments in STEPS if _run(heading, [python, *arguments]) != 0]
    return tests(python, RUNS, failed)


def tests(python: Path, runs: Iterable[tuple[str, list[str]]], failed: list[str]) -> int:
    """Run these tests; 0 if they and what went before are well. What did not run is said last, aloud."""
    with left_out.added_up() as file:
        for name, arguments in runs:
            heading = f"Tests, {name} (pytest)" + (f"; already failed: {', '.join(failed)}" if failed else "")
            command: list[Path | str] = [python, "-m", "pytest", "-q", "--durations=12", *arguments]
            if _run(heading, command, LONG_RUNS | {left_out.VARIABLE: str(file)}) != 0:
                failed = [*failed, f"tests, {name}"]
        print(f"\n== {'Failed: ' + ', '.join(failed) if failed else 'All is well'}", flush=True)
        for line in left_out.lines(file, off=not env.boolean("HALFTIDE_CONTROLPLANE", True)):
            print(line, flush=True)
    return 1 if failed else 0


def _run(heading: str, command: list[Path | str], environment: dict[str, str] = PLACEHOLDERS) -> int:
    print(f"\n== {heading}", flush=True)
    began = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, check=False, env={**environment, **os.environ}).returncode
    print(f"-- {'ok' if code == 0 else 'FAILED'}, {time.monotonic() - began:.1f} s", flush=True)
    return code
