"""Workloads as Kubernetes objects, from the short form in `fixtures/simulator.json`. Pure."""

from typing import Any

from console.simulator.machines.client import Call, collection
from console.simulator.machines.program import PREFIX
from console.simulator.machines.snapshot import GPU
from console.simulator.machines.workloads import GROUPS
from console.simulator.values import Json

CLASS_LABEL = "together.ai/compute-class"  # how workloads aim at preemptible nodes
DEPLOYMENTS = ("apps/v1", "deployments")  # run by `rollouts`

# A real Job controller gives up after six failures; a pod that was taken back is none.
DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
PATIENCE: Json = {"backoffLimit": 1000, "podFailurePolicy": {"rules": [DISRUPTED]}}


def _spec(item: Json) -> Json:
    amounts: Json = {"limits": {GPU: str(item["gpus"])}} if item.get("gpus") else {"requests": {"cpu": "100m", "memory": "64Mi"}}
    container = {"name": "main", "image": item["image"], "resources": amounts}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": item.get("grace", 30)}
    if item["kind"] == "Job":
        spec["restartPolicy"] = "Never"
    if item.get("class"):
        spec["nodeSelector"] = {CLASS_LABEL: item["class"]}
    if item.get("only") == "standard":
        term = {"matchExpressions": [{"key": CLASS_LABEL, "operator": "NotIn", "values": ["preemptible"]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    if item.get("prefer"):
        term = {"matchExpressions": [{"key": CLASS_LABEL, "operator": "In", "values": [item["prefer"]]}]}
        preferred = [{"weight": 100, "preference": term}]
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    if item["kind"] == "DaemonSet":
        spec["tolerations"] = [{"operator": "Exists"}]
    return spec


def _metadata(item: Json) -> Json:
    notes = {PREFIX + key: str(value) for key, value in (item.get("program") or {}).items()}
    return {"labels": {"app": item["name"], **item.get("labels", {})}, "annotations": notes | item.get("says", {})}


def objects(item: Json) -> list[Call]:
    """The writes that make one workload, its budget first, so that it guards from the first pod on."""
    name, namespace, kind = item["name"], item["namespace"], item["kind"]
    named = {"name": name, "namespace": namespace}
    calls = []
    if item.get("budget"):
        spec: dict[str, Any] = {**item["budget"], "selector": {"matchLabels": {"app": name}}}
        calls.append(Call("POST", collection("poddisruptionbudgets", namespace, "policy/v1"), {"metadata": named, "spec": spec}))
    if kind == "Pod":
        body = {"metadata": {**_metadata(item), **named}, "spec": _spec(item)}
        return [*calls, Call("POST", collection("pods", namespace), body)]
    template = {"metadata": _metadata(item), "spec": _spec(item)}
    workload: Json = {"template": template}
    if kind == "Job":
        workload |= {"parallelism": item["replicas"], "completions": item.get("completions", item["replicas"]), **PATIENCE}
    else:
        workload["selector"] = {"matchLabels": {"app": name}}
    if kind in ("ReplicaSet", "Deployment"):
        workload["replicas"] = item["replicas"]
    group, plural = DEPLOYMENTS if kind == "Deployment" else GROUPS[kind]
    return [
        *calls,
        Call("POST", collection(plural, namespace, group), {"metadata": {**named, "labels": {"app": name}}, "spec": workload}),
    ]
