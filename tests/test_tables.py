"""A web process answers nobody before its tables stand."""

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from console import tables

LAST = ("timeline", "0002_text_search")


@pytest.fixture
def recorder(transactional_db: None, settings: Settings) -> MigrationRecorder:
    """All migrations are on record, however this test run made its tables (`--no-migrations` hides them)."""
    settings.MIGRATION_MODULES = {}
    recorder = MigrationRecorder(connection)
    recorder.ensure_schema()
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    for app, name in loader.disk_migrations.keys() - recorder.applied_migrations().keys():
        recorder.record_applied(app, name)
    return recorder


def test_nothing_is_missing_once_every_migration_is_applied(recorder: MigrationRecorder) -> None:
    assert tables.missing() is None


def test_one_migration_that_is_not_applied_is_missed(recorder: MigrationRecorder) -> None:
    recorder.record_unapplied(*LAST)
    assert tables.missing() == "migrations are not applied: `manage.py migrate` does it"


def test_what_a_newer_version_applied_is_no_hindrance(recorder: MigrationRecorder) -> None:
    recorder.record_applied("timeline", "9999_of_tomorrow")
    assert tables.missing() is None


def test_a_database_that_is_not_made_yet_is_waited_for(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setitem(connection.settings_dict, "NAME", "not_made_yet")
        assert 'database "not_made_yet" does not exist' in str(tables.missing())


def test_it_waits_for_as_long_as_something_is_missing_and_says_each_reason_once(caplog: pytest.LogCaptureFixture) -> None:
    looks = iter(["no server", "no server", "no tables", "no tables", "no tables", None])
    pauses: list[float] = []
    tables.wait(lambda: next(looks), pauses.append)
    assert len(pauses) == 5
    assert [vars(line)["why"] for line in caplog.records] == ["no server", "no tables"]
