"""`make bench`: measure the design's figures on an installation of its own; a table, and `.halftide/bench.json`.

`make bench KUBERNETES=real` does so on real control planes, with the API servers' audit logs instead of the simulator's log, and
writes the same file.
Where a peer can be run (a bare client, a bare watch, kubectl) it runs in the same minute on the same API, so that a busy machine
slows both. Nothing here is collected by pytest; what must not get worse is held by tests that count requests and queries.
"""

import importlib
import os
import statistics
import sys
from pathlib import Path

import django

from tests.bench import start
from tests.bench.report import Book
from tests.installation import fresh

SETTINGS = {
    "HALFTIDE_SIM_BOOT_SECONDS": "0.5",
    "HALFTIDE_SIM_DEMAND": "off",
    "HALFTIDE_SIM_FIXTURE": str(Path(__file__).with_name("simulator.json")),
    "HALFTIDE_QUOTA_GPUS": "4000",
}

REAL = os.environ.get("KUBERNETES") == "real"
ON_REAL = ("one", "supply", "live", "rate", "large")  # what an API server has a part in
ONLY_REAL = {"large"}


def main(names: list[str]) -> int:
    """All sections, or those that are named."""
    book = Book()
    here = fresh("bench", **SETTINGS, **({"KUBERNETES": "real"} if REAL else {}))
    try:
        if (not names and not REAL) or "start" in names:
            start.run(here, book)
        else:
            here.up()
        os.environ.update({**here.runtime(), "DJANGO_SETTINGS_MODULE": "console.settings", "HALFTIDE_LOG_LEVEL": "WARNING"})
        django.setup()
        sections = importlib.import_module("tests.bench.sections")  # it needs the settings that are known only now
        loads = [os.getloadavg()[0]]
        for name, section in sections.SECTIONS.items():
            if name in (names or (ON_REAL if REAL else sections.SECTIONS.keys() - ONLY_REAL)):
                print(f"== {name}", flush=True)
                section(here, book)
                loads.append(os.getloadavg()[0])
        book.load = statistics.median(loads)
    finally:
        here.reset()
        book.show()
        book.write(Path(".halftide") / "bench.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
