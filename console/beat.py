"""The beat's wiring: what is due, and how often.

An application of its own beside the workers' (`celery`), with the same settings. It only sends names, so it loads no task and no
model: with them it would hold three times the memory.
"""

import logging.config
import os

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

app = Celery("halftide", set_as_current=False, fixups=set())  # Celery's fixup for Django would load every model
app.config_from_object("django.conf:settings", namespace="CELERY")
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

logging.config.dictConfig(settings.LOGGING)  # as Django does for the others
