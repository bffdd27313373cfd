"""Providers by the name that a pool carries."""

from django.conf import settings

from console.capacity.providers.base import Provider
from console.capacity.providers.simulated import Simulated


def provider(name: str) -> Provider:
    """A new one, to be entered with `async with`. Raises LookupError for a name that no provider has."""
    if name != "simulated":
        raise LookupError(f"There is no provider named {name}.")
    return Simulated(settings.SIM_URL, settings.STATE_DIR / "control-token")
