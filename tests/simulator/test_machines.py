"""Machines and what runs on them, seen from outside through the API alone."""

import json
import uuid
from typing import Any

from console.simulator.values import instant
from tests.simulator.conftest import ROOT, Api, Json, Simulation, eventually, pod, ready

PODS = "/api/v1/namespaces/default/pods"
PROGRAM = "simulator.halftide.io/"


def run(api: Api, name: str, program: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod that runs, on the only node there is."""
    body = pod(name, **spec)
    body["metadata"]["annotations"] = {PROGRAM + key: value for key, value in (program or {}).items()}
    assert api.post(PODS, body).status_code == 201
    return dict(eventually(lambda: phase(api, name) == "Running" and api.get(f"{PODS}/{name}").json()))


def phase(api: Api, name: str) -> str:
    return str(api.get(f"{PODS}/{name}").json()["status"]["phase"])


def reasons(api: Api, name: str) -> list[str]:
    items = api.get(f"/api/v1/events?fieldSelector=involvedObject.name={name}").json()["items"]
    return [item["reason"] for item in items]


def ending(api: Api, name: str, version: str) -> list[Json]:
    """What a watch sees of a pod until it is gone."""
    return api.watch(PODS, 15, last="DELETED", fieldSelector=f"metadata.name={name}", resourceVersion=version)


def test_a_machine_joins_ready_with_its_gpus_labels_and_heartbeat(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1", labels={"together.ai/compute-class": "preemptible"})
    node = api.get("/api/v1/nodes/gpu-1").json()
    assert node["metadata"]["labels"]["together.ai/compute-class"] == "preemptible"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu-1"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["status"]["addresses"][0]["address"].startswith("127.")
    lease = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-1").json()
    assert lease["spec"]["holderIdentity"] == "gpu-1"
    assert reasons(api, "gpu-1") == ["Starting", "RegisteredNode", "NodeReady"]


def test_a_taint_given_at_launch_keeps_pods_away_until_it_is_lifted(simulation: Simulation, api: Api) -> None:
    taint = {"key": "halftide.io/startup", "value": "pending", "effect": "NoSchedule"}
    simulation.machine(api, "gpu-1", taints=[taint])
    eventually(lambda: "NodeReady" in reasons(api, "gpu-1"))
    eventually(
        lambda: [item["key"] for item in api.get("/api/v1/nodes/gpu-1").json()["spec"]["taints"]] == ["halftide.io/startup"]
    )
    api.post(PODS, pod("early"))
    eventually(lambda: "FailedScheduling" in reasons(api, "early"))
    api.patch("/api/v1/nodes/gpu-1", {"spec": {"taints": None}})
    eventually(lambda: phase(api, "early") == "Running")


def test_a_pod_that_is_told_to_stop_ends_with_its_own_code_and_is_seen_ended_before_it_is_gone(
    simulation: Simulation, api: Api
) -> None:
    """The order of a real kubelet: deadline, terminated state in the list, deletion with that last state."""
    simulation.node(api, "gpu-1")
    before = run(api, "worker", {"exit-seconds": "1", "exit-code": "3"})
    api.post(f"{PODS}/worker/eviction", {"metadata": {"name": "worker"}, "deleteOptions": {"gracePeriodSeconds": 30}})
    events = ending(api, "worker", before["metadata"]["resourceVersion"])
    assert events[-1]["type"] == "DELETED"
    last = [event["object"] for event in events]
    assert last[-1]["status"] == last[-2]["status"]
    ended = last[-1]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (last[-1]["status"]["phase"], ended["exitCode"], ended["reason"]) == ("Failed", 3, "Error")
    told = next(body for body in last if "deletionTimestamp" in body["metadata"])
    assert told["status"]["phase"] == "Running"
    assert told["metadata"]["deletionTimestamp"] > ended["finishedAt"]
    assert reasons(api, "worker") == ["Scheduled", "Pulled", "Created", "Started", "Killing"]


def test_a_pod_that_will_not_stop_is_killed_at_its_deadline(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    before = run(api, "stubborn", {"ignore-sigterm": "true"})
    api.delete(f"{PODS}/stubborn", {"gracePeriodSeconds": 2})
    last = ending(api, "stubborn", before["metadata"]["resourceVersion"])[-1]
    ended = last["object"]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (last["type"], ended["exitCode"]) == ("DELETED", 137)
    assert ended["finishedAt"] >= last["object"]["metadata"]["deletionTimestamp"]


def test_a_shortened_grace_brings_the_end_forward(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    run(api, "slow", {"exit-seconds": "50"})
    api.delete(f"{PODS}/slow", {"gracePeriodSeconds": 60})
    api.delete(f"{PODS}/slow", {"gracePeriodSeconds": 1})
    eventually(lambda: api.get(f"{PODS}/slow").status_code == 404, 5)


def test_a_training_pod_saves_now_and_then_and_when_it_is_told_to_stop(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    before = run(api, "train", {"checkpoint-seconds": "1", "exit-seconds": "1.5", "exit-code": "0"})

    def saved() -> str:
        return str(api.get(f"{PODS}/train").json()["metadata"].get("annotations", {}).get("halftide.io/last-checkpoint", ""))

    first = eventually(saved)
    eventually(lambda: saved() > first)
    api.delete(f"{PODS}/train", {"gracePeriodSeconds": 20})
    last = ending(api, "train", before["metadata"]["resourceVersion"])[-1]["object"]
    ended = last["status"]["containerStatuses"][0]["state"]["terminated"]
    save, end = instant(last["metadata"]["annotations"]["halftide.io/last-checkpoint"]), instant(ended["finishedAt"])
    assert save is not None
    assert end is not None
    assert (end - save).total_seconds() <= 1
    assert ended["exitCode"] == 0


def test_a_pod_whose_run_is_over_stays_in_the_list_as_succeeded(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    body = pod("short", restartPolicy="Never")
    body["metadata"]["annotations"] = {f"{PROGRAM}run-seconds": "0.5"}
    api.post(PODS, body)
    eventually(lambda: phase(api, "short") == "Succeeded")
    api.delete(f"{PODS}/short")
    eventually(lambda: api.get(f"{PODS}/short").status_code == 404)


def test_a_replacement_waits_until_there_is_room_and_says_why(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    item = {"kind": "ReplicaSet", "namespace": "default", "name": "web", "image": "box:1", "replicas": 2, "gpus": 8}
    assert simulation.control("POST", "workloads", {"cluster_id": api.key, **item}).status_code == 201

    def phases() -> list[str]:
        return sorted(body["status"]["phase"] for body in api.get(f"{PODS}?labelSelector=app=web").json()["items"])

    eventually(lambda: phases() == ["Pending", "Running"])
    waiting = api.get(f"{PODS}?fieldSelector=status.phase=Pending").json()["items"][0]
    assert waiting["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert waiting["status"]["conditions"][0]["message"] == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    simulation.node(api, "gpu-2")
    eventually(lambda: phases() == ["Running", "Running"])
    victim = api.get(f"{PODS}?fieldSelector=spec.nodeName=gpu-1").json()["items"][0]["metadata"]["name"]
    api.patch("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": True}})
    api.delete(f"{PODS}/{victim}", {"gracePeriodSeconds": 20})
    eventually(lambda: phases() == ["Pending", "Running"])
    api.patch("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": None}})
    eventually(lambda: phases() == ["Running", "Running"])


def test_a_drained_job_makes_up_for_exactly_what_it_lost(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    item = {"kind": "Job", "namespace": "default", "name": "fit", "image": "box:1", "replicas": 6, "gpus": 2}
    simulation.control("POST", "workloads", {"cluster_id": api.key, **item, "program": {"exit-seconds": "3"}})

    def uids() -> set[str]:
        return {body["metadata"]["uid"] for body in api.get(f"{PODS}?labelSelector=app=fit").json()["items"]}

    eventually(lambda: len(api.get(f"{PODS}?fieldSelector=status.phase=Running").json()["items"]) == 4)
    before = uids()
    victim = api.get(f"{PODS}?fieldSelector=status.phase=Running").json()["items"][0]["metadata"]["name"]
    api.delete(f"{PODS}/{victim}")
    eventually(lambda: len(uids() - before) == 1)
    eventually(lambda: api.get(f"{PODS}/{victim}").status_code == 404)
    assert len(before - uids()) == 1
    assert len(uids()) == 6


def test_a_node_deleted_and_a_machine_terminated_leave_pods_for_the_collector(simulation: Simulation, api: Api) -> None:
    machine = simulation.node(api, "gpu-1")
    run(api, "left")
    simulation.control("DELETE", f"machines/{machine['token']}")
    eventually(lambda: simulation.control("GET", f"machines/{machine['token']}").json()["state"] == "terminated")
    assert ready(api, "gpu-1")
    assert api.delete("/api/v1/nodes/gpu-1").status_code == 200
    assert phase(api, "left") == "Running"
    api.delete(f"{PODS}/left", {"gracePeriodSeconds": 0})
    eventually(lambda: api.get(f"{PODS}/left").status_code == 404)
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-1"
    eventually(lambda: api.get(lease).status_code == 404, 12)


def test_a_lost_machine_becomes_unknown_when_its_last_sign_of_life_is_old(simulation: Simulation, api: Api) -> None:
    """The 40 seconds are not waited for: the signs of life are written back an hour."""
    machine = simulation.node(api, "gpu-1")
    run(api, "left")
    assert simulation.control("POST", f"machines/{machine['token']}/lose").json()["state"] == "lost"
    long_ago = "2026-01-01T00:00:00Z"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-1"
    api.patch(lease, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    signs = [{"type": kind, "lastHeartbeatTime": long_ago} for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")]
    api.patch("/api/v1/nodes/gpu-1/status", {"status": {"conditions": signs}}, "strategic-merge-patch")
    eventually(lambda: not ready(api, "gpu-1"), 15)
    node = api.get("/api/v1/nodes/gpu-1").json()
    assert {item["type"]: item["status"] for item in node["status"]["conditions"]}["Ready"] == "Unknown"
    taints = eventually(lambda: api.get("/api/v1/nodes/gpu-1").json()["spec"].get("taints"))
    assert {(item["key"], item["effect"]) for item in taints} == {
        ("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")
    }
    eventually(lambda: "NodeNotReady" in reasons(api, "gpu-1"))


def test_the_demo_cluster_comes_with_its_workloads(simulation: Simulation) -> None:
    api = simulation.cluster("aurora-train")
    fixture = json.loads((ROOT / "fixtures" / "simulator.json").read_text())["workloads"]
    jobs = {item["name"] for item in fixture["aurora-train"] if item["kind"] == "Job"}
    eventually(lambda: {item["metadata"]["name"] for item in api.get("/apis/batch/v1/jobs").json()["items"]} == jobs)
    assert [item["metadata"]["name"] for item in api.get("/apis/apps/v1/daemonsets").json()["items"]] == ["gpu-metrics"]
    labels = {"together.ai/compute-class": "preemptible"}
    simulation.node(api, f"gpu-{uuid.uuid4().hex[:4]}", labels=labels)
    eventually(lambda: len(api.get("/api/v1/pods?fieldSelector=status.phase=Running").json()["items"]) > 4)
    simulation.control("DELETE", f"clusters/{api.key}")
