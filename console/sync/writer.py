"""Everything that waits, in one transaction: the only way in which Kubernetes becomes rows.

The watch and the relist both write through here, so what heals is what runs every day. A batch locks its lease first (a
writer that was frozen and replaced is refused: repository-service-tuf/repository-service-tuf-worker#151) and then the cluster,
which lets two writers of one cluster follow each other instead of doubling rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from console.capacity import services as capacity
from console.clusters import leases
from console.clusters.changes import count_allocated
from console.clusters.models import Cluster, KindState
from console.kube.shapes import Kind
from console.sync import connection, ingest, nodes, pods, words
from console.sync.apply import covered, latest, older
from console.sync.errands import Errand, errands
from console.sync.room import KINDS, PICTURE, Complete, Item, Room, Seen, Tick
from console.timeline.changes import Change, change

MOST = 500  # changes in one transaction; measured: batches of 50–200 write 30 times as many rows a second as single ones


def write(room: Room, items: Sequence[Item], now: datetime) -> list[Errand]:
    """Write what waits, up to MOST items. Heartbeats and signs of life cost no query. Raises LeaseLost.

    May be called again with the same items after a failed transaction. What it returns is to be done at the API after the commit.
    """
    for item in items:
        if not isinstance(item, Tick):
            room.hearing[item.kind].hear(item)
    news, after = room.fresh(items)
    found, proof = connection.verdicts(room.hearing, now), room.proof()
    if not news and not found and proof is None:
        room.written(news, after)
        return []
    todo: list[Errand] = []
    with change(now) as made:
        leases.guard(room.held)
        if news or found:
            todo = _apply(made, room, news, found)
        if proof:
            connection.prove(room.cluster_id, proof)
    room.written(news, after)
    for kind, trouble in found.items():
        room.hearing[kind].told(trouble, now)
    room.proved_at = proof or room.proved_at
    return todo


def _apply(made: Change, room: Room, news: Sequence[Seen | Complete], found: connection.Verdicts) -> list[Errand]:
    cluster = next(iter(made.lock(Cluster.objects.filter(pk=room.cluster_id))), None)
    if cluster is None:  # deleted meanwhile; the watcher is about to be told
        return []
    tells_only = not found and all(isinstance(item, Seen) and item.kind == "events" for item in news)
    kinds = {} if tells_only else connection.states(cluster)
    by_kind = {kind: _usable([item for item in news if item.kind == kind], _version(kinds, kind)) for kind in KINDS}
    seen_nodes = nodes.apply(made, cluster, by_kind["nodes"], _version(kinds, "nodes"), room.clock_offset)
    events = [item for item in by_kind["events"] if isinstance(item, Seen) and item.type != "DELETED"]
    # Where a pod was is asked before and after: an Event may tell of one that goes, or that comes, in this batch.
    pods_told = ingest.pod_uids([*room.orphans.values(), *events])
    places = ingest.places(made, cluster, pods_told)
    ended = pods.apply(made, cluster, by_kind["pods"], _version(kinds, "pods"), room.clock_offset)
    places |= ingest.places(made, cluster, pods_told - places.keys())
    _tell_capacity(made, cluster, seen_nodes, ended)
    if seen_nodes.changed:
        count_allocated(made, cluster)
    acts = cluster.mode == Cluster.Mode.ACT
    lines = [line for told in seen_nodes.told if (line := words.line(told, may_act=acts))]
    lines += [line for row, machine in seen_nodes.gone if (line := words.lost(row, machine, made.now))]
    ready = ingest.sort_out(events, places, room.orphans, made.now)
    ingest.record(made, cluster, lines, ready, places, [row for row, _ in seen_nodes.gone], room.pace)
    turned = connection.record(made, cluster, found, kinds) if found else False
    if seen_nodes.changed or turned:
        capacity.wake_pool(cluster.region_id, cluster.gpu_type_id)
    if not tells_only:
        _remember(cluster, kinds, by_kind, found)
    return errands(seen_nodes.told, lines, may_act=acts)


def _usable(items: Sequence[Seen | Complete], version: str) -> list[Seen | Complete]:
    """Without lists that were overtaken: what another writer saw later is in the database already."""
    return [item for item in items if (isinstance(item, Seen) and item.type) or not older(item.version, version)]


def _version(kinds: dict[str, KindState], kind: Kind) -> str:
    state = kinds.get(kind)
    return state.resource_version if state else ""


def _tell_capacity(made: Change, cluster: Cluster, seen: nodes.Nodes, ended: list[capacity.PodEnd]) -> None:
    """Nodes before pods: the one order of locks."""
    concerned = [node for node, _ in seen.noticed] + seen.uncordoned + [row for row, _ in seen.gone]
    if len(concerned) + bool(ended) > 1:
        capacity.hold(made, cluster, concerned, ended)
    if seen.noticed:
        capacity.heed(made, cluster, seen.noticed)
    for row in seen.uncordoned:
        capacity.node_uncordoned_by_person(made, cluster, row.uid)
    for row, _ in seen.gone:
        capacity.node_gone(made, cluster, row.uid)
    if ended:
        capacity.pod_ended(made, cluster, ended)


def _remember(
    cluster: Cluster, kinds: dict[str, KindState], by_kind: dict[Kind, list[Seen | Complete]], found: connection.Verdicts
) -> None:
    """Up to which version and when each kind is complete. A sign of life alone writes nothing here."""
    touched: set[str] = set(found)
    for kind, items in by_kind.items():
        state = kinds.get(kind) or KindState(cluster=cluster, kind=kind)
        for end in (item for item in items if isinstance(item, Complete)):
            state.resource_version, state.complete_at = end.version[:32], end.at
            touched.add(kind)
        highest = latest([item.version for item in items if isinstance(item, Seen) and item.type])
        if kind in PICTURE and highest and not covered(highest, state.resource_version):
            state.resource_version = highest
            touched.add(kind)
        kinds[kind] = state
    KindState.objects.bulk_create(
        [kinds[kind] for kind in sorted(touched)],
        update_conflicts=True,
        unique_fields=["cluster", "kind"],
        update_fields=["resource_version", "complete_at", "error", "error_since"],
    )


def enter(cluster_id: UUID, held: leases.Held) -> Room:
    """A room for a lease just taken. What is in the database is read before anything is listed, so that it can be compared."""
    versions = KindState.objects.filter(cluster=cluster_id, kind__in=PICTURE).values_list("kind", "resource_version")
    return Room(cluster_id, held, dict(versions))
