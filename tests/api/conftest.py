"""Fixtures of this folder. Loaded before Django stands (the run's own conftest sets it up), so `world` is asked for by name."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils.module_loading import import_string


@pytest.fixture
def world(db: None) -> Any:
    return import_string("tests.api.world.make")()


@pytest.fixture
def api(world: Any) -> Callable[[str | None], Any]:
    """`api("operator")` speaks with that role's key in Aurora, `api(None)` with none."""
    speaker = import_string("tests.api.world.Api")
    return lambda role: speaker(Client(raise_request_exception=False), world.keys.get(role))


@pytest.fixture
def operator(api: Callable[[str | None], Any]) -> Any:
    return api("operator")


@pytest.fixture
def path(world: Any) -> str:
    return f"/v1/compute/clusters/{world.train.pk}"
