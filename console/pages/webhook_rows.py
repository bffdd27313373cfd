"""Webhooks and their messages as lines of a page: everything in words, and never an address or a secret."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from console.webhooks.groups import BY_KEY
from console.webhooks.models import Delivery, Webhook
from console.webhooks.queries import Place
from console.webhooks.tries import MOST_TRIES

State = Delivery.State
LOOKS = {
    State.DELIVERED: ("", "i-check"),
    State.FAILED: ("red", "i-x"),
    State.SENDING: ("tide", "i-up"),
    State.WAITING: ("", "i-clock"),
}


@dataclass(frozen=True)
class Badge:
    text: str
    look: str
    icon: str


@dataclass(frozen=True)
class Row:
    """A webhook as everybody in its project sees it."""

    id: UUID
    name: str
    kind: str
    where: str
    about: str
    tells: str
    badge: Badge
    webhook: Webhook


@dataclass(frozen=True)
class MessageRow:
    id: UUID
    at: datetime
    summary: str
    badge: Badge
    then: str  # when it is tried again
    problem: str
    status: str
    took: str
    tries: int
    unfinished: bool


@dataclass(frozen=True)
class TryRow:
    at: datetime
    what: str
    said: str
    took: str


def row_of(webhook: Webhook) -> Row:
    return Row(
        id=webhook.pk,
        name=webhook.name,
        kind=webhook.get_kind_display(),
        where=where(webhook),
        about=webhook.cluster.name if webhook.cluster is not None else "All clusters",
        tells=", ".join(BY_KEY[key].title for key in webhook.groups if key in BY_KEY),
        badge=badge_of(webhook),
        webhook=webhook,
    )


def where(webhook: Webhook) -> str:
    """ "hooks.slack.com …ab12": enough to know it by. A line never ends between the dots and what they stand before."""
    return f"{webhook.host} …\u2060{webhook.tail}" if webhook.tail else webhook.host


def badge_of(webhook: Webhook) -> Badge:
    if not webhook.on:
        return Badge("Off", "", "i-pause")
    if webhook.said_failing_at is not None:
        return Badge("Fails", "red", "i-x")
    if webhook.failing_since is not None:
        return Badge("Tries again", "amber", "i-retry")
    return Badge("On", "", "i-check")


def message_row(row: Delivery) -> MessageRow:
    state = State(row.state)
    texts = {
        State.DELIVERED: "Delivered",
        State.FAILED: "Given up",
        State.SENDING: "On its way",
        State.WAITING: "Waits" if row.tries == 0 else f"Waits for try {row.tries + 1}",
    }
    look, icon = LOOKS[state]
    if state == State.WAITING and row.tries:
        look, icon = "amber", "i-retry"
    waits = row.due_at is not None and row.tries and state == State.WAITING
    return MessageRow(
        id=row.pk,
        at=row.made_at,
        summary=row.summary,
        badge=Badge(texts[state], look, icon),
        then=f"Next try {row.due_at.astimezone(UTC):%H:%M:%S} UTC." if waits and row.due_at else "",
        problem=row.problem,
        status=str(row.status) if row.status is not None else "–",
        took=f"{row.took_ms} ms" if row.took_ms is not None else "–",
        tries=row.tries,
        unfinished=state in (State.WAITING, State.SENDING),
    )


def try_rows(row: Delivery) -> list[TryRow]:
    """The latest first."""
    return [
        TryRow(
            at=datetime.fromisoformat(line["at"]),
            what=line["problem"] or f"Delivered ({line['status']}).",
            said=line["said"],
            took=f"{line['ms']} ms" if line["ms"] is not None else "–",
        )
        for line in reversed(row.log)
    ]


def body_of(row: Delivery) -> str:
    """The body, broken into lines for reading; what cannot be seen is written out, so that nothing plays with the page."""
    text = json.dumps(json.loads(row.body), indent=2, ensure_ascii=False)
    return "".join(char if char == "\n" or char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def most_tries(row: Delivery) -> int:
    return MOST_TRIES if row.group else 1


def place_text(place: Place | None) -> str:
    return f"{place[0].isoformat()}_{place[1]}" if place is not None else ""


def place_of(text: str) -> Place | None:
    """A place as an address carries it; what is none is the first page."""
    at, _, pk = text.partition("_")
    try:
        moment = datetime.fromisoformat(at)
        return (moment, UUID(pk)) if moment.tzinfo is not None else None
    except ValueError:
        return None
