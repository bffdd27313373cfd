"""Settings that make no sense are refused with a sentence that names the variable."""

from collections.abc import Callable
from pathlib import Path

import pytest

from console import env

NONSENSE: list[tuple[Callable[[], object], dict[str, str], str]] = [
    (lambda: env.text("HT_X"), {}, "HT_X is not set, and there is no default for it."),
    (lambda: env.text("HT_X"), {"HT_X": ""}, "HT_X is not set, and there is no default for it."),
    (lambda: env.boolean("HT_X"), {"HT_X": "maybe"}, "HT_X must be yes or no (1/0, true/false, on/off), not 'maybe'."),
    (lambda: env.integer("HT_X", 1, 1, 9), {"HT_X": "3.5"}, "HT_X must be a whole number from 1 to 9, not '3.5'."),
    (lambda: env.integer("HT_X", 1, 1, 9), {"HT_X": "10"}, "HT_X must be from 1 to 9, not 10."),
    (lambda: env.seconds("HT_X", 1, 0, 60), {"HT_X": "5m"}, "HT_X must be a number of seconds from 0 to 60, not '5m'."),
    (lambda: env.seconds("HT_X", 1, 0, 60), {"HT_X": "nan"}, "HT_X must be a number of seconds from 0 to 60, not 'nan'."),
    (lambda: env.port("HT_X", 80), {"HT_X": "70000"}, "HT_X must be from 1 to 65535, not 70000."),
    (lambda: env.url("HT_X"), {"HT_X": "example.org"}, "HT_X must be an address that starts with http:// or https://."),
    (lambda: env.url("HT_X"), {"HT_X": "https://"}, "HT_X must be an address with a host in it."),
    (lambda: env.url("HT_X"), {"HT_X": "http://[::1"}, "HT_X is not an address that can be read."),
    (lambda: env.secret("HT_X"), {}, "HT_X (or HT_X_FILE) is not set, and a secret has no default."),
    (lambda: env.secret("HT_X"), {"HT_X_FILE": "/nowhere"}, "HT_X_FILE points to /nowhere, which cannot be read."),
    (lambda: env.secret("HT_X"), {"HT_X": "a", "HT_X_FILE": "/b"}, "Both HT_X and HT_X_FILE are set: keep one."),
]


@pytest.mark.parametrize(("read", "environment", "sentence"), NONSENSE, ids=[sentence for *_, sentence in NONSENSE])
def test_nonsense_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], environment: dict[str, str], sentence: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(env.SettingError) as refused:
        read()
    assert str(refused.value) == sentence


def test_an_address_with_a_password_is_not_repeated_in_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://halftide:hunter2@db/halftide")
    with pytest.raises(env.SettingError) as refused:
        env.url("DATABASE_URL", schemes=("postgresql",))
    assert "hunter2" not in str(refused.value)


def test_socket_and_tcp_addresses_are_both_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("postgresql://halftide@/halftide?host=/run/pg", "postgresql://u:p@db.example:5432/halftide"):
        monkeypatch.setenv("DATABASE_URL", value)
        assert env.url("DATABASE_URL", schemes=("postgresql",)) == value


def test_a_secret_is_read_from_the_file_its_name_points_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    monkeypatch.setenv("HT_X_FILE", str(tmp_path / "key"))
    assert env.secret("HT_X") == "s3cret"


def test_a_variable_of_the_environment_wins_over_what_make_up_wrote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "runtime.env").write_text("HT_A=from make up\nHT_B=from make up\n")
    monkeypatch.setenv("HALFTIDE_STATE", str(tmp_path))
    monkeypatch.setenv("HT_B", "from the shell")
    assert (env.text("HT_A"), env.text("HT_B")) == ("from make up", "from the shell")
