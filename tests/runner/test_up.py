"""`make up` on this checkout: it starts, brings back what is killed, recovers from a kill of everything, and stops clean."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from console.env import ROOT
from tests.installation import STOP_SECONDS, Installation, fresh, within


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    here = fresh("up")
    try:
        here.up()
        yield here
    finally:
        here.reset()


def test_the_page_answers(installation: Installation) -> None:
    assert installation.page() < 500


def test_a_command_beside_it_finds_database_and_queue_by_itself(installation: Installation) -> None:
    bare = {name: value for name, value in installation.environment.items() if not name.endswith("_PORT")}
    look = "from django.conf import settings; print(settings.DATABASES['default']['HOST'], settings.REDIS_URL)"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", look],
        cwd=ROOT, env=bare, capture_output=True, text=True, check=True,
    )  # fmt: skip
    runtime = installation.runtime()
    host, redis = done.stdout.split()
    assert host in runtime["DATABASE_URL"]
    assert redis == runtime["REDIS_URL"]


@pytest.mark.parametrize("part", ["console.web", "-n urgent", "console.beat", "redis-server", "bin/postgres"])
def test_a_killed_process_is_back_within_two_seconds(installation: Installation, part: str) -> None:
    killed = installation.pid(part)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert within(2, lambda: installation.pid(part) not in (None, killed))


def test_the_page_answers_again_after_all_of_them_were_killed_one_by_one(installation: Installation) -> None:
    def answers() -> bool:
        try:
            return installation.page() < 500
        except OSError:
            return False

    assert within(30, answers)


def test_a_killed_runner_takes_everything_with_it_and_the_next_start_finds_its_state(installation: Installation) -> None:
    assert installation.runner is not None
    installation.runner.kill()
    assert within(STOP_SECONDS, lambda: not installation.processes()), installation.processes()
    secrets = (installation.state / "secrets.env").read_text()
    installation.up()
    assert installation.page() < 500
    assert (installation.state / "secrets.env").read_text() == secrets


def test_after_a_kill_of_everything_at_once_the_next_start_recovers(installation: Installation) -> None:
    installation.kill_all()
    assert within(10, lambda: not installation.processes()), installation.processes()
    installation.up()
    assert installation.page() < 500


def test_a_second_start_beside_the_first_is_refused(installation: Installation) -> None:
    command = [sys.executable, "-m", "console.runner", "up"]
    done = subprocess.run(command, cwd=ROOT, env=installation.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "already (pid" in done.stderr
    assert installation.page() < 500


def test_ctrl_c_stops_all_of_it_cleanly(installation: Installation) -> None:
    assert installation.runner is not None
    installation.runner.send_signal(signal.SIGINT)
    assert installation.runner.wait(STOP_SECONDS + 5) == 0
    assert installation.processes() == {}
    assert not (installation.state / "runtime.env").exists()
    # PostgreSQL removes its pid file only when it ended in order.
    assert not (installation.state / "postgres" / "postmaster.pid").exists()
