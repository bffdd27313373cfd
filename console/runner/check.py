"""`make test`: lint, types, import rules, then every test; each with a heading and its time.

All of them run even if an early one fails, so that one run shows all there is to mend. pytest comes last, in three runs: what
only computes and asks PostgreSQL, and what talks to a Kubernetes, each by two workers; what races a real clock alone after them.
"""

import os
import subprocess
import time
from pathlib import Path

from console import env
from console.env import ROOT

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
    for name, arguments in RUNS:
        heading = f"Tests, {name} (pytest)" + (f"; already failed: {', '.join(failed)}" if failed else "")
        if _run(heading, [python, "-m", "pytest", "-q", "--durations=12", *arguments], LONG_RUNS) != 0:
            failed.append(f"tests, {name}")
    print(f"\n== {'Failed: ' + ', '.join(failed) if failed else 'All is well'}", flush=True)
    if not env.boolean("HALFTIDE_CONTROLPLANE", True):
        print("!! HALFTIDE_CONTROLPLANE=off: NOTHING WAS TRIED ON A REAL KUBERNETES", flush=True)
    return 1 if failed else 0


def _run(heading: str, command: list[Path | str], environment: dict[str, str] = PLACEHOLDERS) -> int:
    print(f"\n== {heading}", flush=True)
    began = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, check=False, env={**environment, **os.environ}).returncode
    print(f"-- {'ok' if code == 0 else 'FAILED'}, {time.monotonic() - began:.1f} s", flush=True)
    return code
