"""Reading what a request of the control API says; what cannot be understood is refused with a sentence."""

from collections.abc import Mapping
from typing import Any

from console.simulator.values import Json, loads
from console.simulator.web import Request


class Nonsense(Exception):
    """A request that cannot be understood; its text says why."""


def body(request: Request) -> Json:
    """The JSON object that was sent; an empty one for none. Raises Nonsense, as all here do."""
    try:
        found = loads(request.body or b"{}")
    except ValueError as error:
        raise Nonsense("The body is no JSON.") from error
    if not isinstance(found, dict):
        raise Nonsense("The body must be a JSON object.")
    return found


def text(sent: Mapping[str, Any], name: str) -> str:
    """A field that must be there."""
    value = sent.get(name)
    if not isinstance(value, str) or not value:
        raise Nonsense(f"{name} must be a text that is not empty.")
    return value


def number(typed: str, name: str) -> float:
    """Of a query."""
    try:
        return float(typed)
    except ValueError as error:
        raise Nonsense(f"{name} must be a number.") from error


def whole(sent: Json, name: str) -> int:
    """A count."""
    value = sent.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Nonsense(f"{name} must be a whole number that is not negative.")
    return value


def seconds(sent: Json, name: str) -> float:
    """A time, in whole seconds or parts."""
    value = sent.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise Nonsense(f"{name} must be a number that is not negative.")
    return float(value)
