"""Try to tell a worker, half a second at most, and never fail: the row is the wake-up, the queue only a hint (DESIGN 4).

A message lives a few seconds, so a night without workers leaves no pile of stale runs, and the sweep sends what was lost again.
"""

import logging
from functools import cache

from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

LIMIT = 0.5  # seconds that a request may spend on it
EXPIRES = 10  # seconds; the sweep comes each second
URGENT = "urgent"
# Drains have a queue of their own, which workers empty first: a pool that is far off its target has one long run after another.
QUEUES = {"capacity.drive_drains": "drains"}

log = logging.getLogger(__name__)


@cache
def _sender() -> Celery:
    """An app that only sends, for any process, with limits for whoever waits for an answer; workers may wait longer."""
    app = Celery("halftide-sender", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    limits = {"socket_timeout": LIMIT, "socket_connect_timeout": LIMIT, "max_retries": 0}
    app.conf.broker_transport_options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, **limits}
    return app


def enqueue(task: str, *arguments: str) -> bool:
    """Send a task by name to its queue, else the urgent one; False where that failed. Arguments are ids."""
    try:
        _sender().send_task(task, args=list(arguments), queue=QUEUES.get(task, URGENT), retry=False, expires=EXPIRES)
    except (OperationalError, OSError) as error:
        log.warning("hint_lost", extra={"task": task, "why": str(error)})
        return False
    return True


def enqueue_on_commit(task: str, *arguments: str) -> None:
    """After this transaction commits, and only then: a task must find the rows it is about."""
    transaction.on_commit(lambda: enqueue(task, *arguments))
