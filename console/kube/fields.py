"""Reading single fields out of JSON that somebody else wrote.

A field that is missing or of another type reads as empty; it never raises. One object with an odd field must not stop the view
of a whole cluster. What has no identity is the only thing we refuse, and that is `parse`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

Json = Mapping[str, object]

NOTHING: Json = {}

# Longest text we keep. A Kubernetes name has at most 253 bytes; a core/v1 Event's message and an annotation have no limit of
# their own below 256 KiB, and nobody reads that much in a row of a page.
NAME_CHARS = 253
MESSAGE_CHARS = 4096
ANNOTATION_CHARS = 1024

# Kubernetes counts in int32; a number outside it is nonsense and would not fit a column either.
_LARGEST = 2**31 - 1

# Kubernetes' first commit is of 2014. A time before it is a zero value in disguise (0001-01-01, 1970-01-01).
_FIRST_YEAR = 2014

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_WHOLE_QUANTITY = re.compile(r"(\d{1,9})(k?)")


def clean(text: str, limit: int = NAME_CHARS) -> str:
    """Text that PostgreSQL and UTF-8 accept: NUL becomes ␀, a lone surrogate becomes �, and what is cut off ends in …"""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _UNSTORABLE.sub(lambda found: "␀" if found[0] == "\x00" else "�", text)


def mapping(raw: Json, key: str) -> Json:
    """The object under `key`, or an empty one."""
    value = raw.get(key)
    return value if isinstance(value, Mapping) else NOTHING


def mappings(raw: Json, key: str) -> list[Json]:
    """The objects in the array under `key`; what is no object in it is left out."""
    value = raw.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text(raw: Json, key: str, limit: int = NAME_CHARS) -> str:
    """The text under `key`, cleaned, or ''."""
    value = raw.get(key)
    return clean(value, limit) if isinstance(value, str) else ""


def texts(raw: Json, key: str) -> tuple[str, ...]:
    """The texts in the array under `key`."""
    value = raw.get(key)
    return tuple(clean(item) for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def pairs(raw: Json, key: str, limit: int = NAME_CHARS) -> dict[str, str]:
    """Labels, annotations and selectors: text to text."""
    return {clean(name): clean(value, limit) for name, value in mapping(raw, key).items() if isinstance(value, str)}


def number(raw: Json, key: str) -> int | None:
    """The whole number under `key`, held within int32; a bool is none."""
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return max(-_LARGEST, min(value, _LARGEST))


def flag(raw: Json, key: str) -> bool:
    """Whether `key` is the literal true."""
    return raw.get(key) is True


def instant(raw: Json, key: str) -> datetime | None:
    """The RFC 3339 time under `key`, in UTC."""
    value = raw.get(key)
    return parse_instant(value) if isinstance(value, str) else None


def parse_instant(value: str) -> datetime | None:
    """A time with a zone, in UTC; None for what is no time, has no zone, or is a zero value in disguise."""
    try:
        told = datetime.fromisoformat(value)
        at = told.astimezone(UTC) if told.tzinfo else None
    except (ValueError, OverflowError):
        return None
    return at if at and at.year >= _FIRST_YEAR else None


def whole(raw: Json, key: str) -> int:
    """A whole quantity of an extended resource ('8', 8, and the canonical '1k'), or 0."""
    found = _WHOLE_QUANTITY.fullmatch(str(raw.get(key, "")))
    return int(found[1]) * (1000 if found[2] else 1) if found else 0
