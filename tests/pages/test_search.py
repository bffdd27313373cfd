"""Search finds what one may see, by all the words typed, and asks as much for one as for many."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.capacity.models import Pool
from console.clusters.models import Machine
from tests.pages import world

JSON = {"Accept": "application/json"}


def titles(client: Client, text: str) -> dict[str, list[str]]:
    found = client.get("/search", {"q": text}, headers=JSON).json()
    return {group["title"]: [hit["title"] for hit in group["hits"]] for group in found["groups"]}


def test_clusters_nodes_entries_and_pages_are_found_by_all_words(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "gpu-preemptible-dp-51fb")
    world.an_entry(cluster, "gpu-preemptible-dp-51fb boots")
    world.an_entry(cluster, "Preemptible target from 8 to 64", reason="TargetChanged", actor_name="ada")
    assert titles(ada, "51fb") == {"Nodes": ["gpu-preemptible-dp-51fb"], "Newest entries": ["gpu-preemptible-dp-51fb boots"]}
    assert titles(ada, "targetchanged ada") == {"Newest entries": ["Preemptible target from 8 to 64"]}
    assert titles(ada, "AURORA eu-north")["Clusters"] == [
        "aurora-train",
        "aurora-train: Nodes",
        "aurora-train: Workloads",
        "aurora-train: Timeline",
        "aurora-train: Startup scripts",
        "aurora-train: Checkpoint planner",
    ]
    assert titles(ada, "aurora time")["Clusters"] == ["aurora-train: Timeline"]
    assert titles(ada, "create") == {"Pages": ["Create a cluster"]}
    assert titles(ada, "zebra") == {}
    assert titles(ada, "") == {"Clusters": ["aurora-train"], "Pages": ["Clusters", "Capacity", "Webhooks", "Create a cluster"]}


def test_a_hit_leads_to_its_row(pool: Pool, vic: Client) -> None:
    cluster = world.a_large_cluster(pool, "large", 120, 60)
    entry = world.an_entry(cluster, "the one among many")
    machine = Machine.objects.get(node_name="gpu-dp-000119")
    for text, row in (("000119", f'id="node-{machine.pk.hex}"'), ("among many", f'id="e{entry.pk}"')):
        (group,) = vic.get("/search", {"q": text}, headers=JSON).json()["groups"]
        address = group["hits"][0]["href"]
        assert row in vic.get(address.partition("#")[0]).content.decode()


def test_what_one_may_not_see_is_not_found(pool: Pool, vic: Client) -> None:
    other = world.a_cluster(pool, "borealis-eval", "borealis")
    world.a_node(other, "gpu-borealis-1")
    world.an_entry(other, "borealis happened")
    assert titles(vic, "borealis") == {}
    assert titles(vic, "capacity") == {}
    assert titles(vic, "create") == {}


def test_search_asks_as_much_for_one_as_for_many_and_answers_a_few(pool: Pool, ada: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            ada.get("/search", {"q": "gpu"})
        return len(seen)

    world.a_large_cluster(pool, "gpu-0", 1, 1)
    asked()
    few = asked()
    for number in range(1, 10):
        world.a_large_cluster(pool, f"gpu-{number}", 30, 30)
    assert asked() == few
    assert all(len(hits) <= 8 for hits in titles(ada, "gpu").values())


@pytest.mark.parametrize("text", ["\0", "%", "_", "'; DROP", "a" * 5000, "  ", "\\", world.HOSTILE])
def test_any_text_can_be_looked_for_and_is_shown_as_text(pool: Pool, ada: Client, text: str) -> None:
    world.an_entry(world.a_cluster(pool, "plain"), f"about {world.HOSTILE}")
    page = ada.get("/search", {"q": text})
    assert page.status_code == 200
    assert "<img src=x" not in page.content.decode()


def test_without_scripts_the_glass_leads_to_a_plain_page(pool: Pool, vic: Client) -> None:
    world.a_cluster(pool)
    assert 'href="/search"' in vic.get("/").content.decode()
    page = vic.get("/search", {"q": "aurora"}).content.decode()
    assert '<form class="bar filters" method="get" action="/search"' in page
    assert "aurora-train" in page
    assert "Nothing has all of “zebra”" in vic.get("/search", {"q": "zebra"}).content.decode()
