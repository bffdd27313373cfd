"""Lists, watches, tables and discovery."""

import threading
import time

import pytest

from tests.simulator.conftest import Api, Json

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
COLUMNS = {
    "/api/v1/nodes": "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*",
    "/api/v1/pods": "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*",
    "/api/v1/events": "Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*",
    "/api/v1/namespaces": "Name Status Age",
    "/api/v1/secrets": "Name Type Data Age",
    "/api/v1/configmaps": "Name Data Age",
    "/apis/apps/v1/daemonsets": "Name Desired Current Ready Up-to-date Available Node_Selector Age Containers* Images* Selector*",
    "/apis/apps/v1/replicasets": "Name Desired Current Ready Age Containers* Images* Selector*",
    "/apis/apps/v1/deployments": "Name Ready Up-to-date Available Age Containers* Images* Selector*",
    "/apis/batch/v1/jobs": "Name Status Completions Duration Age Containers* Images* Selector*",
    "/apis/policy/v1/poddisruptionbudgets": "Name Min_Available Max_Unavailable Allowed_Disruptions Age",
    "/apis/coordination.k8s.io/v1/leases": "Name Holder Age",
}


def make(either: Api, name: str, count: int) -> str:
    """Config maps with a label of their own; returns the selector."""
    for number in range(count):
        body = {
            "metadata": {"name": f"{name}-{number}", "labels": {"run": name, "odd": str(number % 2)}},
            "data": {"n": str(number)},
        }
        assert either.post(MAPS, body).status_code == 201
    return f"run={name}"


def sweep(either: Api, name: str) -> None:
    either.http.request("DELETE", either.url + MAPS, params={"labelSelector": f"run={name}"})


@pytest.mark.parametrize("path", COLUMNS)
def test_a_table_has_the_columns_of_kubectl(either: Api, path: str) -> None:
    table = either.get(path, headers=TABLE).json()
    shown = [head["name"].replace(" ", "_") + ("*" if head["priority"] else "") for head in table["columnDefinitions"]]
    assert table["kind"] == "Table"
    assert " ".join(shown) == COLUMNS[path]
    assert [head["format"] for head in table["columnDefinitions"]].count("name") == 1


def test_a_list_carries_a_version_and_its_items_no_kind(either: Api, name: str) -> None:
    selector = make(either, name, 2)
    body = either.get(MAPS, params={"labelSelector": selector}).json()
    assert body["kind"] == "ConfigMapList"
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert [item["metadata"]["name"] for item in body["items"]] == [f"{name}-0", f"{name}-1"]
    assert "kind" not in body["items"][0]
    sweep(either, name)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("odd=1", "13"),
        ("odd!=1", "02"),
        ("odd in (0,1)", "0123"),
        ("odd notin (0)", "13"),
        ("odd", "0123"),
        ("!odd", ""),
        ("odd==0", "02"),
    ],
)
def test_label_selectors_select(either: Api, name: str, selector: str, found: str) -> None:
    run = make(either, name, 4)
    items = either.get(MAPS, params={"labelSelector": f"{run},{selector}"}).json()["items"]
    assert "".join(item["data"]["n"] for item in items) == found
    sweep(either, name)


def test_field_selectors_select_or_are_refused(either: Api, name: str) -> None:
    make(either, name, 2)
    items = either.get(MAPS, params={"fieldSelector": f"metadata.name={name}-1"}).json()["items"]
    assert [item["data"]["n"] for item in items] == ["1"]
    refused = either.get("/api/v1/nodes", params={"fieldSelector": "foo=bar"})
    assert refused.status_code == 400
    assert refused.json()["message"] == "field label not supported: foo"
    assert either.get("/api/v1/nodes", params={"labelSelector": "a===b"}).status_code == 400
    sweep(either, name)


def test_pages_show_one_instant_whatever_changes_between_them(either: Api, name: str) -> None:
    selector = make(either, name, 5)
    first = either.get(MAPS, params={"labelSelector": selector, "limit": 2}).json()
    either.delete(f"{MAPS}/{name}-3")
    either.post(MAPS, {"metadata": {"name": f"{name}-2b", "labels": {"run": name}}})
    names, page = [item["metadata"]["name"] for item in first["items"]], first
    while page["metadata"].get("continue"):
        page = either.get(MAPS, params={"labelSelector": selector, "limit": 2, "continue": page["metadata"]["continue"]}).json()
        names += [item["metadata"]["name"] for item in page["items"]]
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert names == [f"{name}-{number}" for number in range(5)]
    assert either.get(MAPS, params={"limit": 1, "continue": "abc"}).status_code == 400
    sweep(either, name)


def test_a_watch_tells_each_change_once_and_in_order(either: Api, name: str) -> None:
    selector = make(either, name, 1)
    version = either.get(MAPS, params={"labelSelector": selector}).json()["metadata"]["resourceVersion"]
    either.post(MAPS, {"metadata": {"name": f"{name}-x", "labels": {"run": name}}})
    either.patch(f"{MAPS}/{name}-x", {"data": {"a": "1"}})
    either.delete(f"{MAPS}/{name}-x")
    events = either.watch(MAPS, labelSelector=selector, resourceVersion=version)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        (kind, f"{name}-x") for kind in ("ADDED", "MODIFIED", "DELETED")
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert events[0]["object"]["kind"] == "ConfigMap"
    sweep(either, name)


def test_leaving_a_selection_is_a_deletion_for_its_watcher_and_coming_in_an_addition(either: Api, name: str) -> None:
    make(either, name, 1)
    version = either.get(MAPS).json()["metadata"]["resourceVersion"]
    either.patch(f"{MAPS}/{name}-0", {"metadata": {"labels": {"odd": "1"}}})
    either.patch(f"{MAPS}/{name}-0", {"metadata": {"labels": {"odd": "0"}}})
    events = either.watch(MAPS, labelSelector=f"run={name},odd=0", resourceVersion=version)
    assert [event["type"] for event in events] == ["DELETED", "ADDED"]
    assert events[0]["object"]["metadata"]["labels"]["odd"] == "0"
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > int(version)
    sweep(either, name)


def test_a_watch_hears_what_happens_while_it_is_open(either: Api, name: str) -> None:
    make(either, name, 1)
    events: list[Json] = []
    follower = threading.Thread(target=lambda: events.extend(either.watch(MAPS, 2, labelSelector=f"run={name}")))
    follower.start()
    time.sleep(0.7)
    either.patch(f"{MAPS}/{name}-0", {"data": {"n": "9"}})
    follower.join()
    assert [(event["type"], event["object"]["data"]["n"]) for event in events] == [("ADDED", "0"), ("MODIFIED", "9")]
    sweep(either, name)


def test_a_streamed_list_ends_with_a_marked_bookmark(either: Api, name: str) -> None:
    selector = make(either, name, 2)
    more = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    events = either.watch(MAPS, labelSelector=selector, **more)
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    refused = either.get(MAPS, params={"watch": "1", "sendInitialEvents": "true"})
    assert refused.status_code == 422
    sweep(either, name)


def test_a_table_watch_names_its_columns_once(either: Api, name: str) -> None:
    selector = make(either, name, 2)
    params = {"watch": "1", "timeoutSeconds": 1, "labelSelector": selector}
    lines = either.get(MAPS, params=params, headers=TABLE).text.splitlines()
    assert ['"columnDefinitions":null' in line.replace(" ", "") for line in lines] == [False, True]
    sweep(either, name)


def test_versions_of_the_future_and_nonsense_are_refused(either: Api) -> None:
    future = either.get("/api/v1/nodes", params={"resourceVersion": "99999999"})
    assert future.status_code == 504
    assert future.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert either.get("/api/v1/nodes", params={"watch": "1", "resourceVersion": "abc"}).status_code == 500


def test_metadata_alone_can_be_asked_for(either: Api, name: str) -> None:
    selector = make(either, name, 1)
    accept = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    body = either.get(MAPS, params={"labelSelector": selector}, headers=accept).json()
    assert body["kind"] == "PartialObjectMetadataList"
    assert "data" not in body["items"][0]
    assert body["items"][0]["metadata"]["name"] == f"{name}-0"
    sweep(either, name)


def test_discovery_offers_what_kubectl_drain_looks_for(either: Api) -> None:
    core = {entry["name"]: entry for entry in either.get("/api/v1").json()["resources"]}
    assert core["pods/eviction"] == {
        "name": "pods/eviction", "singularName": "", "namespaced": True, "group": "policy", "version": "v1", "kind": "Eviction",
        "verbs": ["create"],
    }  # fmt: skip
    assert core["nodes"]["shortNames"] == ["no"]
    groups = {group["name"] for group in either.get("/apis").json()["groups"]}
    assert {"apps", "batch", "policy", "coordination.k8s.io", "events.k8s.io"} <= groups
    assert either.get("/version").json()["gitVersion"] == "v1.36.3"
    assert either.get("/api").json()["versions"] == ["v1"]
