"""Try to tell a worker, half a second at most, and never fail: the row is the wake-up, the queue only a hint (DESIGN 4).

A message lives a few seconds, so a night without workers leaves no pile of stale runs, and the sweep sends what was lost again.
The connection is one of its own, because the limit here is for whoever waits for an answer; workers may wait longer.
"""

import logging
from functools import cache
from typing import Any

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from kombu.pools import producers

LIMIT = 0.5  # seconds that a request may spend on it
EXPIRES = 10  # seconds; the sweep comes each second

log = logging.getLogger(__name__)


@cache
def _connection() -> Any:
    limits = {"socket_timeout": LIMIT, "socket_connect_timeout": LIMIT, "max_retries": 0}
    return current_app.connection_for_write(transport_options={**current_app.conf.broker_transport_options, **limits})


def enqueue(task: str, *arguments: str, queue: str = "urgent") -> bool:
    """Send a task by name; False where that failed. Arguments are ids."""
    try:
        with producers[_connection()].acquire(block=True, timeout=LIMIT) as producer:
            current_app.send_task(task, args=list(arguments), queue=queue, producer=producer, retry=False, expires=EXPIRES)
    except (OperationalError, OSError) as error:
        log.warning("hint_lost", extra={"task": task, "why": str(error)})
        return False
    return True


def enqueue_on_commit(task: str, *arguments: str) -> None:
    """After this transaction commits, and only then: a task must find the rows it is about."""
    transaction.on_commit(lambda: enqueue(task, *arguments))
