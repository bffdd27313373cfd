"""POST of a cluster, as the published client words it."""

import uuid

import pytest
from django.test import Client

from console.clusters.models import Cluster
from tests.api.world import Api, World, error

PATH = "/v1/compute/clusters"
BODY = {
    "cluster_name": "atlas",
    "region": "eu-north-1",
    "gpu_type": "H100_SXM",
    "num_gpus": 8,
    "num_preemptible_gpus": 16,
    "billing_type": "ON_DEMAND",
    "cluster_type": "KUBERNETES",
    "nvidia_version_id": "machine-image",
    "duration_days": None,
    "shared_volume": None,
}


def test_an_administrators_key_creates_a_cluster_in_its_project(api: object, world: World) -> None:
    response = api("admin").post(PATH, BODY)
    made = response.json()
    assert response.status_code == 201
    assert response["Location"] == f"{PATH}/{made['cluster_id']}"
    assert (made["cluster_name"], made["status"], made["kube_config"]) == ("atlas", "WaitingForControlPlaneNodes", "")
    assert (made["num_gpus"], made["desired_preemptible_gpus"], made["allocated_preemptible_gpus"]) == (8, 16, 0)
    assert made["project_id"] == str(world.aurora.pk)
    assert api("admin").get(response["Location"])["ETag"] == response["ETag"]


@pytest.mark.parametrize(
    ("change", "status", "param", "says"),
    [
        ({"cluster_name": "x" * 300}, 422, "cluster_name", "300 characters"),
        ({"cluster_name": "<b>"}, 422, "cluster_name", "letters a to z"),
        ({"cluster_name": "a🌊"}, 422, "cluster_name", "U+1F30A"),
        ({"cluster_name": "a\x00"}, 422, "cluster_name", "U+0000"),
        ({"cluster_name": "a\ud800"}, 422, "cluster_name", "U+D800"),
        ({"cluster_name": ""}, 422, "cluster_name", "needs a name"),
        ({"cluster_name": 7}, 422, "cluster_name", "a text, not 7"),
        ({"cluster_name": None}, 422, "cluster_name", "a text, not null"),
        ({"num_gpus": 0}, 422, "num_gpus", "at least one standard node"),
        ({"num_preemptible_gpus": 7}, 422, "num_preemptible_gpus", "0 or 8, not 7"),
        ({"region": "mars"}, 422, "gpu_type", "There is no pool of H100_SXM in mars"),
        ({"region": "\x00"}, 422, "region", "no such name is written so"),
        ({"billing_type": "RESERVED"}, 422, "billing_type", "on demand"),
        ({"duration_days": 3}, 422, "duration_days", "on demand"),
        ({"auto_scale": True}, 422, "auto_scale", "target that you set"),
        ({"shared_volume": {"size_tib": 1}}, 422, "shared_volume", "no volumes"),
        ({"nvidia_version_id": "570-12.8"}, 422, "nvidia_version_id", "machine-image"),
        ({"oidc_config": {}}, 422, "oidc_config", "OIDC"),
        ({"project_id": "aurora"}, 400, "project_id", "GET /v1/projects"),
        ({"project_id": str(uuid.uuid4())}, 404, "project_id", "no project"),
        ({"cluster_name": "aurora-train"}, 409, "cluster_name", "already"),
    ],
)
def test_bad_input_creates_nothing(
    api: object, world: World, change: dict[str, object], status: int, param: str, says: str
) -> None:
    refused = error(api("admin").post(PATH, {**BODY, **change}), status)
    assert says in refused["message"]
    assert refused["param"] == param
    assert Cluster.objects.count() == 2


def test_a_missing_field_is_named(api: object) -> None:
    assert error(api("admin").post(PATH, {}), 422)["message"].endswith("is missing.")


def test_another_project_than_the_keys_is_not_there(api: object, world: World) -> None:
    error(api("admin").post(PATH, {**BODY, "project_id": str(world.borealis.pk)}), 404)


def test_operators_do_not_create(operator: Api) -> None:
    assert "role admin" in error(operator.post(PATH, BODY), 403)["message"]


def test_a_browsers_cookie_alone_changes_nothing(world: World) -> None:
    """The API has no CSRF check, so a page of another site must not be able to use somebody's session."""
    browser = Client()
    browser.force_login(world.people["ada"])
    assert Api(browser).get(PATH).status_code == 200
    error(Api(browser).post(PATH, BODY), 401)
