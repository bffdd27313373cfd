"""What a cluster does about its nodes: taints that follow their state, machines not heard of, pods without a node. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from console.simulator.machines import said
from console.simulator.machines.client import MERGE, STRATEGIC, Call, pod_path
from console.simulator.machines.scheduler import tolerates
from console.simulator.machines.snapshot import Snapshot, condition, finished, is_true
from console.simulator.values import Json, instant, stamp

GRACE = timedelta(seconds=40)  # node-monitor-grace-period's old default, which most clusters still run with
ORPHAN_SECONDS = 40  # the pod collector's quarantine
NOT_READY, UNREACHABLE, CORDONED = (f"node.kubernetes.io/{what}" for what in ("not-ready", "unreachable", "unschedulable"))
OURS = (NOT_READY, UNREACHABLE, CORDONED)
SILENT = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


def last_sign(node: Json, lease: Json | None) -> datetime | None:
    """The last proof of life: its Lease, or the heartbeat in its status."""
    signs = [instant((lease or {}).get("spec", {}).get("renewTime"))]
    signs += [instant(item.get("lastHeartbeatTime")) for item in node.get("status", {}).get("conditions") or []]
    return max((sign for sign in signs if sign is not None), default=None)


def lost(snapshot: Snapshot, now: datetime) -> list[Json]:
    """The nodes whose kubelet has been silent too long and that still count as heard."""
    found = []
    for node in snapshot.nodes:
        ready = condition(node, "Ready")
        sign = last_sign(node, snapshot.leases.get(node["metadata"]["name"]))
        if ready and ready["status"] != "Unknown" and sign and now - sign > GRACE:
            found.append(node)
    return found


def _silence(node: Json, pods: Iterable[Json], now: datetime) -> list[Call]:
    """Say that nobody knows: the node's conditions, and its pods' readiness."""
    name = node["metadata"]["name"]
    conditions = [
        {**item, "status": "Unknown", "lastTransitionTime": stamp(now), **SILENT} for item in node["status"]["conditions"]
    ]
    calls = [Call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": conditions}}, STRATEGIC)]
    calls.append(said.node_controller(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady", now))
    for pod in pods:
        if pod["spec"].get("nodeName") == name and is_true(pod, "Ready"):
            ready = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(now)}
            calls.append(Call("PATCH", pod_path(pod, "status"), {"status": {"conditions": [ready]}}, STRATEGIC))
            calls.append(said.kubelet_of_pod(pod, "NodeNotReady", "Node is not ready", now, kind="Warning"))
    return calls


def wanted_taints(node: Json, now: datetime) -> list[Json]:
    """The taints a node should have: foreign ones as they are, ours by its state."""
    current = node["spec"].get("taints") or []
    ready = condition(node, "Ready")
    wanted: list[tuple[str, str]] = []
    if node["spec"].get("unschedulable"):
        wanted.append((CORDONED, "NoSchedule"))
    # A node that never said anything keeps no taint: admission's is lifted, and 1.36 leaves it at that.
    if ready is not None and ready["status"] != "True":
        key = UNREACHABLE if ready["status"] == "Unknown" else NOT_READY
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    kept = [item for item in current if item["key"] not in OURS or (item["key"], item["effect"]) in wanted]
    have = {(item["key"], item["effect"]) for item in kept}
    return kept + [{"key": key, "effect": effect, "timeAdded": stamp(now)} for key, effect in wanted if (key, effect) not in have]


def _retaint(node: Json, now: datetime) -> list[Call]:
    wanted = wanted_taints(node, now)
    if wanted == (node["spec"].get("taints") or []):
        return []
    # With the version it was read at: a taint that somebody adds in between is not lost but met at the next look.
    body = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": wanted or None}}
    return [Call("PATCH", f"/api/v1/nodes/{node['metadata']['name']}", body, MERGE)]


def _evictions(snapshot: Snapshot, now: datetime) -> list[Call]:
    """Pods whose toleration of a NoExecute taint has run out."""
    calls = []
    nodes = {node["metadata"]["name"]: node for node in snapshot.nodes}
    for pod in snapshot.pods:
        node = nodes.get(pod["spec"].get("nodeName", ""))
        if node is None or "deletionTimestamp" in pod["metadata"] or finished(pod):
            continue
        for taint in node["spec"].get("taints") or []:
            if taint["effect"] == "NoExecute" and not _endures(pod, taint, now):
                calls.append(Call("DELETE", pod_path(pod), {"preconditions": {"uid": pod["metadata"]["uid"]}}))
                break
    return calls


def _endures(pod: Json, taint: Json, now: datetime) -> bool:
    if not tolerates(pod, taint):
        return False
    matching = [item for item in pod["spec"].get("tolerations") or [] if item.get("key") == taint["key"]]
    limits = [item["tolerationSeconds"] for item in matching if "tolerationSeconds" in item]
    since = instant(taint.get("timeAdded"))
    return not limits or since is None or now - since < timedelta(seconds=min(limits))


def orphans(snapshot: Snapshot) -> list[Json]:
    """Pods bound to a node that does not exist."""
    names = {node["metadata"]["name"] for node in snapshot.nodes}
    return [pod for pod in snapshot.pods if pod["spec"].get("nodeName") and pod["spec"]["nodeName"] not in names]


def collect(pods: Iterable[Json]) -> list[Call]:
    """End pods whose machine is gone for good: Failed first, then deleted with grace 0."""
    calls = []
    for pod in pods:
        if not finished(pod):
            why = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
            }
            calls.append(Call("PATCH", pod_path(pod, "status"), {"status": {"phase": "Failed", "conditions": [why]}}, STRATEGIC))
        calls.append(Call("DELETE", pod_path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}))
    return calls


def plan(snapshot: Snapshot, now: datetime) -> list[Call]:
    """One look at all nodes."""
    calls = [call for node in lost(snapshot, now) for call in _silence(node, snapshot.pods, now)]
    calls += [call for node in snapshot.nodes for call in _retaint(node, now)]
    return calls + _evictions(snapshot, now)
