"""What a run of the tests left out: told by each pytest, added up over all of them, and said aloud as the last lines.

pytest runs in processes of their own, so each notes in a file what it did not run; `LEFT_OUT` names the file.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "LEFT_OUT"

CONTROLPLANE_OFF = "HALFTIDE_CONTROLPLANE=off"
NO_MACHINES = "NO REAL MACHINES RAN"

# What the tests that are left out for a reason would have been run against.
AGAINST = {CONTROLPLANE_OFF: "a real Kubernetes", NO_MACHINES: "real machines"}


def line(why: str, files: Mapping[str, int]) -> str:
    """One loud line: why, how many tests, of which files. `why` begins with one of the reasons, and may say more."""
    reason = next(known for known in AGAINST if why.startswith(known))
    count = sum(files.values())
    where = ", ".join(f"{name} ({number})" for name, number in sorted(files.items()))
    tests = "1 TEST" if count == 1 else f"{count} TESTS"
    return f"!! {why}: {tests} DID NOT RUN against {AGAINST[reason]}: {where or 'no file came so far'}"


def note(file: Path, why: str, files: Mapping[str, int]) -> None:
    """Add what one pytest left out."""
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps([why, dict(files)]) + "\n")


@contextmanager
def added_up() -> Iterator[Path]:
    """The file for `note`. A run that wrote nothing leaves it away."""
    with tempfile.TemporaryDirectory(prefix="left-out-") as folder:
        yield Path(folder) / "left-out.jsonl"


def lines(file: Path, *, off: bool) -> list[str]:
    """What all of them left out, a line for each reason; with `off` one for the real Kubernetes, even where a run broke."""
    total: dict[str, Counter[str]] = {CONTROLPLANE_OFF: Counter()} if off else {}
    for row in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        why, files = json.loads(row)
        total.setdefault(why, Counter()).update(files)
    return [line(why, files) for why, files in sorted(total.items(), reverse=True)]
