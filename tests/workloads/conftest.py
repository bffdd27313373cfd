"""The same people and pool as for the other pages."""

from tests.pages.conftest import ada, olu, pool, vic

__all__ = ["ada", "olu", "pool", "vic"]
