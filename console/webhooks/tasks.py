"""What crosses the queue: nothing but the hint that something may be due."""

from celery import shared_task
from django.utils import timezone

from console.webhooks import retention, sweeping

EXPIRES = 5  # seconds; the next sweep sends the same hint


@shared_task(name="webhooks.sweep")
def sweep() -> None:
    if sweeping.sweep(timezone.now()):
        send.apply_async(queue="default", expires=EXPIRES)


@shared_task(name="webhooks.send")
def send() -> None:
    sweeping.send()


@shared_task(name="webhooks.prune")
def prune() -> None:
    retention.prune(timezone.now())
