"""A timeline row as html: the same text on first load, by poll and by socket. It knows no drains: it leaves a slot for one.

Text from clusters is text. It is escaped here, once, and only the name of the row's own subject is set apart.
"""

import re
from zlib import crc32

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from console.timeline.models import Entry

ICONS = {Entry.Severity.INFO: "i-info", Entry.Severity.WARNING: "i-warning", Entry.Severity.CRITICAL: "i-critical"}
TITLES = {Entry.Severity.INFO: "Information", Entry.Severity.WARNING: "Warning", Entry.Severity.CRITICAL: "Critical"}


def render_entry(entry: Entry, drain: str = "") -> str:
    """One `<li class="ev">`. `drain` is the verdict table's html where the entry has one (see `capacity.panels`)."""
    return render_to_string(
        "timeline/_entry.html",
        {
            "entry": entry,
            "at": entry.at.isoformat(),  # written here: a template's date filter takes a tenth of a millisecond, five times a row
            "day": f"{entry.at:%Y-%m-%d}",
            "clock": f"{entry.at:%H:%M:%S}",
            "icon": ICONS[Entry.Severity(entry.severity)],
            "severity": TITLES[Entry.Severity(entry.severity)],
            "alike": alike(entry),
            "message": sentence(entry.message, entry.subject_name),
            "drain": mark_safe(drain),  # noqa: S308  (rendered by a template of ours)
        },
    )


def sentence(message: str, subject: str) -> SafeString:
    """The message with its subject set apart, everything escaped."""
    if not subject or subject not in message:
        return format_html("{}", message)
    before, after = message.split(subject, 1)
    return format_html('{}<b class="mono">{}</b>{}', before, subject, after)


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
