"""What an orchestrator asks: is this process alive, and may it get requests. No row is read, nothing is told of anybody."""

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from console.accounts.access import public

LIMIT = 2.0  # seconds for each thing that is asked
KEEPS = "noeviction"  # a Redis that evicts loses queued work and locks without a word (getsentry/self-hosted#3888)


@public
@require_safe
def alive(_request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; nothing else is asked, so that a lost database restarts nobody."""
    return JsonResponse({"status": "ok"})


@public
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """200 with what was asked, or 503 where the database is gone. Redis down or wrongly set is said, and costs seconds only."""
    found = {"database": _database(), "queue": _queue()}
    well = found["database"] == "ok"
    return JsonResponse({"status": "ok" if well else "unavailable", **found}, status=200 if well else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "does not answer"
    return "ok"


def _queue() -> str:
    limits = {"socket_timeout": LIMIT, "socket_connect_timeout": LIMIT}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            policy = str(client.info("memory").get("maxmemory_policy", KEEPS))
    except (redis.RedisError, OSError):
        return "does not answer: work is found in the database instead, within a second or two"
    return "ok" if policy == KEEPS else f"evicts ({policy}): set maxmemory-policy to {KEEPS}, or queued work is lost"
