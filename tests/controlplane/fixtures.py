"""`control_plane`: a real Kubernetes for every test that asks for it, started once a run, and only when one asks.

With HALFTIDE_CONTROLPLANE=off those tests are left out, and the run ends with one line that says so.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import env
from console.runner.controlplane.build import SERVERS, programs
from tests.controlplane.plane import Plane

OFF = "HALFTIDE_CONTROLPLANE=off"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, by file: also where other processes ran the tests."""
    skipped = terminalreporter.getreports("skipped")
    left_out = Counter(report.nodeid.partition("::")[0] for report in skipped if OFF in str(report.longrepr))
    if left_out:
        files = ", ".join(f"{name} ({count})" for name, count in sorted(left_out.items()))
        terminalreporter.write_line(f"!! {OFF}: {left_out.total()} tests DID NOT RUN against a real Kubernetes: {files}")


def built(request: pytest.FixtureRequest, *names: str) -> Path:
    """The folder with these programs; skips where they are not wanted. A build says aloud how it goes on."""
    if not env.boolean("HALFTIDE_CONTROLPLANE", True):
        pytest.skip(OFF)
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{text}", flush=True)

    return programs(names, say)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """One place for all that is left out, so that pytest's own summary has one line for it."""
    report = yield
    if report.skipped and call.excinfo is not None and OFF in str(call.excinfo.value):
        report.longrepr = (__file__, 0, OFF)
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
