"""The only publisher to browsers: it says "look", nothing more.

A nudge may be lost or doubled without harm, because each hub (`feed`) also reads the heads of its streams every two
seconds (DESIGN 4). So publishing is one plain `PUBLISH` on a pooled connection with a 0.5 s limit, and never raises:
a dead Redis costs two seconds, not a request. (`async_to_sync(group_send)` opens a connection each time; banned by ruff.)
"""

import logging
from functools import cache
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "halftide:nudge"
ACCESS = "access"  # the one message that is no stream id: somebody's rights changed
LIMIT = 0.5  # seconds a publish may take

log = logging.getLogger(__name__)


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=LIMIT, socket_connect_timeout=LIMIT)


def _publish(message: str) -> None:
    try:
        _client().publish(CHANNEL, message)
    except (redis.RedisError, OSError) as error:
        log.warning("nudge_lost", extra={"nudge": message, "why": str(error)})


def nudge_on_commit(stream: UUID) -> None:
    """After this transaction commits, tell every hub that the stream has something new."""
    transaction.on_commit(lambda: _publish(str(stream)))


def access_changed_on_commit() -> None:
    """After this transaction commits, every hub re-checks the people on its sockets (one query a hub)."""
    transaction.on_commit(lambda: _publish(ACCESS))
