"""Nodes asked for by name: each is a machine that can go, or is refused with the sentence why.

A preview and the reclaim itself ask here, so that what the one promises the other does.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from console.capacity.models import Drain
from console.capacity.reclaims.refusals import Refusal, said, shown
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.http import Unprocessable

STANDING = (Machine.State.BOOTING, Machine.State.JOINED)  # what was only asked for is not there to be taken
NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
LOOK_UP = "Take the names from the cluster's Nodes page."
ADVICE = {
    "empty": LOOK_UP,
    "malformed": LOOK_UP,
    "unknown": LOOK_UP,
    "standard": "Name preemptible nodes.",
    "foreign": "Drain it with kubectl, and end its machine where it was made.",
    "draining": "Leave it out.",
}

Rows = Callable[[QuerySet[Any]], list[Any]]  # how rows are read: `list`, or a change's `lock`


@dataclass(frozen=True)
class Named:
    """One that can go. `node` is None until Kubernetes shows it."""

    machine: Machine
    node: Node | None


def named(rows: Rows, cluster: Cluster, names: Sequence[Any], latest: datetime) -> tuple[list[Named], list[Refusal]]:
    """Each name once, in the order of the request; anything may stand in it. Three queries, however many are named.

    `latest` is when a machine that goes now would be gone: one that goes by then already is refused.
    """
    wanted = list({json.dumps(name, default=str): name for name in names}.values())
    well_formed = [name for name in wanted if isinstance(name, str) and NODE_NAME.fullmatch(name)]
    alive = Machine.objects.filter(cluster=cluster, node_name__in=well_formed)
    machines = {row.node_name: row for row in rows(alive.filter(state__in=(*Machine.ALIVE, Machine.State.LEAVING)))}
    nodes = {row.name: row for row in rows(Node.objects.filter(cluster=cluster, name__in=well_formed))}
    drains = {row.machine_id: row for row in rows(Drain.objects.filter(machine__in=machines.values(), state__in=Drain.OPEN))}
    going: list[Named] = []
    refused: list[Refusal] = []
    for name in wanted:
        refusal = _no_name(name)
        if refusal is None:
            machine, node = machines.get(name), nodes.get(name)
            drain = drains.get(machine.pk) if machine is not None else None
            refusal = _cannot_go(cluster, name, machine, node) or (_goes_already(drain, latest) if drain is not None else None)
            if refusal is None and machine is not None:
                going.append(Named(machine, node if node is not None and node.machine_id == machine.pk else None))
        if refusal is not None:
            refused.append(refusal)
    return going, refused


def cannot(refused: Sequence[Refusal], asked: int) -> Unprocessable:
    """Why nothing goes, and what to do about it. `asked` is how many were named."""
    none = "None of these nodes can be taken back. " if len(refused) > 1 and len(refused) == asked else ""
    advice = " ".join(dict.fromkeys(ADVICE[refusal.code] for refusal in refused if refusal.code in ADVICE))
    message = f"{none}{said(refused)} {advice}".strip()
    return Unprocessable(message, param="nodes", code=refused[0].code, refused=[vars(refusal) for refusal in refused])


def _no_name(name: object) -> Refusal | None:
    if isinstance(name, str) and not name.strip():
        return Refusal("", "empty", "An empty name names no node.")
    if not isinstance(name, str) or not NODE_NAME.fullmatch(name):
        return Refusal(shown(name), "malformed", f"{shown(name)} cannot be the name of a node.")
    return None


def _cannot_go(cluster: Cluster, name: str, machine: Machine | None, node: Node | None) -> Refusal | None:
    if machine is None and node is None:
        return Refusal(name, "unknown", f"{cluster.name} has no node {name}.")
    if machine is None:
        return Refusal(name, "foreign", f"{name} is no machine of Halftide's.")
    if machine.compute_class != ComputeClass.PREEMPTIBLE:
        return Refusal(name, "standard", f"{name} is a standard node: it is never taken back.")
    if machine.state == Machine.State.ASKED:
        return Refusal(name, "unknown", f"{name} was only asked for: there is nothing to take back yet.")
    if machine.state not in STANDING:
        return Refusal(name, "draining", f"{name} is on its way out already.")
    return None


def _goes_already(drain: Drain, latest: datetime) -> Refusal | None:
    """A second notice only moves a deadline earlier; one that would move nothing is refused. A scale-down is preempted."""
    emptied = drain.state in {Drain.State.DRAINED, Drain.State.TIMED_OUT}
    if not emptied and (drain.cause != Drain.Cause.PREEMPTED or latest < drain.deadline):
        return None
    name = drain.node_name
    return Refusal(name, "draining", f"{name} is draining already, gone by {drain.deadline:%H:%M:%S} UTC.")
