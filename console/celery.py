"""The workers' wiring. Every task reads what is wanted now; the queue is only a hint (DESIGN 4). What is due when: `beat`."""

import gc
import os

from billiard.util import get_pdeathsig
from celery import Celery
from celery.signals import worker_before_create_process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
# Django's checks would load every page and route into processes that serve none: a second, and 20 MiB of each worker.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("halftide")
app.set_default()  # for every thread: "current" alone is the thread's that imported this
app.config_from_object("django.conf:settings", namespace="CELERY")
ROOMS = ("accounts", "timeline", "webhooks", "capacity", "workloads", "sync")
app.autodiscover_tasks([f"console.{room}" for room in ROOMS])


@worker_before_create_process.connect
def share_memory(**_: object) -> None:
    """Celery's one hook before it forks: what is loaded by then is never looked at by a collector again, so it stays shared.

    Else each child's first collection writes to every object there is, and so copies all of it. And what every child would load
    for itself is loaded here: where cffi is installed, to set its parent-death signal it reads C with a parser of its own.
    """
    get_pdeathsig()
    gc.collect()
    gc.freeze()
