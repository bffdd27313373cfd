"""Django's own checks: no process runs them as it starts, because they load every page."""

from django.core.management import call_command


def test_they_find_nothing() -> None:
    call_command("check", fail_level="WARNING")
