"""The number of queries of a page does not depend on how much it shows."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.capacity.models import Pool
from tests.pages import world


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


@pytest.mark.parametrize("tab", ["", "/nodes", "/timeline", "/older", "/chart.json", "/updates"])
def test_a_cluster_page_asks_as_much_for_three_nodes_as_for_thirty(pool: Pool, ada: Client, tab: str) -> None:
    small, large = world.a_busy_cluster(pool, "small", 3), world.a_busy_cluster(pool, "large", 30)

    def path(cluster: object) -> str:
        return f"/clusters/{cluster.pk}{tab}"  # type: ignore[attr-defined]

    assert queries(ada, path(large)) == queries(ada, path(small))


def test_the_create_page_asks_as_much_for_one_pool_as_for_eight(pool: Pool, ada: Client) -> None:
    world.a_project()
    few = queries(ada, "/clusters/new")
    for number in range(7):
        world.a_pool(f"region-{number}")
    assert queries(ada, "/clusters/new") == few
