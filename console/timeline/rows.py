"""A timeline row as html: the same text on first load, by poll and by socket. It knows no drains: it leaves a slot for one.

Text from clusters is text. It is escaped here, once, and only the name of the row's own subject is set apart. Plain formatting
of escaped words, no template: a page has a hundred rows and a busy hub draws hundreds a second, and a template took six times
as long.
"""

import re
from html import escape
from zlib import crc32

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from console.timeline.models import Entry

ICONS = {Entry.Severity.INFO: "i-info", Entry.Severity.WARNING: "i-warning", Entry.Severity.CRITICAL: "i-critical"}
TITLES = {Entry.Severity.INFO: "Information", Entry.Severity.WARNING: "Warning", Entry.Severity.CRITICAL: "Critical"}


def render_entry(entry: Entry, drain: str = "") -> SafeString:
    """One `<li class="ev">`. `drain` is the verdict table's html where the entry has one (see `capacity.panels`)."""
    severity = Entry.Severity(entry.severity)
    at, day, clock = entry.at.isoformat(), f"{entry.at:%Y-%m-%d}", f"{entry.at:%H:%M:%S}"
    address, look = reverse("entry", args=[entry.stream_id, entry.pk]), f" {severity}" if severity != "info" else ""
    slot = f'<div class="drain-slot" data-drain="{entry.drain_id}">{drain}</div>' if entry.drain_id else ""
    return mark_safe(  # noqa: S308  (every word from outside is escaped)
        f'<li class="ev{" has-drain" if drain else ""}" id="e{entry.pk}" data-kind="entry" data-revision="{entry.revision}"'
        f' data-at="{at}" data-day="{day}" data-id="{entry.pk}"{_facts(entry)}>\n'
        f'<a href="{address}#e{entry.pk}"><time datetime="{at}" data-clock title="{day} {clock} UTC">{clock}</time></a>'
        f'<span class="sev {severity}" title="{TITLES[severity]}"><svg class="i" aria-hidden="true">'
        f'<use href="#{ICONS[severity]}"/></svg><span class="vh">{TITLES[severity]}</span></span>\n'
        f'<div><div class="top"><span class="chip{look}">{escape(entry.reason)}</span>{_by(entry)}</div>\n'
        f"<p><span data-message>{_sentence(entry.message, entry.subject_name)}</span>{_report(entry)}{_times(entry)}</p></div>\n"
        f"{slot}</li>"
    )


def _facts(entry: Entry) -> str:
    """What the browser's filter and its folding look at; those that say nothing are left out."""
    facts = {
        "node-name": entry.node_name,
        "class": entry.compute_class,
        "alike": alike(entry),
        "gpus": str(entry.data.get("gpus") or ""),
    }
    told = "".join(f' data-{name}="{escape(value)}"' for name, value in facts.items() if value)
    actor = f"{entry.actor_kind}:{entry.actor_name}"
    return f' data-reason="{escape(entry.reason)}" data-severity="{entry.severity}" data-actor="{escape(actor)}"{told}'


def _by(entry: Entry) -> str:
    is_key = entry.actor_kind == Entry.ActorKind.KEY
    title, says = (' title="API key"', '<span class="vh"> (API key)</span>') if is_key else ("", "")
    return f'<span class="by"{title}>{escape(entry.actor_name or "Halftide")}{says}</span>'


def _sentence(message: str, subject: str) -> str:
    """The message with its subject set apart, everything escaped."""
    if not subject or subject not in message:
        return escape(message)
    before, after = message.split(subject, 1)
    return f'{escape(before)}<b class="mono">{escape(subject)}</b>{escape(after)}'


def _report(entry: Entry) -> str:
    page = entry.data.get("page")
    return f' · <a href="{escape(page)}">Report</a>' if page else ""


def _times(entry: Entry) -> str:
    """How often it happened, and from when to when; nothing where it was once."""
    if entry.count <= 1:
        return ""
    first, last = (
        f'<time datetime="{at.isoformat()}" data-clock title="{at:%Y-%m-%d %H:%M:%S} UTC">{at:%H:%M:%S}</time>'
        for at in (entry.first_at, entry.last_at)
    )
    return f' <span class="times">×{entry.count}</span> <span class="muted">{first} to {last}</span>'


NUMBERS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")


def alike(entry: Entry) -> str:
    """Equal for rows that say the same but for names and numbers: the browser folds a run of them into one line that opens.

    Empty for what is never folded: what is critical, and what carries a drain's table.
    """
    if entry.drain_id or entry.severity == Entry.Severity.CRITICAL:
        return ""
    message = entry.message
    for name in sorted(
        {entry.subject_name, entry.subject_name.rpartition("/")[2], entry.node_name} - {""}, key=len, reverse=True
    ):
        message = message.replace(name, "*")
    words = (entry.reason, entry.severity, entry.actor_kind, entry.actor_name, NUMBERS.sub("#", message))
    return f"{crc32(chr(31).join(words).encode('utf-8', 'replace')):08x}"
