"""The number of queries of a page does not depend on how much it shows."""

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.capacity import frames
from console.capacity.models import Pool
from console.clusters.models import Node
from tests.pages import world

END = "9999-01-01T00:00:00%2B00:00~1"  # a place after everything


def queries(client: Client, path: str) -> int:
    client.get(path)  # sessions and content types once
    with CaptureQueriesContext(connection) as seen:
        answer = client.get(path)
    assert answer.status_code == 200, answer.content[:500]
    return len(seen)


def test_the_clusters_list_asks_as_much_for_one_as_for_twelve(pool: Pool, ada: Client) -> None:
    world.a_busy_cluster(pool, "one", 1)
    few = queries(ada, "/")
    for number in range(11):
        world.a_busy_cluster(pool, f"more-{number}", 2)
    assert queries(ada, "/") == few


TABS = ("", "/nodes", "/timeline", f"/timeline/rows?before={END}", "/chart.json", "/updates")


@pytest.mark.parametrize("tab", TABS)
def test_a_cluster_page_asks_as_much_for_three_nodes_as_for_thirty(pool: Pool, ada: Client, tab: str) -> None:
    small, large = world.a_busy_cluster(pool, "small", 3), world.a_busy_cluster(pool, "large", 30)
    assert queries(ada, f"/clusters/{large.pk}{tab}") == queries(ada, f"/clusters/{small.pk}{tab}")


def test_a_thousand_nodes_and_a_hundred_thousand_entries_are_asked_for_and_sent_as_little_as_one(pool: Pool, ada: Client) -> None:
    """DESIGN 17: at most 200 kB of a cluster's page, charts apart. What it takes in time is measured by `make bench`."""
    small, large = world.a_large_cluster(pool, "small", 1, 1), world.a_large_cluster(pool, "large", 1000, 100_000)
    for tab in TABS:
        assert queries(ada, f"/clusters/{large.pk}{tab}") == queries(ada, f"/clusters/{small.pk}{tab}"), tab
        answer = ada.get(f"/clusters/{large.pk}{tab}", headers={"Accept-Encoding": "gzip"})
        assert len(answer.content) <= (200_000 if tab == "" else 40_000), tab
    page = ada.get(f"/clusters/{large.pk}").content.decode()
    assert page.count('data-key="cell-') == 1000
    assert page.count('<tr id="node-') == 24


def test_the_change_of_one_node_among_a_thousand_sends_that_node_alone(pool: Pool) -> None:
    cluster = world.a_large_cluster(pool, "large", 1000, 1)
    Node.objects.filter(cluster=cluster, name="gpu-dp-000500").update(ready=False, revision=7)
    frame = frames.compose(cluster.pk, 6, 7, "")
    assert frame is not None
    assert [row.kind for row in frame.rows] == ["cell", "node", "panel"]
    assert len(json.dumps(frame.payload())) < 20_000


def test_the_create_page_asks_as_much_for_one_pool_as_for_eight(pool: Pool, ada: Client) -> None:
    world.a_project()
    few = queries(ada, "/clusters/new")
    for number in range(7):
        world.a_pool(f"region-{number}")
    assert queries(ada, "/clusters/new") == few
