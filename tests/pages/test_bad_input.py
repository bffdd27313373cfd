"""What makes no sense is refused with a sentence, nothing changes, and nothing that was typed is lost."""

import pytest
from django.test import Client

from console.capacity.models import Pool
from console.clusters.models import Cluster
from console.timeline.models import Stream
from tests.pages import world

JSON = {"HTTP_ACCEPT": "application/json"}


@pytest.mark.parametrize("typed", ["", " ", "-8", "8.0", "1e2", "abc", "９６", "8\x00", "99999999999999", "0x10", "8 16"])
def test_a_target_that_is_no_number_is_refused_with_a_sentence(pool: Pool, olu: Client, typed: str) -> None:
    cluster = world.a_cluster(pool)
    answer = olu.post(f"/clusters/{cluster.pk}/target", {"gpus": typed}, **JSON)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("The target ")
    assert Cluster.objects.get(pk=cluster.pk).desired_preemptible_gpus == 16


def test_a_target_between_two_nodes_names_the_two_nearest(pool: Pool, olu: Client) -> None:
    """react-component/slider#408: a value off the step has a stated rule."""
    cluster = world.a_cluster(pool)
    answer = olu.post(f"/clusters/{cluster.pk}/target", {"gpus": "60"}, **JSON)
    assert answer.status_code == 422
    assert "56" in answer.json()["error"]["message"]
    assert "64" in answer.json()["error"]["message"]


def test_a_form_without_scripts_gets_its_page_back_with_what_was_typed(pool: Pool, olu: Client) -> None:
    cluster = world.a_cluster(pool)
    answer = olu.post(f"/clusters/{cluster.pk}/target", {"gpus": "60"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'name="gpus"' in page
    assert 'value="60"' in page
    assert "Not changed." in page


def test_a_stale_target_is_told_the_newer_one_and_changes_nothing(pool: Pool, olu: Client) -> None:
    """adobe/spectrum-web-components#2743: a value based on an old one is never taken silently."""
    cluster = world.a_cluster(pool)
    assert olu.post(f"/clusters/{cluster.pk}/target", {"gpus": "24", "based_on": "0"}, **JSON).status_code == 200
    answer = olu.post(f"/clusters/{cluster.pk}/target", {"gpus": "64", "based_on": "0"}, **JSON)
    assert answer.status_code == 409
    assert answer.json()["error"]["desired"] == 24
    assert answer.json()["error"]["set_by"] == "olu"
    assert Cluster.objects.get(pk=cluster.pk).desired_preemptible_gpus == 24


def test_a_good_target_answers_with_the_panel_as_it_is_now(pool: Pool, olu: Client) -> None:
    cluster = world.a_cluster(pool)
    body = olu.post(f"/clusters/{cluster.pk}/target", {"gpus": "64", "based_on": "0"}, **JSON).json()
    assert body["revision"] == Cluster.objects.get(pk=cluster.pk).target_revision > 0
    assert body["head"] == Stream.objects.get(pk=cluster.stream).revision >= body["revision"]
    assert 'data-part="gauge"' in body["panel"]
    assert "64 × $1.995 = $127.68/h" in body["panel"]


CREATE = {"name": "kelp-sim", "region": "eu-north-1", "gpu_type": "H100_SXM", "standard": "8", "preemptible": "16"}


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("name", ""),
        ("name", "<b>bold</b>"),
        ("name", "n" * 300),
        ("name", "tide🌊"),
        ("name", "nul\x00"),
        ("standard", "0"),
        ("standard", "12"),
        ("standard", "-8"),
        ("preemptible", "60"),
        ("preemptible", "many"),
        ("preemptible", "99999999999"),
        ("gpu_type", "ABACUS"),
    ],
)
def test_a_fault_in_the_create_form_stands_beside_its_field_and_the_rest_stays(
    pool: Pool, ada: Client, field: str, typed: str
) -> None:
    project = world.a_project()
    answer = ada.post("/clusters/new", {**CREATE, "project": str(project.pk), field: typed})
    form = answer.context["form"]
    assert answer.status_code == 422
    assert list(form.errors) == [field]
    assert form.errors[field].endswith(".")
    assert form.typed == {**CREATE, "project": str(project.pk), field: typed}
    assert Cluster.objects.count() == 0


def test_a_good_create_form_opens_the_new_cluster(pool: Pool, ada: Client) -> None:
    answer = ada.post("/clusters/new", {**CREATE, "project": str(world.a_project().pk)})
    made = Cluster.objects.get(name="kelp-sim")
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/clusters/{made.pk}"
    assert (made.desired_standard_gpus, made.desired_preemptible_gpus) == (8, 16)


def test_the_preview_says_price_and_pool_while_numbers_are_half_typed(pool: Pool, ada: Client) -> None:
    page = ada.get("/clusters/new/preview", {**CREATE, "preemptible": "6x"}).content.decode()
    assert "8 standard × $3.99 = <b>$31.92/h</b>" in page
    assert "32 GPUs" in page


@pytest.mark.parametrize(
    "query", ["?before=nonsense", "?before=2026-01-01~1", "?before=~", "?before=2026-01-01T00:00:00%2B00:00~x"]
)
def test_a_place_that_is_none_shows_the_newest(pool: Pool, vic: Client, query: str) -> None:
    cluster = world.a_cluster(pool)
    world.an_entry(cluster, "the newest")
    assert "the newest" in vic.get(f"/clusters/{cluster.pk}/timeline{query}").content.decode()


@pytest.mark.parametrize(
    "query", ["", "?since=-1", "?since=abc", "?since=99999999999999999999", "?since=1&epoch=other", "?since=5"]
)
def test_a_poll_from_nowhere_is_told_to_load_again(pool: Pool, vic: Client, query: str) -> None:
    cluster = world.a_cluster(pool)
    assert vic.get(f"/clusters/{cluster.pk}/updates{query}").json()["type"] == "reload"


@pytest.mark.parametrize("path", ["", "/nodes?page=9999", "/nodes?page=x", "/chart.json?range=century"])
def test_odd_addresses_of_a_cluster_still_answer(pool: Pool, vic: Client, path: str) -> None:
    assert vic.get(f"/clusters/{world.a_cluster(pool).pk}{path}").status_code == 200
