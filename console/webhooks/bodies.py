"""What is sent, as bytes would read: the JSON shape of Halftide's own, version 1, and what Slack-compatible receivers want. Pure.

A timeline's text comes from clusters and people, so to a chat it is a stranger's: nothing in it may become a mention of
everybody, a link or a picture. Everything is cut at a bound, counted after escaping, because Slack refuses a whole message for
one part that is too long.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from console.webhooks.message import Item, Message, cut, summary

VERSION = 1
MOST_ITEMS = 50  # entries that a JSON message lists
MOST_LINES = 10  # entries that a chat shows
LONGEST_LINE, LONGEST_HEAD, LONGEST_LABEL = 260, 1200, 400  # characters after escaping
LONGEST_PART = 2950  # Slack takes 3,000 characters in one part, markup included
LONGEST_MESSAGE = 1000  # of one entry in JSON

Link = Callable[[UUID, int | None], str]  # of a cluster's timeline, or of one entry in it
TEST = "This is a test of the webhook “{name}”. If you read it, messages arrive."

ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
NOTHING = "\u200b"  # no width: what it parts is no mention and no link any more, and reads the same
MENTION, MARKDOWN_LINK = re.compile(r"@(?=\w)"), re.compile(r"\](?=[(\[:])")


def as_json(message: Message, link: Link) -> str:
    """The shape that docs/webhooks.md describes. New fields may come; what is there keeps its meaning while `version` is 1."""
    listed = message.items[:MOST_ITEMS]
    body = {
        "version": VERSION,
        "id": str(message.id),
        "type": "entries",
        "at": _instant(message.at),
        "webhook": _named(message.webhook),
        "project": _named(message.project),
        "group": message.group,
        "summary": summary(message),
        "count": message.number,
        "first_entry": message.first_entry,
        "last_entry": message.last_entry,
        "entries": [_entry(item, link) for item in listed],
        "not_listed": message.number - len(listed),
    }
    return json.dumps(body, ensure_ascii=False)


def _entry(item: Item, link: Link) -> dict[str, Any]:
    kind, name, uid = item.subject
    return {
        "id": item.id,
        "link": link(item.cluster.id, item.id),
        "cluster": {"id": str(item.cluster.id), "name": item.cluster.name},
        "reason": item.reason,
        "severity": item.severity,
        "subject": {"kind": kind, "name": name, "uid": uid},
        "actor": item.actor,
        "message": cut(item.message, LONGEST_MESSAGE),
        "at": _instant(item.at),
        "count": item.count,
    }


def as_slack(message: Message, link: Link) -> str:
    """`text` for notifications and for receivers that know no blocks; blocks for those that do."""
    head = escaped(summary(message), LONGEST_HEAD)
    lines = _lines(message, link) if message.number > 1 else []
    where = message.items[0] if message.items else None
    anchor = f"<{link(where.cluster.id, where.id if message.number == 1 else None)}|Open the timeline>" if where else ""
    foot = " · ".join(part for part in (f"Halftide, {escaped(message.project[1], LONGEST_LABEL)}", anchor) if part)
    blocks = [_section(head), *([_section("\n".join(lines))] if lines else []), _context(foot)]
    return _slack("\n".join([head, *lines, anchor]), blocks)


def _lines(message: Message, link: Link) -> list[str]:
    """As many entries as fit into one part, and how many more there are."""
    lines: list[str] = []
    room = LONGEST_PART
    for item in message.items[:MOST_LINES]:
        line = _line(item, link)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    more = message.number - len(lines)
    return [*lines, f"… and {more} more"] if more else lines


def _line(item: Item, link: Link) -> str:
    """The time is the link, so that nobody's text stands inside one."""
    text = escaped(f"{item.cluster.name}: {item.message}", LONGEST_LINE)
    return f"• <{link(item.cluster.id, item.id)}|{item.at.astimezone(UTC):%H:%M:%S}> {text}"


def test_json(delivery: UUID, at: datetime, webhook: tuple[UUID, str], project: tuple[UUID, str]) -> str:
    body = {
        "version": VERSION,
        "id": str(delivery),
        "type": "test",
        "at": _instant(at),
        "webhook": _named(webhook),
        "project": _named(project),
        "summary": TEST.format(name=webhook[1]),
    }
    return json.dumps(body, ensure_ascii=False)


def test_slack(webhook: str, project: str) -> str:
    text = escaped(TEST.format(name=webhook), LONGEST_HEAD)
    return _slack(text, [_section(text), _context(f"Halftide, {escaped(project, LONGEST_LABEL)}")])


def escaped(text: str, most: int) -> str:
    """A stranger's text for a chat: no markup, no mention, on one line, and at most `most` characters long when escaped."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    text = MARKDOWN_LINK.sub(f"]{NOTHING}", MENTION.sub(f"@{NOTHING}", text))
    parts: list[str] = []
    length = 0
    for char in text:
        part = ESCAPES.get(char, char)
        if length + len(part) > most - 1:
            return "".join([*parts, "…"])
        parts.append(part)
        length += len(part)
    return "".join(parts)


def _slack(text: str, blocks: list[dict[str, Any]]) -> str:
    return json.dumps({"text": text, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}, ensure_ascii=False)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _context(text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}


def _named(pair: tuple[UUID, str]) -> dict[str, str]:
    return {"id": str(pair[0]), "name": pair[1]}


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
