"""What did not run, for want of a real Kubernetes or of machines, is what one reads last."""

import sys
from pathlib import Path

import pytest

from console.runner import check, left_out
from tests.machines import machine

KUBERNETES = """
import pytest
def test_one(control_plane): pass
def test_two(control_plane): pass
def test_other(): pytest.skip("for another reason")
"""
MACHINES = """
from tests.machines.machine import require
def test_lives(): require()
"""


PLUGIN = ["-p", "tests.controlplane.fixtures"]


@pytest.fixture
def last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Run these files with `make test`'s own code, each by a pytest, the first with a worker; what comes after the verdict."""
    monkeypatch.delenv(left_out.VARIABLE, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to load than all of this
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]")

    def run(**files: str) -> list[str]:
        runs = []
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
            runs.append((name, ["-p", "xdist.plugin", *PLUGIN, "-c", str(ini), f"{tmp_path}/test_{name}.py"]))
        runs[0][1].extend(["-n", "1"])
        assert check.tests(Path(sys.executable), runs, []) == 0
        return capfd.readouterr().out.partition("== All is well\n")[2].splitlines()

    return run


def test_without_a_real_kubernetes_the_last_line_counts_what_was_left_out(last, monkeypatch):
    monkeypatch.setenv("HALFTIDE_CONTROLPLANE", "off")
    assert last(a=KUBERNETES, b=KUBERNETES) == [
        "!! HALFTIDE_CONTROLPLANE=off: 4 TESTS DID NOT RUN against a real Kubernetes: test_a.py (2), test_b.py (2)"
    ]


def test_where_no_machine_can_run_the_last_line_says_why(last, monkeypatch):
    """The programs of a real machine are looked for on a path that has none."""
    monkeypatch.setenv("HALFTIDE_CONTROLPLANE", "on")
    monkeypatch.delenv("HALFTIDE_MACHINES", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    why = machine.missing()
    assert why
    assert last(lives=MACHINES) == [
        f"!! NO REAL MACHINES RAN: {why}: 1 TEST DID NOT RUN against real machines: test_lives.py (1)"
    ]


def test_where_machines_are_required_it_fails_instead(monkeypatch):
    monkeypatch.setenv("HALFTIDE_MACHINES", "required")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssertionError, match=r"containerd|not root"):
        machine.require()


def test_a_run_that_broke_before_it_could_count_still_says_so(tmp_path):
    [line] = left_out.lines(tmp_path / "nothing", off=True)
    assert line.startswith("!! HALFTIDE_CONTROLPLANE=off: 0 TESTS DID NOT RUN")
