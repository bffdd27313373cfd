"""What an orchestrator is told: alive as long as it answers, ready as long as the database does, and what ails the queue."""

from typing import Any
from unittest.mock import patch

import redis
from django.db import OperationalError
from django.test import Client


def test_a_process_is_alive_without_asking_anybody(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_it_is_ready_with_database_and_queue(db: None, client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "database": "ok", "queue": "ok"})


def test_without_its_database_it_gets_no_requests(client: Client) -> None:
    with patch("console.pages.probes.connection.cursor", side_effect=OperationalError("gone")):
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "does not answer"


def test_a_lost_queue_is_said_and_takes_nobody_out(db: None, client: Client, settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["queue"].startswith("does not answer")


def test_a_redis_that_evicts_is_named(db: None, client: Client) -> None:
    """Queued work and locks vanish without a word (oss-aspen/8Knot#361, getsentry/self-hosted#3888)."""
    with patch.object(redis.Redis, "info", return_value={"maxmemory_policy": "allkeys-lru"}):
        answer = client.get("/readyz")
    assert answer.json()["queue"].startswith("evicts (allkeys-lru)")
