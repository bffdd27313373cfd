"""Which pod goes where: selector, affinity, taints, cordon, GPUs. Pure, and of the real scheduler only what shows."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from console.simulator.kubernetes.selectors import Requirement, labels_match
from console.simulator.machines import said
from console.simulator.machines.client import STRATEGIC, Call, pod_path
from console.simulator.machines.snapshot import GPU, Snapshot, condition, finished, gpus
from console.simulator.values import Json, stamp

MAX_PODS = 110


@dataclass
class Room:
    """What is left on a node while pods are being placed."""

    gpus: int
    pods: int


def tolerates(pod: Json, taint: Json) -> bool:
    """Whether one of the pod's tolerations covers a taint."""
    for item in pod["spec"].get("tolerations") or []:
        if item.get("effect") not in (None, "", taint["effect"]):
            continue
        if not item.get("key") and item.get("operator") == "Exists":
            return True
        if item.get("key") == taint["key"] and (
            item.get("operator") == "Exists" or item.get("value", "") == taint.get("value", "")
        ):
            return True
    return False


def _term(term: Json, node: Json) -> bool:
    rules = [(item, node["metadata"].get("labels") or {}) for item in term.get("matchExpressions") or []]
    rules += [(item, {"metadata.name": node["metadata"]["name"]}) for item in term.get("matchFields") or []]
    return bool(rules) and all(
        labels_match([Requirement(item["key"], item["operator"], tuple(item.get("values") or ()))], labels)
        for item, labels in rules
    )


def matches_node(pod: Json, node: Json) -> bool:
    """Node selector and required node affinity."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_term(term, node) for term in required["nodeSelectorTerms"])


def preference(pod: Json, node: Json) -> int:
    """The weight of the preferred terms a node meets."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return sum(item["weight"] for item in preferred if _term(item["preference"], node))


def obstacle(pod: Json, node: Json, room: Room) -> str | None:
    """Why the pod cannot go to a node, in the scheduler's words; None when it can."""
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not tolerates(pod, unschedulable):
        return "node(s) were unschedulable"
    if not matches_node(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in node["spec"].get("taints") or []:
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return "node(s) had untolerated taint(s)"
    if gpus(pod) > room.gpus:
        return f"Insufficient {GPU}"
    return "Too many pods" if room.pods < 1 else None


def rooms(snapshot: Snapshot) -> dict[str, Room]:
    """What is free on each node."""
    free = {}
    for node in snapshot.nodes:
        allocatable = node.get("status", {}).get("allocatable") or {}
        free[node["metadata"]["name"]] = Room(int(allocatable.get(GPU, 0)), int(allocatable.get("pods", MAX_PODS)))
    for pod in snapshot.pods:
        room = free.get(pod["spec"].get("nodeName", ""))
        if room is not None and not finished(pod):
            room.gpus -= gpus(pod)
            room.pods -= 1
    return free


def place(pod: Json, nodes: Sequence[Json], free: Mapping[str, Room]) -> tuple[str | None, str]:
    """The node for a pod, or None and the sentence that says why not."""
    if not nodes:
        return None, "no nodes available to schedule pods"
    why: Counter[str] = Counter()
    fits = []
    for node in nodes:
        name = node["metadata"]["name"]
        problem = obstacle(pod, node, free[name])
        if problem:
            why[problem] += 1
        else:
            # Preferred nodes first, then the fullest that still has room: gangs stay together and whole nodes stay free.
            fits.append((-preference(pod, node), free[name].gpus, name))
    if fits:
        return min(fits)[2], ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(why.items()))
    return None, f"0/{len(nodes)} nodes are available: {reasons}."


def plan(snapshot: Snapshot, now: datetime, hushed: Collection[str] = ()) -> list[Call]:
    """Bind what fits, oldest first (of one second: in the order heard of); say of the rest why not, once for each new reason.

    `hushed` are the uids of which it was said a moment ago: the real one backs off too before it tries a pod again.
    """
    waiting = [
        pod
        for pod in snapshot.pods
        if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] and not finished(pod)
    ]
    free, calls = rooms(snapshot), []
    for pod in sorted(waiting, key=lambda item: str(item["metadata"]["creationTimestamp"])):
        name, why = place(pod, snapshot.nodes, free)
        if name is not None:
            free[name].gpus -= gpus(pod)
            free[name].pods -= 1
            calls += _bind(pod, name, now)
        elif pod["metadata"]["uid"] not in hushed and (condition(pod, "PodScheduled") or {}).get("message") != why:
            calls += _unschedulable(pod, why, now)
    return calls


def _bind(pod: Json, node: str, now: datetime) -> list[Call]:
    metadata = pod["metadata"]
    body = {"metadata": {"name": metadata["name"], "uid": metadata["uid"]}, "target": {"kind": "Node", "name": node}}
    message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
    return [Call("POST", pod_path(pod, "binding"), body), said.scheduler(pod, "Scheduled", message, now)]


def _unschedulable(pod: Json, why: str, now: datetime) -> list[Call]:
    known = condition(pod, "PodScheduled") or {}  # another reason is no transition
    since = known.get("lastTransitionTime") if known.get("status") == "False" else None
    state = {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "lastTransitionTime": since or stamp(now)}
    body = {"status": {"conditions": [state | {"reason": "Unschedulable", "message": why}]}}
    return [Call("PATCH", pod_path(pod, "status"), body, STRATEGIC), said.scheduler(pod, "FailedScheduling", why, now)]
