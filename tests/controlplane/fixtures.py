"""`control_plane`: a real Kubernetes for every test that asks for it, started once a run, and only when one asks.

With HALFTIDE_CONTROLPLANE=off those tests are left out, and so are real machines where none can run. pytest says so in a line for
each, and `make test` once more as its last.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import env
from console.runner import left_out
from console.runner.controlplane.build import SERVERS, programs
from tests.controlplane.plane import Plane


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, by file, also where other processes ran the tests; and note it for whoever runs several pytest."""
    if hasattr(terminalreporter.config, "workerinput"):
        return  # a worker's reports come to its controller too, and would count twice
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.getreports("skipped"):
        if why := reason(str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)):
            found[why][report.nodeid.partition("::")[0]] += 1
    for why, files in found.items():
        terminalreporter.write_line(left_out.line(why, files))
        if file := os.environ.get(left_out.VARIABLE):
            left_out.note(Path(file), why, files)


def reason(said: str) -> str:
    """Why a test is left out, where that is to be said aloud; else ''."""
    start = min((at for known in left_out.AGAINST if (at := said.find(known)) >= 0), default=None)
    return "" if start is None else said[start:]


def built(request: pytest.FixtureRequest, *names: str) -> Path:
    """The folder with these programs; skips where they are not wanted. A build says aloud how it goes on."""
    if not env.boolean("HALFTIDE_CONTROLPLANE", True):
        pytest.skip(left_out.CONTROLPLANE_OFF)
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{text}", flush=True)

    return programs(names, say)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """One place for all that is left out, so that pytest's own summary has one line for it."""
    report = yield
    if report.skipped and call.excinfo is not None and (why := reason(str(call.excinfo.value))):
        report.longrepr = (__file__, 0, why)
    return report


@pytest.fixture(scope="session")
def kubectl_program(request: pytest.FixtureRequest) -> Path:
    """The real kubectl."""
    return built(request, "kubectl") / "kubectl"


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A real Kubernetes whose nodes need no kubelet. It is shared: what a test makes has a name or a namespace of its own."""
    folder = built(request, *SERVERS, "kubectl")
    with Plane(tmp_path_factory.mktemp("kubernetes"), folder, heartbeats=False) as plane:
        yield plane
