"""The disruption controller: how many pods of a budget may go right now. Pure."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from console.simulator.kubernetes.selectors import from_object, labels_match
from console.simulator.machines.client import MERGE, Call
from console.simulator.machines.snapshot import Snapshot, finished, is_true, owner
from console.simulator.values import Json, instant, stamp

FORGET = timedelta(minutes=2)  # a granted disruption whose pod is still there after that never happened


def _amount(value: object, whole: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(int(value[:-1]) * whole / 100)
    return int(str(value))


def expected(pods: Sequence[Json], snapshot: Snapshot) -> int:
    """How many pods there should be, by what their controllers say; bare pods count as they are."""
    replicas = {item["metadata"]["uid"]: item["spec"]["replicas"] for item in snapshot.replica_sets}
    replicas |= {item["metadata"]["uid"]: item["spec"]["parallelism"] for item in snapshot.jobs}
    total, seen = 0, set()
    for pod in pods:
        reference = owner(pod)
        if reference is None or reference["uid"] not in replicas:
            total += 1
        elif reference["uid"] not in seen:
            seen.add(reference["uid"])
            total += replicas[reference["uid"]]
    return total


def status(budget: Json, snapshot: Snapshot, now: datetime) -> Json:
    """The status a budget should have."""
    selector = from_object(budget["spec"].get("selector"))
    namespace = budget["metadata"]["namespace"]
    inside = [pod for pod in snapshot.pods if pod["metadata"]["namespace"] == namespace and not finished(pod)]
    pods = [pod for pod in inside if selector is not None and labels_match(selector, pod["metadata"].get("labels"))]
    granted = budget["status"].get("disruptedPods") or {}
    there = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    pending = {name: at for name, at in granted.items() if name in there and now - (instant(at) or now) < FORGET}
    healthy = sum(is_true(pod, "Ready") for pod in pods if pod["metadata"]["name"] in there - pending.keys())
    count = expected(pods, snapshot)
    if "maxUnavailable" in budget["spec"]:
        desired = max(0, count - _amount(budget["spec"]["maxUnavailable"], count))
    else:
        desired = _amount(budget["spec"].get("minAvailable", 1), count)
        count = count if "%" in str(budget["spec"].get("minAvailable", 1)) else len(pods)
    allowed = max(0, healthy - desired) if count else 0
    return {
        "observedGeneration": budget["metadata"].get("generation", 1), "disruptionsAllowed": allowed, "currentHealthy": healthy,
        "desiredHealthy": desired, "expectedPods": count, "disruptedPods": pending,
    }  # fmt: skip


def plan(snapshot: Snapshot, now: datetime) -> list[Call]:
    """Write the status of each budget that is no longer right."""
    calls = []
    for budget in snapshot.budgets:
        fresh, old = status(budget, snapshot, now), budget["status"]
        if all((old.get(key) or {} if key == "disruptedPods" else old.get(key)) == value for key, value in fresh.items()):
            continue
        good = fresh["disruptionsAllowed"] > 0
        fresh["conditions"] = [{
            "type": "DisruptionAllowed", "status": "True" if good else "False", "observedGeneration": fresh["observedGeneration"],
            "lastTransitionTime": stamp(now), "reason": "SufficientPods" if good else "InsufficientPods", "message": "",
        }]  # fmt: skip
        removed = {name: None for name in old.get("disruptedPods") or {} if name not in fresh["disruptedPods"]}
        fresh["disruptedPods"] = {**fresh["disruptedPods"], **removed}
        metadata = budget["metadata"]
        path = f"/apis/policy/v1/namespaces/{metadata['namespace']}/poddisruptionbudgets/{metadata['name']}/status"
        calls.append(Call("PATCH", path, {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": fresh}, MERGE))
    return calls
