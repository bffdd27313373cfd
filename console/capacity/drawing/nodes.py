"""A node as html: its cell of the strip and its row of the table, the same text on first load, by poll and by socket.

Plain formatting of escaped words, no template: a page may have a thousand cells, and they took a quarter of its time.
"""

from collections.abc import Iterable
from html import escape
from urllib.parse import quote
from uuid import UUID

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from console.capacity.drawing.lines import Line

ICONS = {"booting": "i-dots", "draining": "i-leave", "sick": "i-x", "held": "i-lock", "lost": "i-about"}
LOOKS = {"ready": "tide", "draining": "amber", "sick": "red"}
WORDS = {
    "ready": "Ready",
    "draining": "Draining",
    "booting": "Joining",
    "sick": "Not Ready",
    "held": "Cordoned",
    "lost": "Not heard from",
}


def cells(lines: Iterable[Line], dense: bool, cluster_id: UUID) -> SafeString:
    """Cells of the strip, each a link to its row of the nodes page."""
    page = reverse("nodes", args=[cluster_id])
    return mark_safe("".join(_cell(line, dense, page) for line in lines))  # noqa: S308  (escaped below)


def render_cell(line: Line, dense: bool, cluster_id: UUID) -> SafeString:
    """One node as a cell (kind `cell` when sent alone). Dense: a small square, its sentence on hover and for screen readers."""
    return cells([line], dense, cluster_id)


def _cell(line: Line, dense: bool, page: str) -> str:
    look = f"{'pre' if line.preemptible else 'std'}{'' if line.state == 'ready' else f' {line.state}'}"
    says = f"{escape(line.name)}: {escape(line.says)}"
    return (
        f'<li data-key="cell-{line.key}" data-node="{line.node_id}" data-sort="{escape(line.sort)}">'
        f'<a class="cell {look}" href="{page}?node={line.key}#node-{line.key}"'
        + (f' title="{says}">' if dense else f">{_inside(line, says)}")
        + "</a></li>"
    )


def _inside(line: Line, says: str) -> str:
    icon = ICONS.get(line.state)
    mark = f'<svg class="i" aria-hidden="true"><use href="#{icon}"/></svg>' if icon else ""
    return (
        f'<b>{escape(line.short)}</b><span>{mark}{_clock(line)}</span><span class="vh">, {says}</span>'
        f'<span class="tip" aria-hidden="true"><b>{escape(line.name)}</b>{escape(line.says)}</span>'
    )


def _clock(line: Line) -> str:
    """A word, a length that the browser counts up, or the time left that it counts down."""
    if line.until is not None:
        return f'<span data-until="{line.until.isoformat()}"></span>'
    return escape(line.word) if line.word else f'<span data-since="{line.since.isoformat()}"></span>'


def render_node(line: Line, cluster_id: UUID) -> SafeString:
    """One row of the nodes table (kind `node`). Its last cell is empty: the page puts its buttons there."""
    name, cordoned = escape(line.name), int(line.unschedulable)
    until = f", {_clock(line)}" if line.until else ""
    says = line.says if line.state != "ready" else "Cordoned" if line.unschedulable else ""
    return mark_safe(  # noqa: S308  (every word from outside is escaped)
        f'<tr id="node-{line.key}" data-key="node-{line.key}" data-node="{line.node_id}" data-name="{name}"'
        f' data-sort="{escape(line.sort)}" data-state="{line.state}" data-cordoned="{cordoned}">\n'
        f'<td><span class="name mono">{name}</span></td>\n'
        f'<td data-label="Class">{"preemptible" if line.preemptible else "standard"}</td>\n'
        f'<td class="num" data-label="GPUs">{line.gpus}</td>\n'
        f'<td data-label="State" class="state"><span class="badge {LOOKS.get(line.state, "")}"><svg class="i" aria-hidden="true">'
        f'<use href="#{ICONS.get(line.state, "i-check")}"/></svg>{WORDS[line.state]}{until}</span>'
        f"{f'<small>{escape(says)}</small>' if says else ''}</td>\n"
        f'<td class="num" data-label="For"><span data-since="{line.since.isoformat()}"></span></td>\n'
        f'<td data-label="kubelet" class="muted">{escape(line.kubelet) or "–"}</td>\n'
        f'<td data-label="If reclaimed">{_what_if(line, cluster_id)}</td>\n'
        f'<td class="num" data-actions></td>\n</tr>'
    )


def _what_if(line: Line, cluster_id: UUID) -> str:
    """The way to a preview of this node, where it could be named in one."""
    if not line.preemptible:
        return '<span class="muted">never</span>'
    if line.state == "draining" or line.node_id in ("", line.key):  # not shown by Kubernetes, or no machine of ours
        return '<span class="muted">–</span>'
    name = escape(line.name)
    return (
        f'<a href="{reverse("preview", args=[cluster_id])}?nodes={quote(line.name)}" aria-label="Preview of {name}">Preview</a>'
    )
