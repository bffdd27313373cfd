"""The server refuses, not only the page."""

import pytest
from django.test import Client
from django.urls import resolve

from console.accounts.models import Role
from console.capacity.models import Automation, Pool
from console.clusters.models import Cluster
from tests.pages import world

JSON = {"HTTP_ACCEPT": "application/json"}


def test_a_viewer_sees_no_control_and_is_refused_each(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    page = vic.get(f"/clusters/{cluster.pk}").content.decode()
    assert "data-cordon>" not in page
    assert "Reclaim" not in page
    assert "You may look here." in page
    for path, form in (("target", {"gpus": "8"}), ("cordon", {"node": node.pk, "on": "1"}), ("reclaim", {"gpus": "8"})):
        assert vic.post(f"/clusters/{cluster.pk}/{path}", form, **JSON).status_code == 403
    assert vic.post("/automation", {"on": "0"}).status_code == 403
    assert vic.get("/clusters/new").status_code == 403
    assert Cluster.objects.get(pk=cluster.pk).desired_preemptible_gpus == 16


@pytest.mark.parametrize("tab", ["", "/nodes", "/timeline", "/timeline/rows", "/timeline/lately", "/updates", "/chart.json"])
def test_a_cluster_of_another_project_is_not_there(pool: Pool, vic: Client, tab: str) -> None:
    other = world.a_cluster(pool, "borealis-eval", "borealis")
    path = f"/clusters/{other.pk}{tab}"
    assert resolve(path)  # a path that leads nowhere would prove nothing
    assert vic.get(path).status_code == 404
    assert "borealis-eval" not in vic.get("/").content.decode()


def test_only_a_fleet_operator_reclaims_and_flips_the_switch(pool: Pool, olu: Client, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    assert olu.post(f"/clusters/{cluster.pk}/reclaim", {"gpus": "8"}, **JSON).status_code == 403
    assert olu.post("/automation", {"on": "0", "why": "x"}).status_code == 403
    assert ada.post("/automation", {"on": "0", "why": "rack move", "next": f"/clusters/{cluster.pk}"}).status_code == 302
    assert not Automation.objects.get().on
    assert "rack move" in olu.get("/").content.decode()


def test_the_switch_never_sends_anybody_to_another_site(pool: Pool, ada: Client) -> None:
    for away in ("https://example.com/", "//example.com", "javascript:alert(1)"):
        answer = ada.post("/automation", {"on": "0", "why": "x", "next": away})
        assert answer.headers["Location"] == "/"


@pytest.mark.parametrize("action", ["target", "cordon", "reclaim"])
def test_what_changes_something_takes_only_posts(pool: Pool, ada: Client, action: str) -> None:
    assert ada.get(f"/clusters/{world.a_cluster(pool).pk}/{action}").status_code == 405


def test_a_form_of_another_site_is_refused(pool: Pool) -> None:
    client = world.browser(world.a_person("eve", Role.ADMIN), enforce_csrf_checks=True)
    answer = client.post(f"/clusters/{world.a_cluster(pool).pk}/target", {"gpus": "64"})
    assert answer.status_code == 403
    assert "earlier sign-in" in answer.content.decode()
