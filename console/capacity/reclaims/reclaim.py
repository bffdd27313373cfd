"""Taking preemptible machines back now, by number or by name: for fleet operators, and systems outside that have notice.

A request may come twice, because its answer was lost, so one with a key is answered once: the row that holds the answer is
written by the transaction that starts the drains, under the cluster's lock. Of named nodes those that cannot go are refused one
by one and hold up none of the others (aws/aws-node-termination-handler#272).
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from console.accounts.access import Actor
from console.accounts.services import audit
from console.capacity.asked import whole_nodes
from console.capacity.drains.changes import Start, start_drains
from console.capacity.models import Drain, Pool, Reclaim
from console.capacity.pools.inputs import machine_views, machines_of
from console.capacity.pools.victims import cheapest
from console.capacity.pools.wakes import wake_pool
from console.capacity.reclaims.refusals import ASKED, Refusal, refuse, shown
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.http import Conflict, Forbidden, Unprocessable
from console.timeline.changes import Change, change
from console.timeline.who import doer

STANDING = (Machine.State.BOOTING, Machine.State.JOINED)  # what was only asked for is not there to be taken
MOST_NODES = 1000  # named in one request
LONGEST_KEY = 255
NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Ask:
    """What somebody wants: so many GPUs, or these nodes (as they came: anything may stand in the list)."""

    gpus: int | None
    nodes: Sequence[Any] | None
    drill: bool

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([self.gpus, self.nodes, self.drill], default=str).encode()).hexdigest()

    def why(self, actor: Actor) -> str:
        """The second half of "… goes back:"."""
        if self.drill:
            return f"a drill by {actor.name}"
        return f"{actor.name} takes {f'{self.gpus} GPUs' if self.nodes is None else 'it'} back"


@dataclass(frozen=True)
class Chosen:
    """Who goes, and which of the named ones cannot."""

    starts: list[Start]
    refused: list[Refusal]


def reclaim(
    actor: Actor,
    cluster: Cluster,
    gpus: int | None = None,
    nodes: Sequence[Any] | None = None,
    drill: bool = False,
    key: str | None = None,
) -> Reclaim:
    """Take preemptible machines of a cluster back now; the target stays, so they are refilled. For fleet operators.

    Either `gpus`, of those first whose loss costs least, or `nodes` by name. `drill` asks for a report at the end. The same
    `key` gets the same answer, and with another request Conflict. Raises Unprocessable for a number that is no whole number of
    nodes or more than there is, and where none of the named nodes can go (said and counted all the same).
    """
    if not actor.fleet_operator:
        raise Forbidden("Only a fleet operator takes GPUs back. An administrator can name one.")
    ask = Ask(gpus, nodes, drill)
    _check(ask, key, cluster.gpu_type.gpus_per_node)
    with change() as made:
        mine = made.lock(Cluster.objects.select_related("project", "gpu_type").filter(pk=cluster.pk))[0]
        known = Reclaim.objects.filter(cluster=mine, key=key).first() if key is not None else None
        if known is not None:
            return _same(known, ask)
        if mine.mode == Cluster.Mode.OBSERVE:
            raise Conflict(f"{mine.name} is only observed: nothing is ever taken from it.", code="observed")
        chosen = _by_name(made, mine, ask, actor) if nodes is not None else _by_number(made, mine, ask, actor)
        row = _carry_out(made, mine, ask, actor, key, chosen) if chosen.starts else None
        refuse(made, mine, ASKED, chosen.refused, doer(actor))
    if row is None:
        raise _none_goes(chosen.refused)
    return row


def _check(ask: Ask, key: str | None, step: int) -> None:
    if (ask.gpus is None) == (ask.nodes is None):
        raise Unprocessable(
            "Say either num_gpus or nodes: how many GPUs go back, or which nodes.", param="num_gpus", code="one_of"
        )
    if ask.gpus is not None:
        whole_nodes(ask.gpus, step, "What is taken back", "num_gpus")
        if ask.gpus < step:
            raise Unprocessable(
                f"At least one node is taken back: {step} GPUs.", param="num_gpus", code="nothing", nearest=[step]
            )
    if ask.nodes is not None and not 0 < len(ask.nodes) <= MOST_NODES:
        raise Unprocessable(f"Name 1 to {MOST_NODES} nodes, not {len(ask.nodes)}.", param="nodes", code="nothing")
    if key is not None and not (key.strip() and len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise Unprocessable(
            f"An Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters.", param="Idempotency-Key", code="bad_key"
        )


def _same(known: Reclaim, ask: Ask) -> Reclaim:
    if known.body_hash != ask.fingerprint:
        raise Conflict(
            f"This Idempotency-Key belongs to another request, of {known.asked_at:%Y-%m-%d %H:%M:%S} UTC. Take a new key.",
            param="Idempotency-Key",
            code="key_used",
            reclaim_id=str(known.pk),
        )
    return known


def _by_number(made: Change, cluster: Cluster, ask: Ask, actor: Actor) -> Chosen:
    """Those whose loss costs least. All of them or none."""
    assert ask.gpus is not None
    step = cluster.gpu_type.gpus_per_node
    pool = Pool.objects.get(region=cluster.region_id, gpu_type=cluster.gpu_type_id)
    machines = made.lock(Machine.objects.filter(cluster=cluster, compute_class=ComputeClass.PREEMPTIBLE, state__in=STANDING))
    nodes = {row.machine_id: row for row in made.lock(Node.objects.filter(cluster=cluster, machine__in=machines))}
    by_id = {machine.pk: machine for machine in machines}
    views = machine_views(pool, list(Cluster.objects.filter(machines_of(pool))), None, made.now)
    victims = cheapest([view for view in views if view.id in by_id and view.counts], ask.gpus // step)
    if len(victims) < ask.gpus // step:
        there = len(victims) * step
        raise Unprocessable(
            f"{cluster.name} has {there} preemptible GPUs to take back, not {ask.gpus}.",
            param="num_gpus",
            code="too_many",
            most=there,
        )
    why = ask.why(actor)
    return Chosen([Start(by_id[victim.id], nodes.get(victim.id), Drain.Cause.PREEMPTED, why) for victim in victims], [])


def _by_name(made: Change, cluster: Cluster, ask: Ask, actor: Actor) -> Chosen:
    """Each named node once, in the order of the request. Four queries, however many are named."""
    assert ask.nodes is not None
    wanted = list({json.dumps(name, default=str): name for name in ask.nodes}.values())
    names = [name for name in wanted if isinstance(name, str) and NODE_NAME.fullmatch(name)]
    alive = Machine.objects.filter(cluster=cluster, node_name__in=names)
    machines = {row.node_name: row for row in made.lock(alive.filter(state__in=(*Machine.ALIVE, Machine.State.LEAVING)))}
    nodes = {row.name: row for row in made.lock(Node.objects.filter(cluster=cluster, name__in=names))}
    drains = {row.machine_id: row for row in made.lock(Drain.objects.filter(machine__in=machines.values(), state__in=Drain.OPEN))}
    latest = made.now + timedelta(seconds=settings.DRAIN_WINDOW)
    chosen = Chosen([], [])
    for name in wanted:
        refusal = _no_name(name)
        if refusal is None:
            machine, node = machines.get(name), nodes.get(name)
            drain = drains.get(machine.pk) if machine is not None else None
            refusal = _cannot_go(cluster, name, machine, node) or (_goes_already(drain, latest) if drain is not None else None)
            if refusal is None and machine is not None:
                mine = node if node is not None and node.machine_id == machine.pk else None
                chosen.starts.append(Start(machine, mine, Drain.Cause.PREEMPTED, ask.why(actor)))
        if refusal is not None:
            chosen.refused.append(refusal)
    return chosen


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


def _goes_already(drain: Drain, until: datetime) -> Refusal | None:
    """A second notice only moves a deadline earlier; one that would move nothing is refused. A scale-down is preempted."""
    emptied = drain.state in {Drain.State.DRAINED, Drain.State.TIMED_OUT}
    if not emptied and (drain.cause != Drain.Cause.PREEMPTED or until < drain.deadline):
        return None
    name = drain.node_name
    return Refusal(name, "draining", f"{name} is draining already, gone by {drain.deadline:%H:%M:%S} UTC.")


def _carry_out(made: Change, cluster: Cluster, ask: Ask, actor: Actor, key: str | None, chosen: Chosen) -> Reclaim:
    row = Reclaim(
        cluster=cluster,
        asked_at=made.now,
        asked_by=actor.name[:200],
        num_gpus=ask.gpus,
        drill=ask.drill,
        key=key,
        body_hash=ask.fingerprint,
    )
    drains = start_drains(made, cluster, chosen.starts, actor.name, made.now, actor=doer(actor), reclaim=row)
    row.answer = _answer(row.pk, drains, chosen.refused)
    row.save(force_insert=True)
    names = [drain.node_name for drain in drains]
    gpus = sum(start.machine.gpus for start in chosen.starts)
    audit(
        actor,
        "cluster.drill" if ask.drill else "cluster.reclaim",
        cluster.name,
        cluster.project,
        after={"gpus": gpus, "nodes": names},
    )
    wake_pool(cluster.region_id, cluster.gpu_type_id)
    return row


def _answer(reclaim_id: UUID, drains: Sequence[Drain], refused: Sequence[Refusal]) -> dict[str, Any]:
    """What the API says, kept word for word for whoever asks again with the same key."""
    return {
        "reclaim_id": str(reclaim_id),
        "drains": [
            {"drain_id": str(drain.pk), "node_name": drain.node_name, "deadline": drain.deadline.isoformat()} for drain in drains
        ],
        "refused": [vars(refusal) for refusal in refused],
    }


def _none_goes(refused: Sequence[Refusal]) -> Unprocessable:
    first = refused[0]
    message = first.message if len(refused) == 1 else f"None of these nodes can be taken back. {first.message}"
    return Unprocessable(message, param="nodes", code=first.code, refused=[vars(refusal) for refusal in refused])
