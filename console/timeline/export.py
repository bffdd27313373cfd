"""Entries as rows of a file: the same instants as everywhere (ISO 8601, UTC), and nothing that a spreadsheet would run.

What begins with a sign that makes a formula gets an apostrophe before it, as spreadsheets themselves mark text; text from
clusters is anybody's text. The JSON export is for programs, which run nothing, and keeps every byte.
"""

import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from console.timeline.models import Entry

COLUMNS = (
    "at", "severity", "reason", "node", "class", "actor_kind", "actor", "subject_kind", "subject", "message", "count",
    "first_at", "last_at", "id",
)  # fmt: skip

# What spreadsheets take for the beginning of a formula (= + - @, also in full width) or skip on the way to one.
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def stamp(at: datetime) -> str:
    """2026-11-12T14:03:02.123456Z: the instant whole, the zone named."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def fields(entry: Entry) -> dict[str, Any]:
    values = (
        stamp(entry.at), entry.severity, entry.reason, entry.node_name, entry.compute_class, entry.actor_kind, entry.actor_name,
        entry.subject_kind, entry.subject_name, entry.message, entry.count, stamp(entry.first_at), stamp(entry.last_at), entry.pk,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def harmless(value: object) -> object:
    """A cell that a spreadsheet shows and does not run."""
    return f"'{value}" if isinstance(value, str) and value.startswith(RISKY) else value


def csv_lines(rows: Iterable[Iterable[object]]) -> str:
    """Lines of a CSV as RFC 4180 has them."""
    text = io.StringIO()
    csv.writer(text).writerows([harmless(value) for value in row] for row in rows)
    return text.getvalue()
