"""`make test`: lint, types, import rules, then every test; each with a heading and its time.

All of them run even if an early one fails, so that one run shows all there is to mend. pytest comes last, and its
summary is the last line.
"""

import os
import subprocess
import time
from pathlib import Path

from console.env import ROOT

# django-stubs reads the settings to know the models; it connects to nothing.
PLACEHOLDERS = {
    "DATABASE_URL": "postgresql://types@localhost/types",
    "REDIS_URL": "redis://localhost",
    "HALFTIDE_SECRET_KEY": "types",
}

# Property tests run as long as in CI; pytest by itself takes fewer examples.
LONG_RUNS = {"HYPOTHESIS_PROFILE": "ci"}

STEPS = (
    ("Lint (ruff)", ["-m", "ruff", "check", "."]),
    ("Types (mypy, strict)", ["-m", "mypy"]),
    ("Import rules (import-linter)", ["-c", "from importlinter.cli import lint_imports_command as run; run()"]),
)


def check(python: Path) -> int:
    """Run everything and return 0 only if all of it is well."""
    failed = [heading for heading, arguments in STEPS if _run(heading, [python, *arguments]) != 0]
    heading = "Tests (pytest)" + (f"; already failed: {', '.join(failed)}" if failed else "")
    print(f"\n== {heading}", flush=True)
    environment = {**LONG_RUNS, **os.environ}
    tests = subprocess.run([python, "-m", "pytest", "-q"], cwd=ROOT, check=False, env=environment).returncode
    return 1 if failed or tests else 0


def _run(heading: str, command: list[Path | str]) -> int:
    print(f"\n== {heading}", flush=True)
    began = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, check=False, env={**PLACEHOLDERS, **os.environ}).returncode
    print(f"-- {'ok' if code == 0 else 'FAILED'}, {time.monotonic() - began:.1f} s", flush=True)
    return code
