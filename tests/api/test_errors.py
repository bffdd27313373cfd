"""Whatever goes wrong, the answer is the envelope."""

from unittest import mock

import pytest

from console.api import routes
from tests.api.world import Api, World, error


@pytest.mark.parametrize("address", ["/v1/", "/v1/nothing", "/v1/compute/clusters/", "/v3/x", "/api/", "/v1/compute//clusters"])
@pytest.mark.parametrize("role", ["operator", None])
def test_an_unknown_address_is_said_as_json_to_everybody(api: object, address: str, role: str | None) -> None:
    assert error(api(role).get(address), 404)["code"] == "unknown_address"


def test_a_base_address_with_a_version_too_many_is_explained(api: object) -> None:
    assert "without /v1" in error(api(None).get("/v1/v3/whoami"), 404)["message"]


@pytest.mark.parametrize(
    ("method", "address"),
    [("DELETE", "/v1/compute/regions"), ("PATCH", "/v3/whoami"), ("POST", "/v1/projects"), ("PUT", "/api/docs")],
)
def test_a_wrong_method_says_which_are_right(operator: Api, method: str, address: str) -> None:
    response = operator.send(method, address)
    assert error(response, 405)["message"] == f"{method} does nothing here; GET does."
    assert response["Allow"] == "GET"


@pytest.mark.parametrize("address", ["/v1/compute/clusters", "/v1/projects", "/v1/compute/regions", "/v3/whoami"])
def test_a_query_parameter_that_no_route_knows_is_not_ignored(operator: Api, address: str) -> None:
    refused = error(operator.get(f"{address}?projectid=1"), 422)
    assert refused["param"] == "projectid"
    if address.endswith("clusters"):
        assert "Did you mean projectId?" in refused["message"]


def test_head_is_get_without_a_body_and_no_answer_is_kept(operator: Api, path: str) -> None:
    full, bare = operator.get(path), operator.send("HEAD", path)
    assert (bare.status_code, bare.content, bare["ETag"]) == (200, b"", full["ETag"])
    assert "no-store" in full["Cache-Control"]


def test_deleting_a_cluster_is_not_offered(operator: Api, path: str) -> None:
    response = operator.send("DELETE", path)
    error(response, 405)
    assert response["Allow"] == "GET, PUT"


@pytest.mark.parametrize("key", ["", "ht_wrong", "not-a-key"])
def test_without_a_good_key_nothing_is_told(api: object, path: str, key: str) -> None:
    response = api(None).get(path, authorization=f"Bearer {key}") if key else api(None).get(path)
    error(response, 401)
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("which", ["not-a-uuid", "6f1d3a52-0c3e-4b7e-9a55-2f4f6f0f7d11", "0", "%00", "🌊", "{}"])
def test_a_cluster_that_is_not_there_is_404(operator: Api, which: str) -> None:
    error(operator.get(f"/v1/compute/clusters/{which}"), 404)


def test_a_cluster_of_another_project_is_not_there(operator: Api, world: World) -> None:
    other = f"/v1/compute/clusters/{world.other.pk}"
    for response in (operator.get(other), operator.put(other, {}), operator.get(f"{other}/node_lifecycle_events")):
        error(response, 404)


def test_somebody_without_a_role_is_told_whom_to_ask(world: World, client: object) -> None:
    client.force_login(world.people["fay"])
    assert "administrator" in error(Api(client).get("/v3/whoami"), 403)["message"]


def test_a_fault_of_ours_is_logged_and_says_nothing_of_itself(operator: Api, path: str, caplog: pytest.LogCaptureFixture) -> None:
    with mock.patch.object(routes, "get_cluster", side_effect=RuntimeError("a secret")):
        refused = error(operator.get(path), 500)
    assert refused["type"] == "server_error"
    assert "secret" not in refused["message"]
    assert "a secret" in caplog.text
