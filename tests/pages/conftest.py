"""Who looks. Loaded before Django stands (the run's own conftest sets it up), so the world is asked for by name."""

from typing import Any

import pytest
from django.test import Client
from django.utils.module_loading import import_string


def world(name: str) -> Any:
    return import_string(f"tests.pages.world.{name}")


@pytest.fixture
def pool(db: None) -> Any:
    world("an_installation")()
    return world("a_pool")()


def look(name: str, *more: Any, **flags: Any) -> Client:
    client: Client = world("browser")(world("a_person")(name, *more, **flags))
    return client


@pytest.fixture
def ada(db: None) -> Client:
    """Administrator everywhere, fleet operator."""
    return look("ada", world("Role").ADMIN, fleet=True)


@pytest.fixture
def olu(db: None) -> Client:
    """Operator in Aurora, no fleet operator."""
    return look("olu", world("Role").OPERATOR, "aurora")


@pytest.fixture
def vic(db: None) -> Client:
    """Viewer in Aurora."""
    return look("vic", world("Role").VIEWER, "aurora")
