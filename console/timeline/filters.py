"""What of a timeline one wants to see: read from an address, put back into one, and asked of the database. Pure.

The page, its older and newer rows, both exports and the API all read and ask through here, and the browser gets the same wish as
JSON (`for_browser`) and answers it on each live row's data attributes: a filtered live page shows what loading it again would.
An address that makes no sense is refused with a sentence; nothing of it is guessed at, and nothing given twice is half taken.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from console.http import BadInput
from console.timeline.models import Entry

LENGTHS = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}
LENGTH_WORDS = {"1h": "last hour", "24h": "last 24 hours", "7d": "last 7 days", "30d": "last 30 days"}
CLASSES = ("standard", "preemptible")
SEVERITIES = tuple(str(value) for value in Entry.Severity.values)
ACTOR_WORDS = {"person": "people", "key": "API keys", "system": "Halftide", "kubernetes": "Kubernetes"}

# The name of each field in an address, with what a sentence calls it and its longest value.
NAMES = {
    "q": ("text", "The text", 200),
    "severity": ("severity", "The severity", 8),
    "reason": ("reason", "The reason", 128),
    "node": ("node", "The node's name", 253),
    "class": ("compute_class", "The class", 12),
    "actor": ("actor", "The actor", 212),
    "last": ("last", "The length of time", 3),
    "from": ("since", "The first instant", 40),
    "to": ("until", "The last instant", 40),
}
MINUTE = "%Y-%m-%dT%H:%M"


@dataclass(frozen=True)
class Filter:
    """All empty: everything. `actor` is a kind, or `kind:name`; `last` a key of LENGTHS; instants are aware, both included."""

    text: str = ""
    severity: str = ""
    reason: str = ""
    node: str = ""
    compute_class: str = ""
    actor: str = ""
    last: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def __post_init__(self) -> None:
        """Raises BadInput where the parts do not go together."""
        if self.last and (self.since or self.until):
            raise BadInput("Choose either a length of time or exact times, not both.", param="last")
        if self.since and self.until and self.since > self.until:
            raise BadInput("The first instant is after the last one, so nothing can lie between them.", param="from")


@dataclass(frozen=True)
class Chip:
    """One part of a filter in words, and the address's query without it."""

    words: str
    without: str


def parse(query: QueryDict) -> Filter:
    """Other parameters (the place in the list, say) are not looked at. Raises BadInput with the parameter's name."""
    return Filter(**{field: _read(param, query) for param, (field, _, _) in NAMES.items() if _typed(param, query)})


def typed(query: QueryDict) -> dict[str, str]:
    """What stands in the address, right or wrong, so that a form loses nothing."""
    return {field: _shown(query.get(param, "")) for param, (field, _, _) in NAMES.items()}


def shown(chosen: Filter) -> dict[str, str]:
    """The same of a filter: as an address says it, instants in UTC."""
    return {field: _word(getattr(chosen, field)) for field, _, _ in NAMES.values()}


def _shown(text: str) -> str:
    return text.replace("\0", "\ufffd")[:400]


def _typed(param: str, query: QueryDict) -> str:
    return query.get(param, "").strip()


def _read(param: str, query: QueryDict) -> Any:
    _, what, most = NAMES[param]
    if len([value for value in query.getlist(param) if value.strip()]) > 1:
        raise BadInput(f"{what} is given more than once; one is looked for at a time.", param=param)
    text = _typed(param, query)
    if len(text) > most:
        raise BadInput(f"{what} has {len(text)} characters; there are at most {most}.", param=param)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise BadInput(f"{what} holds a character that cannot be looked for, such as a line break or NUL.", param=param)
    if param in ("from", "to"):
        return instant(text, what, param)
    _check(param, text)
    return text.removesuffix(":") if text.removesuffix(":") in ACTOR_WORDS else text


def _check(param: str, text: str) -> None:
    if param == "actor":
        text = text.partition(":")[0]
    good = {"severity": SEVERITIES, "class": CLASSES, "last": tuple(LENGTHS), "actor": tuple(ACTOR_WORDS)}.get(param)
    if good is not None and text not in good:
        raise BadInput(f"{NAMES[param][1]} is one of {', '.join(good)}.", param=param)


def instant(text: str, what: str, param: str) -> datetime:
    """An ISO 8601 instant; one without a zone is UTC, as everything here."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(
            f"{what} is a date and time such as 2026-11-12T14:03, in UTC where no zone is given.", param=param
        ) from None


def narrow(rows: QuerySet[Entry], chosen: Filter, now: datetime) -> QuerySet[Entry]:
    """The rows that the filter lets through. Each condition has an index where few rows may meet it."""
    equal = {
        "severity": chosen.severity,
        "reason": chosen.reason,
        "node_name": chosen.node,
        "compute_class": chosen.compute_class,
        **dict(zip(("actor_kind", "actor_name"), chosen.actor.split(":", 1), strict=False)),
    }
    rows = rows.filter(**{name: value for name, value in equal.items() if value})
    since = now - LENGTHS[chosen.last] if chosen.last else chosen.since
    if since is not None:
        rows = rows.filter(at__gte=since)
    if chosen.until is not None:
        rows = rows.filter(at__lte=chosen.until)
    return rows.filter(message__holds=chosen.text) if chosen.text else rows


def at_any_time(chosen: Filter) -> Filter:
    return replace(chosen, last="", since=None, until=None)


def between(chosen: Filter, since: datetime, until: datetime) -> Filter:
    return replace(chosen, last="", since=since, until=until)


def query_of(chosen: Filter, **more: str) -> str:
    """As an address says it, `?` left out; parts that are empty are left out too."""
    values = {param: _word(getattr(chosen, field)) for param, (field, _, _) in NAMES.items()}
    return urlencode({name: value for name, value in {**values, **more}.items() if value})


def _word(value: str | datetime | None) -> str:
    if not isinstance(value, datetime):
        return value or ""
    exact = value.second or value.microsecond
    return value.replace(tzinfo=None).isoformat() if exact else value.strftime(MINUTE)


def chips(chosen: Filter) -> list[Chip]:
    kind, _, name = chosen.actor.partition(":")
    words: Mapping[str, str] = {
        "text": f"“{chosen.text}”",
        "severity": str(dict(Entry.Severity.choices).get(chosen.severity, "")),
        "reason": chosen.reason,
        "node": chosen.node,
        "compute_class": chosen.compute_class.title(),
        "actor": f"by {name}" if name else f"by {ACTOR_WORDS.get(kind, '')}",
        "last": LENGTH_WORDS.get(chosen.last, ""),
        "since": f"from {_minute(chosen.since)}",
        "until": f"to {_minute(chosen.until)}",
    }
    none = Filter()
    set_fields = [field for field, _, _ in NAMES.values() if getattr(chosen, field)]
    return [Chip(words[name], query_of(replace(chosen, **{name: getattr(none, name)}))) for name in set_fields]


def _minute(at: datetime | None) -> str:
    if at is None:
        return ""
    return f"{at:%d %b %Y %H:%M:%S} UTC" if at.second else f"{at:%d %b %Y %H:%M} UTC"


def for_browser(chosen: Filter) -> dict[str, Any]:
    """The same wish for a live row's attributes; `seconds` back from now, instants as ISO 8601."""
    found: dict[str, Any] = {one.name: getattr(chosen, one.name) for one in fields(chosen) if getattr(chosen, one.name)}
    if chosen.last:
        found["seconds"] = int(LENGTHS[found.pop("last")].total_seconds())
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}
