"""Objects: created, read, changed, refused."""

import pytest

from tests.simulator.conftest import Api, pod

PODS = "/api/v1/namespaces/default/pods"


def node(name: str, **metadata: object) -> dict[str, object]:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, **metadata}}


def test_a_created_node_comes_back_with_identity_and_a_startup_taint(either: Api, name: str) -> None:
    answer = either.post("/api/v1/nodes", node(name, labels={"a": "b"}))
    body = answer.json()
    assert answer.status_code == 201
    assert body["kind"] == "Node"
    assert body["metadata"]["uid"]
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert body["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert "date" in answer.headers
    either.delete(f"/api/v1/nodes/{name}")


def test_the_same_name_twice_is_a_conflict(either: Api, name: str) -> None:
    either.post("/api/v1/nodes", node(name))
    answer = either.post("/api/v1/nodes", node(name))
    assert answer.status_code == 409
    assert answer.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": f'nodes "{name}" already exists',
        "reason": "AlreadyExists", "details": {"name": name, "kind": "nodes"}, "code": 409,
    }  # fmt: skip
    either.delete(f"/api/v1/nodes/{name}")


def test_what_is_not_there_is_said_in_a_status(either: Api) -> None:
    answer = either.get("/api/v1/nodes/nope")
    assert answer.status_code == 404
    assert answer.json()["details"] == {"name": "nope", "kind": "nodes"}
    unknown = either.get("/api/v1/nopes")
    assert unknown.status_code == 404
    assert unknown.json()["message"] == "the server could not find the requested resource"
    group = either.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/nope").json()
    assert group["message"] == 'poddisruptionbudgets.policy "nope" not found'
    assert group["details"] == {"name": "nope", "group": "policy", "kind": "poddisruptionbudgets"}


def test_a_bad_name_is_invalid_with_its_cause(either: Api) -> None:
    answer = either.post("/api/v1/nodes", node("Bad_Name"))
    body = answer.json()
    assert answer.status_code == 422
    assert body["reason"] == "Invalid"
    assert body["message"].startswith(
        'Node "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain'
    )
    assert [cause["field"] for cause in body["details"]["causes"]] == ["metadata.name"]


def test_no_name_at_all_is_invalid(either: Api) -> None:
    answer = either.post("/api/v1/nodes", {})
    assert answer.status_code == 422
    assert answer.json()["message"] == 'Node "" is invalid: metadata.name: Required value: name or generateName is required'


def test_a_bad_label_is_invalid(either: Api, name: str) -> None:
    answer = either.post(PODS, pod(name, labels={"app": "sim x"}))
    assert answer.status_code == 422
    assert answer.json()["details"]["causes"][0]["field"] == "metadata.labels"


def test_a_pod_without_containers_is_invalid(either: Api, name: str) -> None:
    answer = either.post(PODS, {"metadata": {"name": name}, "spec": {"nodeName": "x"}})
    assert answer.status_code == 422
    assert answer.json()["message"] == f'Pod "{name}" is invalid: spec.containers: Required value'


def test_a_namespace_that_is_not_there_takes_nothing(either: Api, name: str) -> None:
    answer = either.post("/api/v1/namespaces/nonesuch/pods", pod(name))
    assert answer.status_code == 404
    assert answer.json()["message"] == 'namespaces "nonesuch" not found'


def test_bad_json_is_a_bad_request(either: Api) -> None:
    answer = either.http.post(either.url + PODS, content=b"{bad", headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["reason"] == "BadRequest"


@pytest.mark.parametrize("spec", [{"containers": "x"}, {"containers": [3]}, {"containers": {}}, 7])
def test_a_body_of_the_wrong_shape_is_a_bad_request(either: Api, name: str, spec: object) -> None:
    answer = either.post(PODS, {"metadata": {"name": name}, "spec": spec})
    assert answer.status_code == 400
    assert answer.json()["reason"] == "BadRequest"


def test_another_kind_is_a_bad_request(either: Api) -> None:
    answer = either.post("/api/v1/nodes", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith('Pod in version "v1" cannot be handled as a Node:')


def test_wrong_methods_and_media_types_are_refused(either: Api, name: str) -> None:
    either.post("/api/v1/nodes", node(name))
    assert either.patch("/api/v1/nodes", {}).status_code == 405
    assert either.patch(f"/api/v1/nodes/{name}", {}, kind="").status_code == 415
    assert either.http.post(f"{either.url}/api/v1/nodes", content=b"x", headers={"content-type": "text/plain"}).status_code == 415
    assert either.get("/api/v1/nodes", headers={"accept": "text/plain"}).status_code == 406
    either.delete(f"/api/v1/nodes/{name}")


def test_an_older_version_cannot_be_written(either: Api, name: str) -> None:
    made = either.post("/api/v1/nodes", node(name)).json()
    either.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"x": "y"}}})
    put = either.put(f"/api/v1/nodes/{name}", made)
    patch = either.patch(f"/api/v1/nodes/{name}", {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}})
    for answer in (put, patch):
        assert answer.status_code == 409
        assert answer.json()["message"] == (
            f'Operation cannot be fulfilled on nodes "{name}": the object has been modified; please apply your changes to the '
            "latest version and try again"
        )
    either.delete(f"/api/v1/nodes/{name}")


def test_a_patch_with_another_uid_is_invalid_and_a_put_conflicts(either: Api, name: str) -> None:
    either.post("/api/v1/nodes", node(name))
    patch = either.patch(f"/api/v1/nodes/{name}", {"metadata": {"uid": "1"}, "spec": {"unschedulable": True}})
    put = either.put(f"/api/v1/nodes/{name}", node(name, uid="1"))
    assert patch.status_code == 422
    assert patch.json()["message"].count("field is immutable") >= 1
    assert put.status_code == 409
    assert "Precondition failed: UID in precondition: 1" in put.json()["message"]
    assert "unschedulable" not in either.get(f"/api/v1/nodes/{name}").json()["spec"]
    either.delete(f"/api/v1/nodes/{name}")


def test_a_write_that_changes_nothing_makes_no_version(either: Api, name: str) -> None:
    either.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}, "data": {"a": "1"}})
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    before = either.get(path).json()["metadata"]["resourceVersion"]
    either.patch(path, {"data": {"a": "1"}})
    assert either.get(path).json()["metadata"]["resourceVersion"] == before
    either.delete(path)


def test_a_status_write_leaves_the_spec_and_a_spec_write_the_status(either: Api, name: str) -> None:
    either.post("/api/v1/nodes", node(name))
    path = f"/api/v1/nodes/{name}"
    either.patch(f"{path}/status", {"spec": {"unschedulable": True}, "status": {"capacity": {"nvidia.com/gpu": "8"}}})
    either.patch(path, {"spec": {"providerID": "x://1"}, "status": {"capacity": None}})
    body = either.get(path).json()
    assert "unschedulable" not in body["spec"]
    assert body["spec"]["providerID"] == "x://1"
    assert body["status"]["capacity"] == {"nvidia.com/gpu": "8"}
    either.delete(path)


def test_three_kinds_of_patch_do_what_they_say(either: Api, name: str) -> None:
    path = f"/api/v1/nodes/{name}"
    either.post("/api/v1/nodes", node(name, labels={"a": "1", "b": "2"}))
    taint = {"key": "x", "value": "y", "effect": "NoSchedule"}
    merged = either.patch(path, {"metadata": {"labels": {"a": None}}}).json()
    strategic = either.patch(path, {"spec": {"taints": [taint]}}, "strategic-merge-patch").json()
    jsonned = either.patch(path, [{"op": "add", "path": "/metadata/labels/c~1d", "value": "3"}], "json-patch").json()
    assert merged["metadata"]["labels"] == {"b": "2"}
    assert strategic["spec"]["taints"] == [taint]
    assert jsonned["metadata"]["labels"] == {"b": "2", "c/d": "3"}
    failed = either.patch(path, [{"op": "test", "path": "/metadata/name", "value": "q"}], "json-patch")
    assert failed.status_code == 422
    assert failed.json()["message"] == "the server rejected our request due to an error in our request"
    either.delete(path)


def test_a_dry_run_changes_nothing(either: Api, name: str) -> None:
    assert either.post("/api/v1/nodes?dryRun=All", node(name)).status_code == 201
    assert either.get(f"/api/v1/nodes/{name}").status_code == 404


def test_an_event_is_the_same_under_both_groups(either: Api, name: str) -> None:
    about = {"kind": "Node", "name": name, "uid": "u-1", "apiVersion": "v1"}
    told = {"reason": "TogetherPreempted", "message": "taken back", "type": "Warning", "count": 1}
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp"), "2026-11-30T20:00:00Z")
    who = {"reportingComponent": "halftide", "reportingInstance": "h-1"}
    body = {"metadata": {"name": name}, "involvedObject": about, **told, **times, **who}
    assert either.post("/api/v1/namespaces/default/events", body).status_code == 201
    new = either.get(f"/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name={name}").json()["items"]
    assert len(new) == 1
    assert (new[0]["note"], new[0]["reportingController"], new[0]["regarding"]) == ("taken back", "halftide", about)
    old = either.get(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid=u-1,involvedObject.name={name}").json()
    assert old["items"][0]["message"] == "taken back"
    either.delete(f"/api/v1/namespaces/default/events/{name}")
