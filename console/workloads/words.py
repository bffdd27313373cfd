"""Lengths and numbers as the pages of this room say them."""

from __future__ import annotations

from datetime import timedelta


def length(span: timedelta) -> str:
    """Roughly, as people do: 45 s, 12 min, 26 h, 4 d."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit, most in ((1, "s", 120), (60, "min", 120 * 60), (3600, "h", 72 * 3600)):
        if seconds < most:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86_400} d"


def count(number: int, one: str, many: str = "") -> str:
    """1 pod, 3 pods."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
