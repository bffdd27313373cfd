"""Nothing of this folder is read before Django stands, so its fleets are asked for by name."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.module_loading import import_string

from tests.controlplane.plane import Plane


@pytest.fixture
def _django_db_helper() -> None:
    """Instead of pytest-django's: the rows of a file's fleet live as long as its nodes do, so no test ends with a flush."""


@pytest.fixture(scope="module")
def fleet(control_plane: Plane, django_db_setup: None, django_db_blocker: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A fleet for a whole file, which says how many machines there are (TOTAL)."""
    make = import_string("tests.real.world.fleet")
    with make(control_plane, django_db_blocker, request.module.TOTAL) as found:
        yield found
