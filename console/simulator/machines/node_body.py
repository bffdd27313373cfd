"""The Node that a machine registers, and its conditions. Pure."""

from datetime import datetime

from console.simulator.machines.snapshot import GPU
from console.simulator.values import Json, micro_stamp, stamp

GPUS_PER_MACHINE = 8
PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def conditions(now: datetime, *, ready: bool) -> list[Json]:
    """The four conditions of a kubelet."""
    at = {"lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now)}
    states = [{"type": kind, "status": "False", **at, "reason": reason, "message": text} for kind, reason, text in PRESSURES]
    why = (
        ("KubeletReady", "kubelet is posting ready status")
        if ready
        else ("KubeletNotReady", "container runtime network not ready")
    )
    return [*states, {"type": "Ready", "status": "True" if ready else "False", **at, "reason": why[0], "message": why[1]}]


def heartbeat(node: Json, now: datetime) -> list[Json]:
    """The conditions as they are, seen again now; a condition that was Unknown comes back with a new transition."""
    before = {item["type"]: item for item in node.get("status", {}).get("conditions") or []}
    fresh = []
    for item in conditions(now, ready=True):
        old = before.get(item["type"])
        if old is not None and old["status"] == item["status"]:
            item["lastTransitionTime"] = old["lastTransitionTime"]
        fresh.append(item)
    return fresh


def node(
    name: str, *, labels: Json, taints: list[Json], provider_id: str, gpu_type: str, region: str, ip: str, now: datetime
) -> Json:
    """A new Node, not Ready yet."""
    amounts = {"cpu": "192", "memory": "2097152Mi", "ephemeral-storage": "6291456Mi", "pods": "110", GPU: str(GPUS_PER_MACHINE)}
    own = {
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": region, "nvidia.com/gpu.product": gpu_type.replace("_", "-"),
        "node.kubernetes.io/instance-type": f"sim-{GPUS_PER_MACHINE}x{gpu_type.lower().replace('_', '-')}",
    }  # fmt: skip
    info = {
        "machineID": provider_id.rsplit("/", 1)[-1], "systemUUID": "", "bootID": "", "kernelVersion": "6.8.0-sim",
        "osImage": "Ubuntu 24.04.3 LTS", "containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.36.3",
        "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
    }  # fmt: skip
    addresses = [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions(now, ready=False),
        "addresses": addresses,
        "nodeInfo": info,
    }
    notes = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    metadata = {"name": name, "labels": {**own, **labels}, "annotations": notes}
    return {"metadata": metadata, "spec": {"providerID": provider_id, "taints": taints}, "status": status}


def lease(body: Json, now: datetime) -> Json:
    """The heartbeat Lease of a node, owned by it."""
    metadata = body["metadata"]
    reference = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
    spec = {"holderIdentity": metadata["name"], "leaseDurationSeconds": 40, "renewTime": micro_stamp(now)}
    named = {"name": metadata["name"], "namespace": "kube-node-lease", "ownerReferences": [reference]}
    return {"metadata": named, "spec": spec}
