"""A cluster, somebody who looks at it, and a hub of this test's own loop."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.module_loading import import_string


@pytest.fixture
def world(transactional_db: None) -> Any:
    """Committed, because the hub reads on connections of its own."""
    return import_string("tests.feed.line.a_world")()


@pytest.fixture(autouse=True)
def own_hub() -> Iterator[None]:
    """A hub lives on one loop, and each test has its own."""
    hub = import_string("console.feed.hub.hub")
    hub.cache_clear()
    yield
    hub.cache_clear()
