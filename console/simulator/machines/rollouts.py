"""Deployments: which ReplicaSets there should be, how large each is right now, and what a rollout's status says. Pure."""

import hashlib
import math
from collections.abc import Sequence
from datetime import datetime

from console.simulator.machines.client import MERGE, Call, collection
from console.simulator.machines.snapshot import Snapshot, condition, owner
from console.simulator.values import Json, copy, dumps, stamp

GROUP = "apps/v1"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


def _path(body: Json, plural: str) -> str:
    metadata = body["metadata"]
    return f"{collection(plural, metadata['namespace'], GROUP)}/{metadata['name']}"


def hash_of(template: Json) -> str:
    """What tells the pods of one template from those of another."""
    return hashlib.sha256(dumps(template)).hexdigest()[:10]


def _amount(value: object, whole: int, *, up: bool) -> int:
    if isinstance(value, str) and value.endswith("%"):
        part = int(value[:-1]) * whole / 100
        return math.ceil(part) if up else math.floor(part)
    return int(str(value))


def bounds(deployment: Json) -> tuple[int, int]:
    """How many pods there may be at most, and how many must be available at least, while it rolls."""
    wanted = deployment["spec"]["replicas"]
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = _amount(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = _amount(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return wanted + surge, wanted - (missing or int(surge == 0))


def _new_set(deployment: Json, replicas: int, revision: int) -> Call:
    metadata, template = deployment["metadata"], copy(deployment["spec"]["template"])
    known = hash_of(deployment["spec"]["template"])
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: known}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    reference = {
        "apiVersion": GROUP, "kind": "Deployment", "name": metadata["name"], "uid": metadata["uid"], "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    named = {"name": f"{metadata['name']}-{known}", "namespace": metadata["namespace"], "labels": labels}
    selector = copy(deployment["spec"]["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: known}
    body = {
        "metadata": {**named, "annotations": {REVISION: str(revision)}, "ownerReferences": [reference]},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }
    return Call("POST", collection("replicasets", metadata["namespace"], GROUP), body)


def _scaled(replica_set: Json, replicas: int) -> list[Call]:
    if replica_set["spec"]["replicas"] == replicas:
        return []
    return [Call("PATCH", _path(replica_set, "replicasets"), {"spec": {"replicas": replicas}}, MERGE)]


def _available(replica_set: Json) -> int:
    return int((replica_set.get("status") or {}).get("availableReplicas", 0))


def _sizes(deployment: Json, current: Json | None, old: Sequence[Json]) -> list[Call]:
    """The next step of a rollout."""
    wanted = deployment["spec"]["replicas"]
    have, olds = current["spec"]["replicas"] if current else 0, sum(item["spec"]["replicas"] for item in old)
    most, least = bounds(deployment)
    if deployment["spec"]["strategy"]["type"] == "Recreate":
        most, least = (wanted if not olds and not any((item["status"] or {}).get("replicas") for item in old) else 0), 0
    fresh = max(min(wanted, have + max(0, most - have - olds)), min(have, wanted))
    revision = 1 + max((int((item["metadata"].get("annotations") or {}).get(REVISION, 0)) for item in old), default=0)
    calls = _scaled(current, fresh) if current else [_new_set(deployment, fresh, revision)]
    spare = sum(map(_available, [*old, *([current] if current else [])])) - least
    for item in sorted(old, key=_available):
        idle = item["spec"]["replicas"] - _available(item)
        less = idle + max(0, min(_available(item), spare))
        spare -= less - idle
        calls += _scaled(item, max(0, item["spec"]["replicas"] - less))
    return calls


def _status(deployment: Json, current: Json | None, sets: Sequence[Json], now: datetime) -> list[Call]:
    wanted, whole = deployment["spec"]["replicas"], [item.get("status") or {} for item in sets]
    total, ready = (sum(item.get(key, 0) for item in whole) for key in ("replicas", "readyReplicas"))
    updated = ((current or {}).get("status") or {}).get("replicas", 0)
    fresh: Json = {
        "observedGeneration": deployment["metadata"].get("generation", 1), "replicas": total, "updatedReplicas": updated,
        "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": max(0, wanted - ready),
    }  # fmt: skip
    before = deployment.get("status") or {}
    enough, done = ready >= bounds(deployment)[1], updated == total == ready == wanted
    conditions = [
        _condition(before, "Available", enough, "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable", now),
        _condition(before, "Progressing", True, "NewReplicaSetAvailable" if done else "ReplicaSetUpdated", now),
    ]
    if all(before.get(key) == value for key, value in fresh.items()) and before.get("conditions") == conditions:
        return []
    return [Call("PATCH", f"{_path(deployment, 'deployments')}/status", {"status": fresh | {"conditions": conditions}}, MERGE)]


def _condition(status: Json, kind: str, good: bool, reason: str, now: datetime) -> Json:
    state, old = "True" if good else "False", condition({"status": status}, kind)
    if old is not None and (old["status"], old["reason"]) == (state, reason):
        return old
    moved = old["lastTransitionTime"] if old is not None and old["status"] == state else stamp(now)
    return {
        "type": kind,
        "status": state,
        "reason": reason,
        "message": "",
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": moved,
    }


def plan(snapshot: Snapshot, now: datetime) -> list[Call]:
    """One look at all Deployments, and the end of ReplicaSets whose Deployment is gone."""
    calls, owned = [], dict[str, list[Json]]()
    for item in snapshot.replica_sets:
        reference = owner(item)
        if reference is not None and reference["kind"] == "Deployment":
            owned.setdefault(reference["uid"], []).append(item)
    for deployment in snapshot.deployments:
        sets = owned.pop(deployment["metadata"]["uid"], [])
        known = hash_of(deployment["spec"]["template"])
        current = next((item for item in sets if item["metadata"]["labels"].get(HASH) == known), None)
        calls += _sizes(deployment, current, [item for item in sets if item is not current])
        calls += _status(deployment, current, sets, now)
    for item in (item for sets in owned.values() for item in sets):
        calls.append(Call("DELETE", _path(item, "replicasets"), {"preconditions": {"uid": item["metadata"]["uid"]}}))
    return calls
