"""What Prometheus reads: ages and counts from rows, nothing about people, and only for who may."""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
import redis
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from console.capacity.models import Drain, Pool
from console.clusters.models import Cluster
from tests.pages import world


def read(client: Client, **more: Any) -> dict[tuple[str, tuple[str, ...]], float]:
    answer = client.get("/metrics", **more)
    assert answer.status_code == 200, answer.content
    families = text_string_to_metric_families(answer.content.decode())
    return {(one.name, tuple(one.labels.values())): one.value for family in families for one in family.samples}


def test_ages_and_counts_are_those_of_the_rows(pool: Pool, client: Client) -> None:
    now = timezone.now()
    cluster = world.a_cluster(pool, unreachable_since=now, allocated_preemptible_gpus=8)
    Cluster.objects.update(proved_to=now - timedelta(seconds=90))
    drain = world.a_drain(world.a_node(cluster, "gpu-preemptible-dp-1"))
    Drain.objects.filter(pk=drain.pk).update(due_at=now - timedelta(seconds=40), deadline=now - timedelta(seconds=1))
    found = read(client)
    assert found["halftide_clusters", ("ready",)] == 1
    assert found["halftide_clusters_unreachable", ()] == 1
    assert found["halftide_gpus", ("preemptible", "desired")] == 16
    assert found["halftide_gpus", ("preemptible", "allocated")] == 8
    assert 90 <= found["halftide_watch_lag_seconds", ()] < 150
    assert found["halftide_drains_open", ("terminating",)] == found["halftide_drains_overdue", ()] == 1
    assert found["halftide_work_due", ("drains",)] == 1
    assert 40 <= found["halftide_work_due_age_seconds", ("drains",)] < 100
    assert found["halftide_redis_up", ()] == found["halftide_automation_on", ()] == 1
    assert found["halftide_queue_length", ("urgent",)] >= 0


def test_requests_are_timed_by_route_and_no_label_names_what_was_asked(pool: Pool, vic: Client, client: Client) -> None:
    cluster = world.a_cluster(pool)
    vic.get(f"/clusters/{cluster.pk}?q=secret-word")
    vic.generic("BREW", "/nowhere/secret-word")
    text = client.get("/metrics").content.decode()
    assert 'halftide_http_request_duration_seconds_count{method="GET",route="clusters/<uuid:cluster_id>",status="2xx"}' in text
    assert 'method="other",route="none"' in text
    for word in ("secret-word", str(cluster.pk), "vic", "aurora"):
        assert word not in text


def test_it_asks_as_much_for_one_cluster_as_for_many(pool: Pool, client: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            read(client)
        return len(seen)

    world.a_busy_cluster(pool, "one", 1)
    few = asked()
    for number in range(5):
        world.a_busy_cluster(pool, f"more-{number}", 3)
    assert asked() == few


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.7", {}, 403),
        ("127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}, 403),
    ],
)
def test_without_a_token_it_is_for_this_machine(db: None, client: Client, address: str, headers: Any, status: int) -> None:
    assert client.get("/metrics", headers=headers, REMOTE_ADDR=address).status_code == status


def test_with_a_token_it_is_for_who_sends_it(db: None, client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "right"
    right, wrong = {"Authorization": "Bearer right"}, {"Authorization": "Bearer wrong é"}
    assert client.get("/metrics", headers=right, REMOTE_ADDR="10.0.0.7").status_code == 200
    assert client.get("/metrics", headers=wrong).status_code == 403
    assert client.get("/metrics").status_code == 403


def test_a_lost_redis_is_said_and_hides_nothing_else(pool: Pool, client: Client) -> None:
    with patch("console.pages.measures.redis.Redis.from_url", side_effect=redis.ConnectionError):
        found = read(client)
    assert found["halftide_redis_up", ()] == 0
    assert not [name for name, _ in found if name == "halftide_queue_length"]
    assert ("halftide_drains_overdue", ()) in found
