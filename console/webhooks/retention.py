"""Messages older than 30 days go, in small steps, so that no run is long and no lock is wide."""

from datetime import datetime, timedelta

from console.webhooks.models import Delivery, Told
from console.webhooks.reading import NEWS

KEPT = timedelta(days=30)
STEP = 2000  # rows in one statement
MOST_STEPS = 20  # in one run; the rest goes with the next

assert KEPT > NEWS  # what `Told` has forgotten must be too old to be told


def prune(now: datetime) -> int:
    """Delete what is too old: first which entry went where, then the messages that have ended. The number of rows."""
    gone, before = 0, now - KEPT
    for _ in range(MOST_STEPS):
        told = Told.objects.filter(at__lt=before).order_by("at").values("pk")[:STEP]
        old = Delivery.objects.filter(made_at__lt=before, due_at=None, told=None).order_by("made_at").values("pk")[:STEP]
        removed = Told.objects.filter(pk__in=told).delete()[0] or Delivery.objects.filter(pk__in=old).delete()[0]
        gone += removed
        if not removed:
            break
    return gone
