"""JSON as this room uses it: plain dicts, written by orjson, with Kubernetes' two forms of time.

Stored objects are shared between answers and never changed in place; whoever changes one works on a `copy`.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

Json = dict[str, Any]


def dumps(value: object) -> bytes:
    """Compact JSON bytes."""
    return orjson.dumps(value)


def loads(data: bytes | str) -> Any:
    """The value of a JSON text. Raises ValueError (orjson's subclass) where it is none."""
    return orjson.loads(data)


def copy(value: Any) -> Any:
    """A deep copy of a JSON value; faster than `copy.deepcopy`, which keeps a memo we do not need."""
    if type(value) is dict:
        return {key: copy(item) for key, item in value.items()}
    if type(value) is list:
        return [copy(item) for item in value]
    return value


def stamp(at: datetime) -> str:
    """`metav1.Time`: whole seconds, UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(at: datetime) -> str:
    """`metav1.MicroTime`, as Leases and events.k8s.io carry it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: object) -> datetime | None:
    """The instant of either form; None where there is none or it cannot be read."""
    if not isinstance(text, str) or not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
