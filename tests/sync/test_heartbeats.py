"""What changes nothing costs nothing: no query, no row, no frame (kubernetes/kubernetes#29772)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.clusters.models import Cluster
from console.timeline.models import Entry, Stream
from tests.sync.world import Line, event, node, pod

Queries = Callable[[int], Any]


def settle(line: Line, count: int) -> None:
    line.write(*line.listed("nodes", [node(f"gpu-dp-{n}") for n in range(count)]))
    line.write(*line.listed("pods", []), *line.listed("events", []))


def test_a_thousand_heartbeats_cost_no_query(line: Line, django_assert_num_queries: Queries) -> None:
    settle(line, 1000)
    line.now += timedelta(seconds=5)
    with django_assert_num_queries(0):
        for first in range(0, 1000, 100):
            line.write(*line.seen(*(node(f"gpu-dp-{n}", version=200 + n) for n in range(first, first + 100))))


def test_that_kubernetes_forgets_events_costs_no_query(line: Line, django_assert_num_queries: Queries) -> None:
    line.write(*line.seen(event("event-1"), event("event-2"), type_="ADDED"))
    with django_assert_num_queries(0):
        line.write(*line.seen(event("event-1"), event("event-2"), type_="DELETED"))
    assert line.room.known["events"] == {}


def test_signs_of_life_move_the_proof_each_ten_seconds_and_no_revision(line: Line) -> None:
    settle(line, 3)
    head = Stream.objects.get(pk=line.cluster.stream).revision
    writes = []
    for second in range(60):
        line.now += timedelta(seconds=1)
        with CaptureQueriesContext(connection) as queries:
            line.write(*line.heard("nodes"), *line.heard("pods"), *line.seen(node("gpu-dp-1", version=300 + second)))
        writes.append(sum(query["sql"].startswith("UPDATE") for query in queries))
    assert sum(writes) == 6
    assert line.fresh().proved_to == line.now
    assert Stream.objects.get(pk=line.cluster.stream).revision == head


def test_the_proof_goes_no_further_than_nodes_were_heard(line: Line) -> None:
    """A silent stream may have missed anything, however alive the others are."""
    settle(line, 1)
    heard = line.now
    for _ in range(30):
        line.now += timedelta(seconds=1)
        line.write(*line.heard("pods"), *line.heard("events"))
    assert line.fresh().proved_to == heard


def test_a_batch_of_five_hundred_nodes_takes_as_many_queries_as_one_of_ten(
    line: Line, django_assert_max_num_queries: Queries
) -> None:
    line.write(*line.listed("nodes", []))
    with django_assert_max_num_queries(25):
        line.write(*line.seen(*(node(f"gpu-dp-{n}", version=200 + n) for n in range(500)), type_="ADDED"))
    assert line.fresh().allocated_standard_gpus == 4000


def test_checkpoints_of_many_pods_are_one_write_a_minute(line: Line, django_assert_num_queries: Queries) -> None:
    settle(line, 1)
    saved = [pod(f"train-{n}", "gpu-dp-0", version=400 + n, last_checkpoint=line.now) for n in range(50)]
    line.write(*line.seen(*saved, type_="ADDED"))
    with django_assert_num_queries(0):
        line.write(*line.seen(*(pod(f"train-{n}", "gpu-dp-0", version=500 + n, last_checkpoint=line.now) for n in range(50))))
    assert not Entry.objects.exists()
    assert Cluster.objects.get().pods.count() == 50
