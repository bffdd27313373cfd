"""What beat wakes in this room."""

from celery import shared_task
from django.utils import timezone

from console.timeline.retention import prune


@shared_task(name="timeline.prune")
def prune_what_is_old() -> None:
    prune(timezone.now())
