"""Deletes, graces, finalizers, evictions and bindings."""

from datetime import UTC, datetime, timedelta

from console.simulator.values import instant
from tests.simulator.conftest import Api, eventually, pod

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
FORCE = {"gracePeriodSeconds": 0}


def bound(either: Api, name: str, **more: object) -> None:
    """A node nobody runs, and a pod on it that says it is Running and Ready."""
    either.post("/api/v1/nodes", {"metadata": {"name": f"{name}-node"}})
    assert either.post(PODS, pod(name, node=f"{name}-node", **more)).status_code == 201  # type: ignore[arg-type]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert either.patch(f"{PODS}/{name}/status", {"status": status}).status_code == 200


def swept(either: Api, name: str) -> None:
    either.delete(f"{PODS}/{name}", FORCE)
    either.delete(f"{BUDGETS}/{name}")
    either.delete(f"/api/v1/nodes/{name}-node")


def test_a_precondition_that_does_not_hold_is_a_conflict(either: Api, name: str) -> None:
    uid = either.post("/api/v1/nodes", {"metadata": {"name": name}}).json()["metadata"]["uid"]
    answer = either.delete(f"/api/v1/nodes/{name}", {"preconditions": {"uid": "other"}})
    assert answer.status_code == 409
    assert answer.json()["message"] == (
        f'Operation cannot be fulfilled on Node "{name}": the UID in the precondition (other) does not match the UID in record '
        f"({uid}). The object might have been deleted and then recreated"
    )
    gone = either.delete(f"/api/v1/nodes/{name}", {"preconditions": {"uid": uid}})
    assert gone.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": name, "kind": "nodes", "uid": uid},
    }  # fmt: skip


def test_a_bound_pod_stays_with_its_deadline_until_it_is_deleted_with_grace_0(either: Api, name: str) -> None:
    bound(either, name)
    before = datetime.now(UTC)
    told = either.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 20}).json()["metadata"]
    deadline = instant(told["deletionTimestamp"])
    assert deadline is not None
    assert timedelta(seconds=18) < deadline - before < timedelta(seconds=22)
    assert (told["deletionGracePeriodSeconds"], told["generation"]) == (20, 2)
    longer = either.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 50}).json()["metadata"]
    assert longer["deletionTimestamp"] == told["deletionTimestamp"]
    shorter = either.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 5}).json()["metadata"]
    moved = instant(shorter["deletionTimestamp"])
    assert moved is not None
    assert deadline - moved == timedelta(seconds=15)
    assert either.delete(f"{PODS}/{name}", FORCE).json()["kind"] == "Pod"
    assert either.get(f"{PODS}/{name}").status_code == 404
    swept(either, name)


def test_a_pod_gets_its_own_grace_where_none_is_asked(either: Api, name: str) -> None:
    bound(either, name, terminationGracePeriodSeconds=77)
    assert either.delete(f"{PODS}/{name}").json()["metadata"]["deletionGracePeriodSeconds"] == 77
    swept(either, name)


def test_a_pod_that_never_reached_a_node_goes_at_once(either: Api, name: str) -> None:
    either.post(PODS, pod(name, nodeSelector={"no": "such"}))
    either.delete(f"{PODS}/{name}")
    assert either.get(f"{PODS}/{name}").status_code == 404


def test_a_finalizer_holds_an_object_until_it_is_taken_off(either: Api, name: str) -> None:
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    either.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": name, "finalizers": ["example.com/hold"]}})
    held = either.delete(path).json()
    assert held["kind"] == "ConfigMap"
    assert held["metadata"]["deletionTimestamp"]
    assert either.get(path).status_code == 200
    either.patch(path, {"metadata": {"finalizers": None}})
    assert either.get(path).status_code == 404


def test_a_budget_refuses_an_eviction_with_429_and_its_cause(either: Api, name: str) -> None:
    """kubernetes/kubernetes#106286: a 429 that is no throttling."""
    either.post(BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}})
    bound(either, name, labels={"app": name})
    eventually(lambda: either.get(f"{BUDGETS}/{name}").json()["status"].get("currentHealthy") == 1)
    answer = either.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name, "namespace": "default"}})
    assert answer.status_code == 429
    assert "retry-after" not in answer.headers
    assert answer.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429, "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{
            "reason": "DisruptionBudget", "message": f"The disruption budget {name} needs 1 healthy pods and has 1 currently",
        }]},
    }  # fmt: skip
    swept(either, name)


def test_a_budget_lets_go_what_it_can_spare_and_counts_it(either: Api, name: str) -> None:
    either.post(BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": name}}}})
    bound(either, name, labels={"app": name})
    eventually(lambda: either.get(f"{BUDGETS}/{name}").json()["status"].get("disruptionsAllowed") == 1)
    answer = either.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 9}})
    assert answer.status_code == 201
    assert answer.json() == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    body = either.get(f"{PODS}/{name}").json()
    assert body["metadata"]["deletionGracePeriodSeconds"] == 9
    assert [item["reason"] for item in body["status"]["conditions"] if item["type"] == "DisruptionTarget"] == [
        "EvictionByEvictionAPI"
    ]
    again = either.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}})
    assert again.status_code == 201
    swept(either, name)


def test_two_budgets_on_one_pod_are_more_than_eviction_can_take(either: Api, name: str) -> None:
    for end in ("", "-b"):
        spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": name}}}
        either.post(BUDGETS, {"metadata": {"name": name + end}, "spec": spec})
    bound(either, name, labels={"app": name})
    answer = either.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}})
    assert answer.status_code == 500
    assert answer.json()["message"] == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
    either.delete(f"{BUDGETS}/{name}-b")
    swept(either, name)


def test_evicting_what_is_gone_is_not_found(either: Api) -> None:
    answer = either.post(f"{PODS}/nope/eviction", {"metadata": {"name": "nope"}})
    assert answer.status_code == 404
    assert answer.json()["message"] == 'pods "nope" not found'


def test_a_pod_is_bound_once(either: Api, name: str) -> None:
    either.post(PODS, pod(name, nodeSelector={"no": "such"}))
    target = {"kind": "Node", "name": f"{name}-node"}
    first = either.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
    second = either.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
    assert first.status_code == 201
    assert second.status_code == 409
    assert second.json()["message"] == (
        f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} is already assigned to node "{name}-node"'
    )
    assert either.get(f"{PODS}/{name}").json()["spec"]["nodeName"] == f"{name}-node"
    swept(either, name)
