"""Taking preemptible machines back now, by number or by name: for fleet operators, and systems outside that have notice.

A request may come twice, because its answer was lost, so one with a key is answered once: the row that holds the answer is
written by the transaction that starts the drains, under the cluster's lock. Of named nodes those that cannot go are refused one
by one and hold up none of the others (aws/aws-node-termination-handler#272).
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
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
from console.capacity.reclaims.naming import STANDING, cannot, named
from console.capacity.reclaims.refusals import ASKED, Refusal, refuse
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.http import Conflict, Forbidden, Unprocessable
from console.timeline.changes import Change, change
from console.timeline.who import doer

MOST_NODES = 1000  # named in one request
LONGEST_KEY = 255


@dataclass(frozen=True)
class Ask:
    """What somebody wants: so many GPUs, or these nodes (as they came: anything may stand in the list), `whole` all or none."""

    gpus: int | None
    nodes: Sequence[Any] | None
    drill: bool
    whole: bool = False

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
    whole: bool = False,
) -> Reclaim:
    """Take preemptible machines of a cluster back now; the target stays, so they are refilled. For fleet operators.

    Either `gpus`, of those first whose loss costs least, or `nodes` by name. `drill` asks for a report at the end. The same
    `key` gets the same answer, and with another request Conflict. Raises Unprocessable for a number that is no whole number of
    nodes or more than there is, and where none of the named nodes can go (said and counted all the same). `whole` is a person's
    choice of nodes, who sees the refusal: where one of them cannot go, none does, and nothing is written.
    """
    if not actor.fleet_operator:
        raise Forbidden("Only a fleet operator takes GPUs back. An administrator can name one.")
    ask = Ask(gpus, nodes, drill, whole)
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
        raise cannot(chosen.refused, len(chosen.refused))
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
    assert ask.nodes is not None
    going, refused = named(made.lock, cluster, ask.nodes, made.now + timedelta(seconds=settings.DRAIN_WINDOW))
    if ask.whole and refused:
        raise cannot(refused, len(going) + len(refused))
    why = ask.why(actor)
    return Chosen([Start(one.machine, one.node, Drain.Cause.PREEMPTED, why) for one in going], refused)


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
