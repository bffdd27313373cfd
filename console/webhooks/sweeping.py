"""What beat wakes each two seconds: read the ledger, fold what is over, and say whether anything is to be sent.

All of it works from rows, so two sweeps at once share the work, and one that is missed loses nothing. Nothing of it stands in a
transaction of the engine, and the engine never waits for it.
"""

from datetime import datetime
from uuid import uuid4

from django.utils import timezone

from console.clusters import leases
from console.timeline.models import INSTALLATION
from console.webhooks.folding import fold
from console.webhooks.models import Delivery
from console.webhooks.reading import read
from console.webhooks.sending import is_due, send_due

LEASE = "webhooks"


def sweep(now: datetime) -> bool:
    """Whether a worker should send."""
    read(now)
    fold(now)
    return Delivery.objects.filter(is_due(now)).exists()


def send() -> None:
    """One batch at a time in the whole installation: receivers that hang hold up one worker, not all of them."""
    held = leases.take(LEASE, INSTALLATION, f"webhooks:{uuid4().hex}")
    if held is None:
        return
    try:
        send_due(timezone.now())
    finally:
        leases.release(held)
