"""Celery's wiring: queues, the beat, nothing else. Every task reads what is wanted now; the queue is only a hint (DESIGN 4)."""

import gc
import os

from celery import Celery
from celery.signals import worker_before_create_process
from kombu.entity import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

app = Celery("halftide")
app.set_default()  # for every thread: "current" alone is the thread's that imported this
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue("drains"), Queue("urgent"), Queue("default"), Queue("bulk")]
app.conf.beat_schedule = {
    # What is due in any row; stale sweeps expire, so a night without workers does not wake to thousands of them.
    "sweep": {"task": "capacity.sweep", "schedule": 1.0, "options": {"queue": "urgent", "expires": 2}},
    "relist": {"task": "sync.relist_all", "schedule": 20.0, "options": {"queue": "bulk", "expires": 20}},
    "webhooks": {"task": "webhooks.sweep", "schedule": 2.0, "options": {"queue": "default", "expires": 4}},
    "webhooks-prune": {"task": "webhooks.prune", "schedule": 3600.0, "options": {"queue": "bulk", "expires": 600}},
    # Mostly finds nothing; after a setting was lowered, or under a flood, each run takes what eight seconds allow.
    "prune": {"task": "timeline.prune", "schedule": 60.0, "options": {"queue": "bulk", "expires": 60}},
    "workloads": {"task": "workloads.clear", "schedule": 600.0, "options": {"queue": "bulk", "expires": 600}},
    "revalidate": {"task": "accounts.revalidate_sessions", "schedule": 60.0, "options": {"queue": "default", "expires": 60}},
}
ROOMS = ("accounts", "timeline", "webhooks", "capacity", "workloads", "sync")
app.autodiscover_tasks([f"console.{room}" for room in ROOMS])


@worker_before_create_process.connect
def share_memory(**_: object) -> None:
    """Celery's one hook before it forks: what is loaded by then is never looked at by a collector again, so it stays shared.

    Else each child's first collection writes to every object there is, and so copies all of it.
    """
    gc.collect()
    gc.freeze()
