"""The parts that only decide: demand, pools, programs, scheduling, selectors, patches, columns."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.env import ROOT
from console.simulator.kubernetes import patches, protobuf
from console.simulator.kubernetes.columns import duration
from console.simulator.kubernetes.errors import ApiError
from console.simulator.kubernetes.pod_columns import status_word
from console.simulator.machines import budgets, lifecycle, program, scheduler, workloads
from console.simulator.machines.snapshot import Snapshot
from console.simulator.machines.templates import objects
from console.simulator.provider.demand import Curve, surge_at, wanted
from console.simulator.provider.pools import Pool

BORN = {"creationTimestamp": "2026-11-30T11:00:00Z", "resourceVersion": "1"}
PROTOBUF_NAMESPACE = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x07\x0a\x05\x0a\x03lab"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@settings(deadline=None)  # a shared machine may stall
@given(total=st.integers(1, 50), ours=st.integers(0, 50), want=st.integers(0, 80))
def test_a_pool_always_adds_up(total: int, ours: int, want: int) -> None:
    pool = Pool("r", "g", total, min(ours, total), want)
    assert pool.free >= 0
    assert pool.owed >= 0
    assert pool.ours + pool.held + pool.free == total
    assert pool.held + pool.owed == want
    assert not (pool.free and pool.owed)


@settings(deadline=None)  # a shared machine may stall
@given(seed=st.text(max_size=8))
def test_the_first_surge_comes_60_to_90_seconds_after_the_start_and_more_follow(seed: str) -> None:
    curve = Curve(8)
    on = [surge_at(curve, seed, float(second)) is not None for second in range(1200)]
    starts = [second for second in range(1, 1200) if on[second] and not on[second - 1]]
    assert 60 <= starts[0] <= 90
    assert len(starts) >= 4
    assert all(190 <= later - earlier <= 300 for earlier, later in pairwise(starts))


def test_a_surge_bites_by_what_we_hold_and_never_below_it() -> None:
    surge = surge_at(Curve(8, machines=(2, 2)), "x", 89.0)
    assert surge is not None
    want = wanted(Curve(8), surge, total=24, ours=13, preemptible=9)
    assert Pool("r", "g", 24, 13, want).owed == 2
    assert wanted(Curve(8), surge, total=24, ours=4, preemptible=0) == 8
    one = wanted(Curve(8), surge, total=24, ours=5, preemptible=1)
    assert Pool("r", "g", 24, 5, one).owed == 1


def body(name: str = "p", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, **BORN, **metadata},
        "spec": {"containers": [{"name": "main", "image": "b", "resources": {"requests": {"nvidia.com/gpu": "4"}}}]},
        "status": {"phase": "Pending"},
    }


def node(name: str, *, taints: list[dict[str, str]] | None = None, **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"nvidia.com/gpu": "8", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "uid": name, "labels": {"kind": name[0]}, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"taints": taints or [], **spec}, "status": status}


def test_a_program_ends_by_itself_or_is_killed_at_the_deadline() -> None:
    def end(deadline: int, **notes: str) -> program.End:
        pod = body(
            deletionTimestamp=(NOW + timedelta(seconds=deadline)).isoformat(),
            annotations={program.PREFIX + key.replace("_", "-"): value for key, value in notes.items()},
        )
        return program.end_of(pod, program.program(pod), NOW)

    assert end(30, exit_seconds="5", exit_code="0") == program.End(NOW + timedelta(seconds=5), {"main": 0}, False)
    assert end(3, exit_seconds="5", exit_code="0") == program.End(NOW + timedelta(seconds=3), {"main": 137}, True)
    assert end(30, ignore_sigterm="true").codes == {"main": 137}
    assert end(30).codes == {"main": 143}
    assert end(30, exit_seconds="soon").codes == {"main": 143}
    assert end(30, **{"main.exit_code": "7", "side.exit_code": "9"}).codes == {"main": 7}


def test_pods_are_placed_by_room_selector_taint_and_cordon() -> None:
    def bound(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> list[str]:
        calls = scheduler.plan(Snapshot(nodes=nodes, pods=pods), NOW)
        return [call.body["target"]["name"] for call in calls if call.path.endswith("/binding")]

    taint = {"key": "a", "effect": "NoSchedule"}
    assert bound([node("a"), node("b")], [body("p"), body("q"), body("r")]) == ["a", "a", "b"]
    assert bound([node("a", taints=[taint]), node("b")], [body()]) == ["b"]
    assert bound([node("a", unschedulable=True)], [body()]) == []
    aimed = body()
    aimed["spec"]["nodeSelector"] = {"kind": "b"}
    assert bound([node("a"), node("b")], [aimed]) == ["b"]
    tolerant = body()
    tolerant["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert bound([node("a", taints=[taint], unschedulable=True)], [tolerant]) == ["a"]


def test_a_pod_without_room_is_told_why_once() -> None:
    calls = scheduler.plan(Snapshot(nodes=[node("a", unschedulable=True), node("b")], pods=[body(str(n)) for n in range(3)]), NOW)
    said = [call.body["message"] for call in calls if call.body.get("reason") == "FailedScheduling"]
    assert said == ["0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."]
    waiting = body()
    waiting["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": "no nodes available to schedule pods"}
    ]
    assert scheduler.plan(Snapshot(pods=[waiting]), NOW) == []
    assert scheduler.plan(Snapshot(pods=[body("p")]), NOW, {"p"}) == []


def test_a_replica_that_is_leaving_no_longer_counts() -> None:
    parent = {
        "metadata": {"name": "web", "namespace": "default", "uid": "rs", "generation": 1},
        "spec": {"replicas": 2, "template": {"metadata": {}, "spec": {"containers": []}}}, "status": {},
    }  # fmt: skip
    owned = [{"uid": "rs", "kind": "ReplicaSet", "controller": True}]
    pods = [body("a", ownerReferences=owned), body("b", ownerReferences=owned, deletionTimestamp="2026-11-30T12:00:00Z")]
    calls = workloads.plan(Snapshot(replica_sets=[parent], pods=pods), NOW)
    assert [call.method for call in calls] == ["POST", "PATCH"]
    pods += [body(name, ownerReferences=owned) for name in "cde"]
    calls = workloads.plan(Snapshot(replica_sets=[parent], pods=pods), NOW)
    assert [call.method for call in calls] == ["DELETE", "DELETE", "PATCH"]


def test_a_node_keeps_the_oldest_pod_of_a_daemon_set() -> None:
    parent = {
        "metadata": {"name": "agent", "namespace": "default", "uid": "ds", "generation": 1},
        "spec": {"template": {"metadata": {}, "spec": {"containers": []}}}, "status": {},
    }  # fmt: skip
    owned = [{"uid": "ds", "kind": "DaemonSet", "controller": True}]
    pods = [body(name, ownerReferences=owned, creationTimestamp=f"2026-11-30T11:00:0{at}Z") for at, name in enumerate("abc")]
    for pod, place in zip(pods, ("n", "m", "n"), strict=True):
        pod["spec"]["nodeName"] = place
    calls = workloads.plan(Snapshot(nodes=[node("n"), node("m")], daemon_sets=[parent], pods=pods[::-1]), NOW)
    assert [(call.method, call.path.rsplit("/", 1)[1]) for call in calls] == [("DELETE", "c"), ("PATCH", "status")]
    assert calls[1].body["status"]["currentNumberScheduled"] == 2


@pytest.mark.parametrize(
    ("limit", "healthy", "allowed"),
    [({"minAvailable": 2}, 3, 1), ({"minAvailable": "75%"}, 4, 1), ({"maxUnavailable": 1}, 3, 0), ({"maxUnavailable": 1}, 4, 1)],
)
def test_a_budget_allows_what_is_above_its_line(limit: dict[str, Any], healthy: int, allowed: int) -> None:
    owned = [{"uid": "rs", "kind": "ReplicaSet", "controller": True}]
    pods = []
    for number in range(healthy):
        pod = body(str(number), labels={"app": "web"}, ownerReferences=owned)
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        pods.append(pod)
    parent = {"metadata": {"uid": "rs"}, "spec": {"replicas": 4}}
    budget = {"metadata": {"namespace": "default"}, "spec": {**limit, "selector": {"matchLabels": {"app": "web"}}}, "status": {}}
    status = budgets.status(budget, Snapshot(pods=pods, replica_sets=[parent]), NOW)
    assert status["disruptionsAllowed"] == allowed


def test_a_nodes_own_taints_follow_its_state_and_foreign_ones_stay() -> None:
    foreign = {"key": "x", "effect": "NoExecute"}
    startup = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert lifecycle.wanted_taints(node("a", taints=[foreign, startup]), NOW) == [foreign]
    cordoned = lifecycle.wanted_taints(node("a", taints=[foreign], unschedulable=True), NOW)
    assert [item["key"] for item in cordoned] == ["x", "node.kubernetes.io/unschedulable"]
    silent = node("a")
    silent["status"]["conditions"][0]["status"] = "Unknown"
    assert {item["key"] for item in lifecycle.wanted_taints(silent, NOW)} == {"node.kubernetes.io/unreachable"}


def test_a_kubelet_is_lost_40_seconds_after_its_last_lease() -> None:
    def lost(seconds: int) -> bool:
        lease = {"spec": {"renewTime": (NOW - timedelta(seconds=seconds)).isoformat()}}
        return bool(lifecycle.lost(Snapshot(nodes=[node("a")], leases={"a": lease}), NOW))

    assert not lost(40)
    assert lost(41)


@settings(deadline=None)  # a shared machine may stall
@given(
    target=st.dictionaries(st.sampled_from("abc"), st.integers() | st.dictionaries(st.sampled_from("xy"), st.integers())),
    patch=st.dictionaries(st.sampled_from("abc"), st.none() | st.integers() | st.dictionaries(st.sampled_from("xy"), st.none())),
)
def test_a_merge_patch_applied_twice_is_applied_once(target: dict[str, Any], patch: dict[str, Any]) -> None:
    once = patches.merge(target, patch)
    assert patches.merge(once, patch) == once


def test_strategic_lists_merge_by_their_key() -> None:
    containers = [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]
    patch = {"containers": [{"name": "b", "image": "2"}, {"name": "a", "$patch": "delete"}]}
    assert patches.strategic({"containers": containers}, patch) == {"containers": [{"name": "b", "image": "2"}]}
    removed = patches.strategic({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]})
    assert removed == {"finalizers": ["b"]}
    with pytest.raises(ApiError):
        patches.strategic({}, {"containers": [{"image": "x"}]})


@pytest.mark.parametrize(
    "operation", [{"op": "remove", "path": "/x"}, {"op": "add"}, {"op": "replace", "path": "/l/7", "value": 1}, 3]
)
def test_a_json_patch_that_does_not_apply_is_refused(operation: Any) -> None:
    with pytest.raises(ApiError) as caught:
        patches.apply_operations({"l": [1]}, [operation])
    assert caught.value.code == 422


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (599, "9m59s"), (600, "10m"), (10799, "179m"), (10800, "3h"),
     (12000, "3h20m"), (36000, "10h"), (180000, "2d2h"), (864000, "10d")],
)  # fmt: skip
def test_ages_read_as_kubectl_writes_them(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def test_a_pods_status_word_tells_how_it_stands() -> None:
    pod = body()
    assert status_word(pod) == "Pending"
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    }
    assert status_word(pod) == "ContainerCreating"
    pod["status"]["containerStatuses"][0] = {"name": "main", "ready": True, "state": {"running": {}}}
    assert status_word(pod) == "Running"
    pod["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    assert status_word(pod) == "Terminating"
    pod["status"] = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]}
    assert status_word(pod) == "ExitCode:3"


@settings(deadline=None)  # a shared machine may stall
@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_unreadable_and_nothing_else(data: bytes) -> None:
    for body_ in (data, protobuf.MAGIC + data, PROTOBUF_NAMESPACE + data):
        try:
            assert protobuf.decode(body_)["kind"] in protobuf.KINDS
        except protobuf.Unreadable:
            continue


def test_a_protobuf_namespace_is_read() -> None:
    assert protobuf.decode(PROTOBUF_NAMESPACE) == {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "lab"}}
    with pytest.raises(protobuf.Unreadable):
        protobuf.decode(PROTOBUF_NAMESPACE[:-2])


def test_every_workload_of_the_demo_can_be_made() -> None:
    """Each kind the fixture names has an address, and what its item says of placement and saves reaches the pod."""
    fixture = json.loads((ROOT / "fixtures" / "simulator.json").read_text())
    items = [item for items in fixture["workloads"].values() for item in items]
    made = {item["name"]: objects(item)[-1] for item in items}
    assert made["chat"].path == "/apis/apps/v1/namespaces/serving/deployments"
    assert made["chat"].body["spec"]["replicas"] == 8
    saves = made["aurora-pretrain"].body["spec"]["template"]["metadata"]["annotations"]
    assert saves["halftide.io/checkpoint-seconds"] == "22"
    assert "NotIn" in json.dumps(made["nightly-eval"].body)
