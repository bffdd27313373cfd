"""What the API server adds to an object that is created: identity, defaults, admission. Pure: the instant is given."""

import secrets
import uuid
from datetime import datetime

from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, stamp

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # of the real name generator: no vowels, so no words
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
TOLERATIONS = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]
NODE_INFO = dict.fromkeys(
    (
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
        "kubeProxyVersion", "operatingSystem", "architecture",
    ),
    "",
)  # fmt: skip


def suffix(length: int = 5) -> str:
    """The random end of a generated name."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def identify(resource: Resource, body: Json, namespace: str, now: datetime) -> None:
    """Fill in what only the server may say of a new object."""
    metadata = body["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName'][:58]}{suffix()}"
    if resource.namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = stamp(now)
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation"):
        metadata.pop(key, None)
    if resource.generation:
        metadata["generation"] = 1


def complete(resource: Resource, body: Json) -> None:
    """Defaults and admission of each kind."""
    if resource.plural == "nodes":
        _node(body)
    elif resource.plural == "pods":
        body["status"] = {"phase": "Pending", "qosClass": _quality(body["spec"])}
        pod_spec(body["spec"])
    elif resource.plural == "namespaces":
        metadata = body["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
        body["spec"] = {"finalizers": ["kubernetes"]}
        body["status"] = {"phase": "Active"}
    elif resource.plural == "secrets":
        body.setdefault("type", "Opaque")
    elif resource.plural == "poddisruptionbudgets":
        body["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    elif resource.plural in ("daemonsets", "deployments", "replicasets", "jobs"):
        _workload(resource, body)


def _node(body: Json) -> None:
    spec = body.setdefault("spec", {})
    if not any(taint.get("key") == NOT_READY["key"] for taint in spec.get("taints") or []):
        # Admission, not the kubelet, keeps pods off a node that has not said Ready yet.
        spec["taints"] = [*(spec.get("taints") or []), dict(NOT_READY)]
    status = body.setdefault("status", {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status.setdefault("nodeInfo", dict(NODE_INFO))


def _workload(resource: Resource, body: Json) -> None:
    spec = body["spec"]
    template = spec.setdefault("template", {}).setdefault("spec", {})
    pod_spec(template)
    if resource.plural == "jobs":
        spec.setdefault("parallelism", 1)
        spec.setdefault("completions", spec["parallelism"])
        spec.setdefault("backoffLimit", 6)
        uid, name = body["metadata"]["uid"], body["metadata"]["name"]
        labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
        meta = spec["template"].setdefault("metadata", {})
        meta["labels"] = {**(meta.get("labels") or {}), **labels, "controller-uid": uid, "job-name": name}
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
        body["status"] = {}
    elif resource.plural == "replicasets":
        spec.setdefault("replicas", 1)
        body["status"] = {"replicas": 0}
    elif resource.plural == "deployments":
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        spec.setdefault("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
        body["status"] = {}
    else:
        spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
        spec.setdefault("revisionHistoryLimit", 10)
        body["status"] = {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0}


def pod_spec(spec: Json) -> None:
    """Defaults of a pod, or of a pod template."""
    for container in spec.get("containers") or []:
        container.setdefault("imagePullPolicy", "IfNotPresent" if ":" in container.get("image", "") else "Always")
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        resources = container.setdefault("resources", {})
        for kind in ("limits", "requests"):
            if resources.get(kind):
                resources[kind] = {name: str(amount) for name, amount in resources[kind].items()}
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for key, value in (
        ("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30), ("dnsPolicy", "ClusterFirst"),
        ("serviceAccountName", "default"), ("serviceAccount", "default"), ("schedulerName", "default-scheduler"),
        ("priority", 0), ("enableServiceLinks", True), ("preemptionPolicy", "PreemptLowerPriority"),
    ):  # fmt: skip
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    tolerations = spec.setdefault("tolerations", [])
    known = {toleration.get("key") for toleration in tolerations}
    tolerations += [dict(toleration) for toleration in TOLERATIONS if toleration["key"] not in known]


def _quality(spec: Json) -> str:
    resources = [container.get("resources") or {} for container in spec.get("containers") or []]
    compute = ("cpu", "memory")
    if not any(key in (part.get(kind) or {}) for part in resources for kind in ("requests", "limits") for key in compute):
        return "BestEffort"
    whole = all((part.get("limits") or {}).get(key) for part in resources for key in compute)
    same = all((part.get("requests") or part.get("limits")) == part.get("limits") for part in resources)
    return "Guaranteed" if whole and same else "Burstable"
