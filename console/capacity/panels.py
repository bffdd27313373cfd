"""The live parts of a cluster page as html, from a picture alone: the same text on first load, by poll and by socket.

No controls and no roles in here: what is rendered once goes to everybody who may see the cluster. The page's own buttons, slider
and number box stand around these parts and read the `data-*` attributes. Nodes one by one and drains are drawn in `drawing`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from console.capacity.drawing import gauge, words
from console.capacity.drawing.money import amount, rate
from console.capacity.drawing.nodes import ICONS
from console.capacity.picture import Picture


def parts(picture: Picture) -> dict[str, SafeString]:
    """Part name → inner html. The page has one element `data-part="<name>"` for each."""
    return {name: part(picture) for name, part in PARTS.items()}


def render_panel(picture: Picture) -> str:
    """All parts in one piece, as the socket sends them (kind `panel`)."""
    return format_html_join("", '<div data-part="{}">{}</div>', parts(picture).items())


@dataclass(frozen=True)
class Alarm:
    """What is wrong, in a few words for the tab's title, and how its icon looks: amber, red, or as ever."""

    says: str
    look: str


def alarm(picture: Picture) -> Alarm:
    """The most urgent first; nothing where all is well. To wait for capacity is not wrong."""
    states = Counter(line.state for line in picture.lines)
    sick, draining = states["sick"] + states["lost"], states["draining"]
    red = [f"{sick} not Ready"] if sick else []
    if picture.cluster.unreachable_since:
        red.insert(0, "Kubernetes unreachable")
    amber = [f"{draining} draining"] if draining else []
    return Alarm(", ".join(red + amber), "red" if red else "amber" if amber else "")


def _alarm(picture: Picture) -> SafeString:
    found = alarm(picture)
    return format_html('<span data-alarm="{}" data-look="{}"></span>', found.says, found.look)


def _figure(picture: Picture) -> SafeString:
    found = picture.difference
    return format_html("<b>{}</b> allocated of <span data-want>{}</span> desired", found.allocated, found.desired)


def gauge_end(picture: Picture) -> int:
    """GPUs at the right end of the gauge, for the slider that lies over it."""
    return gauge.scale(picture.difference.desired, picture.difference.allocated, picture.step, picture.quota)


def _gauge(picture: Picture) -> SafeString:
    found, step = picture.difference, picture.step
    end = gauge_end(picture)
    low, high = sorted((found.desired, found.allocated))
    level = min(found.allocated + found.joining + picture.offer.could_give_gpus, end)
    return _template(
        "capacity/_panel.html",
        cluster=picture.cluster,
        found=found,
        step=step,
        end=end,
        end_share=gauge.percent,
        low=gauge.percent(low, end),
        between=gauge.percent(high - low, end),
        want=gauge.percent(found.desired, end),
        gives=found.allocated > found.desired,
        at_start=found.desired <= end * 0.04,
        at_end=found.desired >= end * 0.94,
        level_at_end=level >= end * 0.9,
        level=level,
        level_share=gauge.percent(level, end),
        level_clear=level > 0 and abs(level - found.desired) >= end * 0.15,
        ticks=gauge.ticks(end, found.allocated, step),
        rate=picture.price.preemptible,
        on_demand=picture.price.on_demand,
    )


def _below(picture: Picture) -> SafeString:
    found, price = picture.difference, picture.price
    now, most = found.allocated * price.preemptible, found.desired * price.preemptible
    return _template(
        "capacity/_sum.html",
        cluster=picture.cluster,
        terms=words.terms(picture),
        reason=words.reason(picture),
        offer=picture.offer,
        allocated=found.allocated,
        desired=found.desired,
        rate=rate(price.preemptible),
        now=amount(now),
        most=amount(most),
        on_demand_rate=rate(price.on_demand),
        on_demand=amount(found.desired * price.on_demand),
        draining=amount(picture.draining_gpus * price.preemptible) if picture.draining_gpus else "",
    )


def _facts(picture: Picture) -> SafeString:
    return _template(
        "capacity/_facts.html",
        cluster=picture.cluster,
        cost=amount(picture.cost_now),
        saved=amount(max(Decimal(0), picture.on_demand_now - picture.cost_now)),
    )


def _status(picture: Picture) -> SafeString:
    sick = sum(line.state in ("sick", "lost") for line in picture.lines)
    return _template("capacity/_status.html", cluster=picture.cluster, sick=sick)


def _note(picture: Picture) -> SafeString:
    return _template("capacity/_note.html", cluster=picture.cluster)


MOST_WOULD = 20  # sentences of what would be done; beyond, their number says it


def _would(picture: Picture) -> SafeString:
    more = max(0, len(picture.would) - MOST_WOULD)
    return _template("capacity/_would.html", would=picture.would[:MOST_WOULD], more=more)


def _strip(picture: Picture) -> SafeString:
    states = Counter(line.state for line in picture.lines)
    counts = {state: states[state] for state in ICONS}
    return _template("capacity/_strip.html", total=len(picture.lines), waiting=picture.waiting_nodes, counts=counts)


def _count(picture: Picture) -> SafeString:
    return format_html("{}", len(picture.lines))


def _standard(picture: Picture) -> SafeString:
    return format_html("Standard · {}", len(picture.standard))


def _preemptible(picture: Picture) -> SafeString:
    waits = format_html(", waiting {}", picture.waiting_nodes) if picture.waiting_nodes else ""
    return format_html("Preemptible · {}{}", len(picture.preemptible), waits)


WAITS = mark_safe('<b>–</b><span><svg class="i" aria-hidden="true"><use href="#i-clock"/></svg>waits</span>')
MOST_WAITS = 60  # cells for what is not there yet; beyond, the number in the heading says it


def _waits(picture: Picture) -> SafeString:
    since = picture.difference.waiting_since
    says = f"Not yet a node{f', waiting for capacity since {since:%H:%M} UTC' if since else ''}"
    inside = "" if picture.dense else WAITS
    cell = format_html(
        '<li><span class="cell pre waiting" role="img" aria-label="{}" title="{}">{}</span></li>', says, says, inside
    )
    return mark_safe(cell * min(picture.waiting_nodes, MOST_WAITS))  # noqa: S308  (made by format_html)


def _template(name: str, **found: object) -> SafeString:
    return render_to_string(name, found)


PARTS: dict[str, Callable[[Picture], SafeString]] = {
    "alarm": _alarm,
    "status": _status,
    "facts": _facts,
    "note": _note,
    "would": _would,
    "figure": _figure,
    "gauge": _gauge,
    "below": _below,
    "strip": _strip,
    "count": _count,
    "standard": _standard,
    "preemptible": _preemptible,
    "waits": _waits,
}
