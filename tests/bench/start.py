"""From nothing to a page, again with its state, and what all processes hold when nothing happens."""

import signal
import time
from pathlib import Path

from tests.bench.report import Book
from tests.installation import Installation


def run(here: Installation, book: Book) -> None:
    """Leaves the installation running, as all sections want it."""
    began = time.monotonic()
    here.up()
    book.at_most("make up, installed, no state: page answers", time.monotonic() - began, "s", 10)
    assert here.page() < 500
    assert here.runner is not None
    here.runner.send_signal(signal.SIGINT)
    here.runner.wait(60)
    began = time.monotonic()
    here.up()
    book.at_most("make up, installed, its state there: page answers", time.monotonic() - began, "s", 10)
    time.sleep(15)
    held = memory(here)
    for name, size in sorted(held.items(), key=lambda pair: -pair[1]):
        print(f"      {size:7.1f} MiB  {name}")
    book.at_most("all processes at rest", sum(held.values()), "MiB PSS", 700)


def memory(here: Installation) -> dict[str, float]:
    """Proportional set size by kind of process, MiB. The runner and the supervisor count too."""
    found: dict[str, float] = {}
    for pid, command in here.processes().items():
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        kilobytes = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        name = _name(command)
        found[name] = found.get(name, 0.0) + kilobytes / 1024
    return found


def _name(command: str) -> str:
    known = ("console.simulator", "console.idp", "console.web", "-n urgent", "-n default", "beat", "manage watch", "supervisord",
             "console.runner up", "postgres", "redis")  # fmt: skip
    return next((name for name in known if name in command), command[:40])
