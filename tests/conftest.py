"""What every test stands on: a PostgreSQL, a Redis and a state folder of this run, and Django set up against them.

The servers of the wheels are started when DATABASE_URL or REDIS_URL is unset and stopped at the end. The settings module
is named here and not in pyproject.toml, because pytest-django would read it before these addresses are known.
"""

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import django
import pytest
from django.conf import settings
from hypothesis import settings as hypothesis_settings

from console.runner.services import servers
from console.runner.state import demo_secrets

RUN = ExitStack()

# The real Kubernetes, for tests that ask for it.
pytest_plugins = ["tests.controlplane.fixtures"]

# `ci` (hypothesis brings it: the same examples in each run, no time limit for one) takes the long property runs; see
# `tests/capacity/test_plan_properties.py`. It is loaded before any test is read.
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Bring up what the settings need before anything reads them."""
    state = Path(tempfile.mkdtemp(prefix="halftide-test-"))
    RUN.callback(shutil.rmtree, state, ignore_errors=True)
    state.chmod(0o711)  # as root, PostgreSQL runs as another user, who passes through here to its data
    os.environ["HALFTIDE_STATE"] = str(state)  # nothing of a `make up` beside this run leaks in through runtime.env
    wanted = {name: not os.environ.get(name) for name in ("DATABASE_URL", "REDIS_URL")}
    os.environ.update(RUN.enter_context(servers(state, Path(sys.executable), wanted["DATABASE_URL"], wanted["REDIS_URL"])))
    for name, value in demo_secrets(state).items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    # A test may hold its transaction open while it waits for a browser or another process.
    settings.DATABASES["default"]["OPTIONS"].pop("options")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started."""
    RUN.close()
