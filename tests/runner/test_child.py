"""Nothing outlives its parent, however the parent ended (celery/celery leaves a killed worker's pool behind by itself)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.env import ROOT
from console.runner.child import PARENT

# A program that forks twice, as a worker's pool does, says who it is, and would live for a while.
FORKER = r"""
import os, time
for _ in range(2):
    if os.fork() == 0:
        break
os.write(1, b"%d\n" % os.getpid())  # one write, or two lines could run together
time.sleep(20)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "halftide_forker.py").write_text(FORKER)
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}


def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def wrapped(*command: str) -> list[str]:
    return [sys.executable, "-m", "console.runner.child", "SIGKILL", "-", *command]


def pids_of(process: subprocess.Popen[str], count: int) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)]


def test_the_pool_of_a_killed_worker_is_gone_with_it(program: dict[str, str]) -> None:
    with start(wrapped("-m", "halftide_forker"), program) as worker:
        pids = pids_of(worker, 3)
        assert all(map(alive, pids))
        worker.kill()
        assert gone(pids)


def test_a_chain_of_processes_ends_from_the_top(program: dict[str, str]) -> None:
    """Runner → supervisord → worker → pool: a `kill -9` of the first takes the last."""
    inner = wrapped("-m", "halftide_forker")
    runner = f"import subprocess; subprocess.Popen({inner!r}).wait()"
    with start([sys.executable, "-c", runner], program) as top:
        pids = pids_of(top, 3)
        top.kill()
        assert gone(pids)


def test_a_plain_program_ends_with_its_parent_too(program: dict[str, str]) -> None:
    inner = wrapped("/bin/sh", "-c", "echo $$; exec sleep 20")
    runner = f"import subprocess; subprocess.Popen({inner!r}).wait()"
    with start([sys.executable, "-c", runner], program) as top:
        pids = pids_of(top, 1)
        top.kill()
        assert gone(pids)


def test_a_child_whose_parent_is_gone_already_does_not_start(program: dict[str, str]) -> None:
    """The kernel only tells of deaths that come after the question, so the parent's pid is compared as well."""
    done = subprocess.run(
        wrapped("/bin/echo", "started"), cwd=ROOT, env={**program, PARENT: "1"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_becoming_another_user_keeps_the_bond(program: dict[str, str]) -> None:
    inner = [sys.executable, "-m", "console.runner.child", "SIGKILL", "nobody", "/bin/sh", "-c", "echo $$; exec sleep 20"]
    runner = f"import subprocess; subprocess.Popen({inner!r}).wait()"
    with start([sys.executable, "-c", runner], program) as top:
        (pid,) = pids_of(top, 1)
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        top.send_signal(signal.SIGKILL)
        assert gone([pid])
