"""A control plane with many nodes and pods on it, as kubelets would have made them, but by plain requests."""

import asyncio
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from console.env import ROOT
from console.kube import marks
from console.runner.controlplane.files import kubeconfig
from tests.bench.bare import Bare, Call
from tests.bench.kubelets import conditions
from tests.controlplane.plane import Plane

PODS_A_NODE, PODS_A_JOB = 15, 100
ANNOTATION = "x" * 4096  # what tools that deploy pods leave on them
RESOURCES = {"cpu": "128", "memory": "1Ti", "pods": "110", marks.GPU_RESOURCE: "8"}
NAMESPACE = "/api/v1/namespaces/training"
JOBS = "/apis/batch/v1/namespaces/training/jobs"


def account(plane: Plane) -> str:
    """A kubeconfig of Halftide's account, made as `docs/real-kubernetes.md` says."""
    plane.kubectl("apply", "-f", str(ROOT / "deploy" / "rbac.yaml")).check_returncode()
    made = plane.kubectl("-n", "halftide", "create", "token", "halftide", "--duration=8760h")
    made.check_returncode()
    return kubeconfig(plane.url, plane.authority.read_bytes(), made.stdout.strip())


def bare(plane: Plane) -> Bare:
    return Bare(plane.url, plane.authority, plane.token)


def nodes(plane: Plane, count: int, since: str) -> list[str]:
    """So many nodes, Ready since then, one in ten of them standard; their names."""
    names = [f"large-{number:04}" for number in range(count)]
    _send(plane, (("POST", "/api/v1/nodes", _node(name, number, since)) for number, name in enumerate(names)))
    return names


def pods(plane: Plane, on: Sequence[str], since: str) -> None:
    """So many running pods on each node. Their Jobs are managed by nobody here, so no controller makes or ends any of them."""
    plane.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "training"}})
    plane.http.post(f"{NAMESPACE}/serviceaccounts", json={"metadata": {"name": "default"}})  # unless the controller was quicker
    count = len(on) * PODS_A_NODE
    jobs = [plane.ask("POST", JOBS, _job(f"train-{number:03}")) for number in range(ceil(count / PODS_A_JOB))]
    names = [f"{jobs[number // PODS_A_JOB]['metadata']['name']}-{number % PODS_A_JOB:02}" for number in range(count)]
    made = ((name, jobs[number // PODS_A_JOB], on[number % len(on)]) for number, name in enumerate(names))
    _send(plane, (("POST", f"{NAMESPACE}/pods", _pod(name, job, node)) for name, job, node in made))
    _send(plane, (("PATCH", f"{NAMESPACE}/pods/{name}/status", _running(since)) for name in names))


def _send(plane: Plane, calls: Iterable[Call]) -> None:
    statuses = set(asyncio.run(bare(plane).send(calls)))
    assert statuses <= {200, 201}, statuses


def _node(name: str, number: int, since: str) -> dict[str, Any]:
    classed = {marks.CLASS_LABEL: marks.PREEMPTIBLE} if number % 10 else {}
    images = [{"names": [f"registry.example/box@sha256:{image:064x}"], "sizeBytes": 10**9} for image in range(20)]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **classed}},
        "status": {
            "capacity": RESOURCES,
            "allocatable": RESOURCES,
            "conditions": conditions(since, since),
            "addresses": [{"type": "InternalIP", "address": f"127.1.{number // 250}.{number % 250 + 1}"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
            "images": images,
        },
    }


def _job(name: str) -> dict[str, Any]:
    box = {"name": "main", "image": "registry.example/train:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [box]}}
    return {
        "metadata": {"name": name},
        "spec": {"managedBy": "bench.halftide.io/nobody", "parallelism": PODS_A_JOB, "template": template},
    }


def _pod(name: str, job: dict[str, Any], node: str) -> dict[str, Any]:
    about = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": about["name"], "uid": about["uid"], "controller": True}
    environment = [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(10)]
    box = {"name": "main", "image": "registry.example/train:1", "env": environment}
    return {
        "metadata": {
            "name": name,
            "labels": {"job-name": about["name"], "app": "train"},
            "annotations": {"bench.halftide.io/deployed": ANNOTATION},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [box]},
    }


def _running(since: str) -> dict[str, Any]:
    state = {"name": "main", "image": "registry.example/train:1", "imageID": "", "ready": True, "restartCount": 0}
    done = [
        {"type": kind, "status": "True", "lastTransitionTime": since}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    containers = [{**state, "state": {"running": {"startedAt": since}}}]
    return {"status": {"phase": "Running", "startTime": since, "conditions": done, "containerStatuses": containers}}
