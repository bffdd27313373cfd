"""How well a webhook does, and the line in the timeline when that changes: once when it begins to fail, once when it works again.

It fails when a message was given up after all its tries. It is never switched off for that: whoever is on call would learn of it
too late, and five tries a message cost nothing. A test says something of the receiver only where it arrives.
"""

from dataclasses import dataclass
from datetime import datetime

from console.clusters.models import Cluster
from console.timeline.changes import Change
from console.timeline.models import Entry
from console.webhooks.groups import FAILING, WORKS
from console.webhooks.models import Webhook
from console.webhooks.reading import scope


@dataclass(frozen=True)
class Health:
    """As of one instant: the first try that failed since one arrived, and since when the timeline says so."""

    failing_since: datetime | None = None
    said_at: datetime | None = None


def after(health: Health, now: datetime, *, delivered: bool, given_up: bool, test: bool) -> tuple[Health, str | None]:
    """What it is after a try, and the reason of the entry that says so, or None where there is no news. Pure."""
    if delivered:
        return Health(), WORKS if health.said_at else None
    if test:
        return health, None
    news = given_up and health.said_at is None
    return Health(health.failing_since or now, now if news else health.said_at), FAILING if news else None


def note(made: Change, webhook: Webhook, *, problem: str, given_up: bool, test: bool) -> None:
    """Write what a try says of the webhook, whose row is locked, into it and into the timelines of its clusters."""
    before = Health(webhook.failing_since, webhook.said_failing_at)
    health, news = after(before, made.now, delivered=not problem, given_up=given_up, test=test)
    webhook.failing_since, webhook.said_failing_at = health.failing_since, health.said_at
    if not problem:
        webhook.delivered_at, webhook.problem = made.now, ""
    elif not test:
        webhook.problem = problem[:300]
    webhook.save(update_fields=["failing_since", "said_failing_at", "problem", "delivered_at", "waits_until"])
    if news is not None:
        _say(made, webhook, news, before.failing_since)


def _say(made: Change, webhook: Webhook, reason: str, since: datetime | None) -> None:
    if reason == FAILING:
        why = f"fails, a message was given up: {webhook.problem} New ones are tried all the same."
        text = f"Webhook {webhook.name} ({webhook.host}) {why}"
        severity = Entry.Severity.WARNING
    else:
        began = f" It failed since {since:%Y-%m-%d %H:%M:%S} UTC." if since else ""
        text = f"Webhook {webhook.name} ({webhook.host}) works again.{began} What was given up can be sent again by hand."
        severity = Entry.Severity.INFO
    for cluster in Cluster.objects.filter(scope(webhook)).order_by("pk").values_list("pk", flat=True):
        made.entry(cluster, reason, text, severity=severity, subject=("Webhook", webhook.name, str(webhook.pk)))
