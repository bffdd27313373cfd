"""What the page of a script shows: the same few queries for a script without history and for one with a thousand versions."""

from dataclasses import dataclass
from typing import Any

from console.clusters.models import Cluster
from console.pages.overview import Opened
from console.scripts import queries
from console.scripts.checks import LIMIT
from console.scripts.diff import Beside, Difference, beside, difference
from console.scripts.kinds import Kind, kinds_of
from console.scripts.merge import merge
from console.scripts.models import Version
from console.scripts.templates import templates_for
from console.scripts.variables import variables

HISTORY = 30  # versions listed at a time


@dataclass(frozen=True)
class Change:
    """From one version to another; `before` is None where the first came from nothing."""

    before: Version | None
    after: Version
    differs: Difference


@dataclass(frozen=True)
class Clash:
    """Two edits of one version: the one that was saved, the one that was not, and both in one."""

    theirs: Version
    mine: str
    merged: str
    columns: Beside


def page(found: Opened, kind: Kind, version: int | None, against: int | None, before: int | None) -> dict[str, Any]:
    """`version` is the one looked at (the newest where it is None or not there), `against` the one it is compared with."""
    cluster = found.cluster
    listed = queries.history(cluster, kind, HISTORY + 1, before)
    newest_of = queries.currents(cluster)
    newest = newest_of.get(kind.name)
    change = changed(cluster, kind, version or (newest.number if newest is not None else 0), against)
    text = newest.text if newest is not None else ""  # the one text that a list leaves out and this page needs
    return {
        **found.shown("scripts"),
        "kind": kind,
        "kinds": [(one, newest_of.get(one.name)) for one in kinds_of(cluster)],
        "newest": newest,
        "number": newest.number if newest is not None else 0,
        "next": newest.number + 1 if newest is not None else 1,
        "text": text,
        "size": newest.size if newest is not None else 0,
        "limit": LIMIT,
        "versions": listed[:HISTORY],
        "older": listed[HISTORY - 1].number if len(listed) > HISTORY else None,
        "paged": before is not None,
        "change": change,
        "person": found.actor.user.pk if found.actor.user is not None else "",
        "variables": variables(cluster, kind),
        "templates": templates_for(kind),
    }


def changed(cluster: Cluster, kind: Kind, number: int, against: int | None) -> Change | None:
    """From `against`, or from the version before, to version `number`; None where that is not there."""
    other = number - 1 if against is None else against
    found = queries.numbered(cluster, kind, number, other)
    after, before = found.get(number), found.get(other)
    if after is None:
        return None
    return Change(before, after, difference(before.text if before is not None else "", after.text))


def clash(cluster: Cluster, kind: Kind, mine: str, based_on: int) -> Clash | None:
    """None where the version that came between has gone with its cluster."""
    theirs = queries.current(cluster, kind)
    if theirs is None:
        return None
    base = queries.numbered(cluster, kind, based_on).get(based_on)
    merged = merge(base.text if base is not None else "", mine, theirs.text, f"v{theirs.number} by {theirs.saved_by}")
    return Clash(theirs, mine, merged, beside(theirs.text, mine))
