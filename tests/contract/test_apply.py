"""Server-side apply: who owns which field, and what the server says when two want one."""

from typing import Any

import httpx

from tests.simulator.conftest import Api, Json

APPLY = {"content-type": "application/apply-patch+yaml"}


def apply(either: Api, path: str, body: Json, manager: str = "a", **query: str) -> httpx.Response:
    params = {"fieldManager": manager, **query}
    return either.http.patch(either.url + path, json=body, headers=APPLY, params=params)


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def owners(body: Json) -> list[tuple[str, str, Any]]:
    found = body["metadata"]["managedFields"]
    return sorted((entry["manager"], entry["operation"], entry["fieldsV1"]) for entry in found)


def test_an_apply_makes_the_object_and_owns_what_it_says(either: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/configmaps/m"
    made = apply(either, path, config_map("m", x="1"))
    assert made.status_code == 201
    assert owners(made.json()) == [("a", "Apply", {"f:data": {"f:x": {}}})]
    again = apply(either, path, config_map("m", x="1"))
    assert again.status_code == 200
    assert again.json()["metadata"]["resourceVersion"] == made.json()["metadata"]["resourceVersion"]


def test_what_an_apply_no_longer_says_is_gone_unless_another_said_it_too(either: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/configmaps/m"
    apply(either, path, config_map("m", x="1", y="2", z="3"))
    apply(either, path, config_map("m", y="2"), "b")
    either.patch(path, {"data": {"theirs": "4"}})
    assert apply(either, path, config_map("m", x="1")).json()["data"] == {"x": "1", "y": "2", "theirs": "4"}


def test_another_value_for_anothers_field_is_a_conflict_until_it_is_forced(either: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/configmaps/m"
    apply(either, path, config_map("m", x="1", y="1"))
    refused = apply(either, path, config_map("m", x="2"), "b")
    assert refused.status_code == 409
    assert refused.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Conflict", "code": 409,
        "message": 'Apply failed with 1 conflict: conflict with "a": .data.x',
        "details": {"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".data.x"}]},
    }  # fmt: skip
    twice = apply(either, path, config_map("m", x="2", y="2"), "b").json()["message"]
    assert twice == 'Apply failed with 2 conflicts: conflicts with "a":\n- .data.x\n- .data.y'
    forced = apply(either, path, config_map("m", x="2"), "b", force="true").json()
    assert owners(forced) == [("a", "Apply", {"f:data": {"f:y": {}}}), ("b", "Apply", {"f:data": {"f:x": {}}})]


def test_who_writes_otherwise_owns_what_they_changed(either: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/configmaps/m"
    apply(either, path, config_map("m", x="1"))
    either.http.patch(
        either.url + path, json={"data": {"x": "2"}}, headers={"content-type": "application/merge-patch+json"},
        params={"fieldManager": "editor"},
    )  # fmt: skip
    refused = apply(either, path, config_map("m", x="1")).json()
    assert refused["message"].startswith('Apply failed with 1 conflict: conflict with "editor" using v1')
    assert refused["message"].endswith(": .data.x")


def test_lists_of_named_things_are_owned_item_by_item(either: Api, space: str) -> None:
    path = f"/apis/apps/v1/namespaces/{space}/deployments/d"
    labels = {"app": "d"}

    def body(*containers: Json) -> Json:
        template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": {"no": "such"}, "containers": list(containers)}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}

    main, side = ({"name": name, "image": f"registry.example/{name}:1"} for name in ("main", "side"))
    assert apply(either, path, body(main, side)).status_code == 201
    partial = body({"name": "main", "image": main["image"], "env": [{"name": "E", "value": "1"}]})
    del partial["spec"]["replicas"]
    assert apply(either, path, partial, "b").status_code == 200
    left = apply(either, path, body(main)).json()["spec"]["template"]["spec"]["containers"]
    assert [(item["name"], [env["name"] for env in item.get("env") or []]) for item in left] == [("main", ["E"])]
    either.delete(path)


def test_nonsense_in_an_apply_is_refused(either: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/configmaps/m"
    nobody = either.http.patch(either.url + path, json=config_map("m"), headers=APPLY)
    assert nobody.status_code == 422
    why = "fieldManager: Required value: is required for apply patch"
    assert nobody.json()["message"] == f'PatchOptions.meta.k8s.io "" is invalid: {why}'
    other = apply(either, path, config_map("other"))
    assert other.status_code == 400
    unknown = apply(either, path, {**config_map("m"), "foo": 1})
    assert unknown.status_code == 500
    assert unknown.json()["message"] == (
        "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .foo: field not declared in schema"
    )


def test_a_field_that_no_such_object_has_is_refused_or_dropped_as_asked(either: Api, space: str) -> None:
    maps = f"/api/v1/namespaces/{space}/configmaps"
    strict = either.post(maps, {**config_map("m"), "foo": 1}, params={"fieldValidation": "Strict"})
    assert strict.status_code == 400
    assert strict.json()["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo"'
    )
    assert "foo" not in either.post(maps, {**config_map("m"), "foo": 1}).json()
