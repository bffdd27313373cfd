"""Jobs, ReplicaSets and DaemonSets: how many pods there should be, and what their status says. Pure.

A pod that is on its way out no longer counts, so its replacement is there, Pending, while it still uses its grace: that is
what makes a reclaim visible in a cluster.
"""

from collections.abc import Sequence
from datetime import datetime

from console.simulator.machines.client import MERGE, Call, collection, pod_path
from console.simulator.machines.scheduler import matches_node, tolerates
from console.simulator.machines.snapshot import Snapshot, active, finished, is_true, owner
from console.simulator.values import Json, copy, stamp

GROUPS = {"Job": ("batch/v1", "jobs"), "ReplicaSet": ("apps/v1", "replicasets"), "DaemonSet": ("apps/v1", "daemonsets")}
DAEMON_TOLERATES = (
    ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"), ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"),
)  # fmt: skip


def new_pod(parent: Json, kind: str) -> Json:
    """The next pod of a workload."""
    template, metadata = copy(parent["spec"]["template"]), parent["metadata"]
    reference = {
        "apiVersion": GROUPS[kind][0], "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    named = {"generateName": f"{metadata['name']}-", "namespace": metadata["namespace"], "ownerReferences": [reference]}
    return {"metadata": {**(template.get("metadata") or {}), **named}, "spec": template["spec"]}


def daemon_pod(parent: Json, node: str) -> Json:
    """A DaemonSet's pod for one node: bound there by affinity, and not put off by a cordon."""
    pod = new_pod(parent, "DaemonSet")
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    pod["spec"]["affinity"] = {"nodeAffinity": terms}
    pod["spec"]["tolerations"] = [
        *({"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in DAEMON_TOLERATES),
        *(item for item in pod["spec"].get("tolerations") or [] if "tolerationSeconds" not in item),
    ]
    return pod


def aimed_at(pod: Json) -> str:
    """The node of a DaemonSet's pod, bound or not yet."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    required = (pod["spec"].get("affinity") or {}).get("nodeAffinity", {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    fields = [field for term in required.get("nodeSelectorTerms") or [] for field in term.get("matchFields") or []]
    return str(fields[0]["values"][0]) if fields else ""


def _create(parent: Json, kind: str, count: int) -> list[Call]:
    path = collection("pods", parent["metadata"]["namespace"])
    return [Call("POST", path, new_pod(parent, kind)) for _ in range(count)]


def _delete(pod: Json) -> Call:
    return Call("DELETE", pod_path(pod), {"preconditions": {"uid": pod["metadata"]["uid"]}})


def _surplus(pods: Sequence[Json], count: int) -> list[Call]:
    """The least useful go first: not placed, then not ready, then youngest."""
    ranked = sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
    ranked.sort(key=lambda pod: (bool(pod["spec"].get("nodeName")), is_true(pod, "Ready")))
    return [_delete(pod) for pod in ranked[: max(0, count)]]


def _status(parent: Json, kind: str, status: Json) -> list[Call]:
    current = parent.get("status") or {}
    if all(current.get(key) == value for key, value in status.items()):
        return []
    group, plural = GROUPS[kind]
    path = f"{collection(plural, parent['metadata']['namespace'], group)}/{parent['metadata']['name']}/status"
    return [Call("PATCH", path, {"status": status}, MERGE)]


def _replica_set(parent: Json, pods: Sequence[Json]) -> list[Call]:
    wanted, running = parent["spec"]["replicas"], [pod for pod in pods if active(pod)]
    ready = sum(is_true(pod, "Ready") for pod in running)
    calls = _create(parent, "ReplicaSet", wanted - len(running)) + _surplus(running, len(running) - wanted)
    # A failed replica is replaced and left for the collector; here it goes at once, so that lists stay readable.
    calls += [_delete(pod) for pod in pods if finished(pod) and "deletionTimestamp" not in pod["metadata"]]
    counts = {"replicas": len(running), "fullyLabeledReplicas": len(running), "readyReplicas": ready, "availableReplicas": ready}
    return calls + _status(parent, "ReplicaSet", counts | {"observedGeneration": parent["metadata"].get("generation", 1)})


def _job(parent: Json, pods: Sequence[Json], now: datetime) -> list[Call]:
    """Pods that a drain ended, whatever their code, are replaced: a training job is done when its own run is."""
    spec, status = parent["spec"], parent.get("status") or {}
    if any(item["status"] == "True" for item in status.get("conditions") or []):
        return []
    running = [pod for pod in pods if active(pod)]
    done = sum(pod["status"].get("phase") == "Succeeded" and "deletionTimestamp" not in pod["metadata"] for pod in pods)
    wanted = max(0, min(spec["parallelism"], spec["completions"] - done))
    calls = _create(parent, "Job", wanted - len(running)) + _surplus(running, len(running) - wanted)
    ready = sum(is_true(pod, "Ready") for pod in running)
    fresh: Json = {"active": len(running), "ready": ready, "startTime": status.get("startTime") or stamp(now), "succeeded": done}
    if done >= spec["completions"]:
        fresh["completionTime"] = stamp(now)
        fresh["conditions"] = [{"type": "Complete", "status": "True", "lastTransitionTime": stamp(now)}]
    return calls + _status(parent, "Job", fresh)


def _daemon_set(parent: Json, pods: Sequence[Json], nodes: Sequence[Json]) -> list[Call]:
    chosen = []
    for node in nodes:
        probe = daemon_pod(parent, node["metadata"]["name"])
        hard = [item for item in node["spec"].get("taints") or [] if item["effect"] != "PreferNoSchedule"]
        ignored = ("node.kubernetes.io/not-ready",)
        if matches_node(probe, node) and all(tolerates(probe, item) or item["key"] in ignored for item in hard):
            chosen.append(node["metadata"]["name"])
    held: dict[str, Json] = {}
    calls = []
    for pod in sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], int(pod["metadata"]["resourceVersion"]))):
        if finished(pod) and "deletionTimestamp" not in pod["metadata"]:
            calls.append(_delete(pod))
        elif active(pod) and held.setdefault(aimed_at(pod), pod) is not pod:
            calls.append(_delete(pod))  # a second one of a node, made on an old picture: the oldest stays
    path = collection("pods", parent["metadata"]["namespace"])
    calls += [Call("POST", path, daemon_pod(parent, name)) for name in chosen if name not in held]
    ready = sum(is_true(pod, "Ready") for pod in held.values())
    status = dict.fromkeys(("currentNumberScheduled", "updatedNumberScheduled"), len(held))
    status |= dict.fromkeys(("numberReady", "numberAvailable"), ready)
    status |= {"desiredNumberScheduled": len(chosen), "numberMisscheduled": 0}
    status["observedGeneration"] = parent["metadata"].get("generation", 1)
    return calls + _status(parent, "DaemonSet", status)


def _owned(snapshot: Snapshot) -> dict[str, list[Json]]:
    by_owner: dict[str, list[Json]] = {}
    for pod in snapshot.pods:
        reference = owner(pod)
        if reference is not None:
            by_owner.setdefault(reference["uid"], []).append(pod)
    return by_owner


def plan(snapshot: Snapshot, now: datetime) -> list[Call]:
    """One look at all workloads, and the end of pods whose owner is gone."""
    owned, calls = _owned(snapshot), []
    parents = {}
    for parent in snapshot.replica_sets:
        parents[parent["metadata"]["uid"]] = parent
        calls += _replica_set(parent, owned.get(parent["metadata"]["uid"], []))
    for parent in snapshot.jobs:
        parents[parent["metadata"]["uid"]] = parent
        calls += _job(parent, owned.get(parent["metadata"]["uid"], []), now)
    for parent in snapshot.daemon_sets:
        parents[parent["metadata"]["uid"]] = parent
        calls += _daemon_set(parent, owned.get(parent["metadata"]["uid"], []), snapshot.nodes)
    for uid, pods in owned.items():
        reference = owner(pods[0])
        if uid not in parents and reference is not None and reference["kind"] in GROUPS:
            calls += [_delete(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return calls
