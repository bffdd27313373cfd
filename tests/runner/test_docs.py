"""docs/operations.md knows every process and every setting that the code has, and the docs' tests of reported faults exist."""

import re
from pathlib import Path

from console.env import ROOT
from console.runner import postgres
from console.runner.processes import console_processes, postgres_process, redis_process

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
CASE = re.compile(r"^\| (\S+/\S+?(?: PR)?#\d+) \| [^|]+ \| `([^`|]+)` \| (?:`([^`|]+)`|[^`|]+) \|$", re.MULTILINE)
SETTING = re.compile(r'"((?:HALFTIDE|DATABASE|REDIS)_[A-Z_]*[A-Z])"')


def test_every_process_is_in_the_table() -> None:
    place = postgres.Place(Path("/pg"), Path("/data"), None)
    processes = [postgres_process(place, Path("/s")), redis_process(Path("/p"), Path("/d"), Path("/s"))]
    for process in (*processes, *console_processes(Path("/state"), 1, 2)):
        assert f"| `{process.name}` |" in OPERATIONS, process.name


def test_every_setting_is_described_and_nothing_else_is() -> None:
    read = {name for file in (ROOT / "console").rglob("*.py") for name in SETTING.findall(file.read_text())}
    described = set(re.findall(r"`((?:HALFTIDE|DATABASE|REDIS)_[A-Z_]*[A-Z])(?:=[^`]*)?`", OPERATIONS))
    assert read == described


def test_every_reported_fault_has_the_tests_that_the_docs_name() -> None:
    """Each cites the report, and those for the real API are run against it."""
    cases = CASE.findall((ROOT / "docs" / "real-kubernetes.md").read_text())
    assert len(cases) == 29
    for reference, *tests in cases:
        for test in filter(None, tests):
            file, _, name = test.partition("::")
            text = (ROOT / file).read_text()
            assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), test
            assert reference in text, (reference, file)
    assert {Path(real).parts[1] for _, _, real in cases if real} == {"contract", "real"}
