"""Fixtures of this folder. Loaded before Django stands (the run's own conftest sets it up), so `world` is asked for by name."""

from typing import Any

import pytest
from django.utils.module_loading import import_string


@pytest.fixture
def cluster(db: None) -> Any:
    """A cluster with a pool and a stream."""
    return import_string("tests.sync.world.new_cluster")()


@pytest.fixture
def machine(cluster: Any) -> Any:
    """A preemptible machine of it that is booting."""
    return import_string("tests.sync.world.new_machine")(cluster)


@pytest.fixture
def line(cluster: Any) -> Any:
    """The cluster's line from the watch to the rows."""
    return import_string("tests.sync.world.new_line")(cluster)
