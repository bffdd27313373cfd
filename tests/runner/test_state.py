"""The state folder has one user at a time, keeps its secrets, and is private."""

import os
import stat
from pathlib import Path

import pytest

from console.runner import reset, state
from console.runner.errors import RunnerError


def test_a_second_start_is_told_that_the_first_one_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.open_state(tmp_path)
    lock = state.take_lock(tmp_path)
    # The pid in the file is this test's; as a runner it is known by its command line.
    monkeypatch.setattr(state, "_is_runner", lambda pid: pid == str(os.getpid()))
    with pytest.raises(RunnerError, match=rf"runs in {tmp_path} already \(pid {os.getpid()}\)"):
        state.take_lock(tmp_path)
    os.close(lock)
    os.close(state.take_lock(tmp_path))


def test_reset_is_refused_while_the_state_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFTIDE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(state, "_is_runner", lambda _pid: True)
    state.open_state(tmp_path / "state")
    lock = state.take_lock(tmp_path / "state")
    with pytest.raises(RunnerError, match="stop that one first"):
        reset.reset()
    os.close(lock)
    reset.reset()
    assert not (tmp_path / "state").exists()


def test_reset_leaves_a_folder_alone_that_is_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    monkeypatch.setenv("HALFTIDE_STATE", str(tmp_path))
    with pytest.raises(RunnerError, match="does not look like Halftide's state"):
        reset.reset()
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_secrets_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    first = state.demo_secrets(tmp_path)
    assert state.demo_secrets(tmp_path) == first
    assert len(set(first.values())) == len(state.SECRETS)
    assert stat.S_IMODE((tmp_path / "secrets.env").stat().st_mode) == 0o600


def test_a_secret_that_a_newer_version_adds_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    state.write_private(tmp_path / "secrets.env", {"HALFTIDE_SECRET_KEY": "kept"})
    made = state.demo_secrets(tmp_path)
    assert made["HALFTIDE_SECRET_KEY"] == "kept"
    assert set(made) == set(state.SECRETS)


def test_the_socket_folder_is_private_and_short_enough_for_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    folder = state.socket_dir(tmp_path, os.geteuid())
    assert len(os.fsencode(folder)) <= state.SOCKET_DIR_BYTES
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.rmdir()


def test_a_socket_folder_that_somebody_else_put_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    trap = tmp_path / f"halftide-{os.geteuid()}-{state.digest(tmp_path)}"
    trap.symlink_to("/etc")
    monkeypatch.setattr(state, "SOCKET_DIR_BYTES", 1000)
    with pytest.raises(RunnerError, match="belongs to somebody else"):
        state.socket_dir(tmp_path, os.geteuid())
