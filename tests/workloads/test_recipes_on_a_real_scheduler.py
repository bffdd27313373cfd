"""The manifests of *Run work here* on a real API server and scheduler: accepted as they are, and placed where they say."""

import time
from typing import Any

import pytest
import yaml

from console.kube.marks import CLASS_LABEL, PREEMPTIBLE
from console.workloads.reasons import plain_reason
from console.workloads.recipes import recipes
from tests.controlplane.plane import Plane

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
MINE = "halftide-test"  # a label of this test's nodes: the control plane is shared


def a_node(plane: Plane, name: str, namespace: str, preemptible: bool) -> None:
    labels = {MINE: namespace, **({CLASS_LABEL: PREEMPTIBLE} if preemptible else {})}
    room = {"pods": "9", "nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    plane.ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    status = {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}
    plane.ask("PATCH", f"/api/v1/nodes/{name}/status", status, "application/merge-patch+json")


def a_job(plane: Plane, namespace: str, code: str, suffix: str) -> str:
    """The manifest as it is, but for its name and for keeping to this test's nodes."""
    [found] = [recipe for recipe in recipes("real", 8, 300) if recipe.code == code]
    job: dict[str, Any] = yaml.safe_load(found.yaml)
    job["metadata"]["name"] += suffix
    spec = job["spec"]["template"]["spec"]
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), MINE: namespace}
    plane.ask("POST", JOBS.format(namespace), job)
    return str(job["metadata"]["name"])


def placed(plane: Plane, namespace: str, job: str) -> tuple[str, str]:
    """The node of the job's pod, or why it has none."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pods = plane.ask("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector=job-name%3D{job}")["items"]
        for pod in pods:
            conditions = {one["type"]: one for one in pod["status"].get("conditions") or []}
            if "PodScheduled" in conditions:
                return pod["spec"].get("nodeName", ""), conditions["PodScheduled"].get("message", "")
        time.sleep(0.1)
    pytest.fail(f"the scheduler has not looked at {job}")


def test_each_lands_where_it_says_and_waits_or_falls_back_as_it_says(control_plane: Plane) -> None:
    with control_plane.namespace("recipes") as namespace:
        standard, preemptible = f"{namespace}-std", f"{namespace}-pre"
        a_node(control_plane, standard, namespace, preemptible=False)
        a_node(control_plane, preemptible, namespace, preemptible=True)
        try:
            found = {}
            for number, code in enumerate(("prefer", "preemptible", "prefer", "standard")):
                found[number] = placed(control_plane, namespace, a_job(control_plane, namespace, code, f"-{number}"))
        finally:
            for name in (standard, preemptible):
                control_plane.ask("DELETE", f"/api/v1/nodes/{name}")
    assert found[0][0] == preemptible  # preferred, and free
    assert found[1][0] == ""  # full now, and it does not go elsewhere
    assert plain_reason(found[1][1], 8, "required").startswith("no preemptible node has 8 GPUs free")
    assert found[2][0] == standard  # the preference falls back
    assert found[3][0] == ""
    assert plain_reason(found[3][1], 8, "refused").startswith("no standard node has 8 GPUs free")
