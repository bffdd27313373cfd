"""Reading webhooks for pages: those of a project, and a page of one's messages."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from console.accounts.models import Project
from console.clusters.models import Cluster
from console.webhooks.models import Delivery, Webhook

PAGE = 100  # messages on one page

Place = tuple[datetime, UUID]  # a message's place in the list: (made_at, id), which never moves


@dataclass(frozen=True)
class Page:
    deliveries: tuple[Delivery, ...]
    older: Place | None  # where the next page begins
    unfinished: bool  # something on it is still waiting or being sent


def of_project(project: Project) -> list[Webhook]:
    """By name; a project has at most `services.MOST`."""
    return list(project.webhooks.select_related("cluster").defer("address", "secret", "old_secret").order_by("name"))


def clusters_of(project: Project) -> list[Cluster]:
    return list(Cluster.objects.filter(project=project).only("pk", "name").order_by("name"))


def deliveries(webhook: Webhook, before: Place | None = None) -> Page:
    """The newest messages, or those before a place. Bodies stay in the database."""
    rows = webhook.deliveries.defer("body", "log")
    if before is not None:
        at, pk = before
        rows = rows.filter(made_at__lte=at).filter(Q(made_at__lt=at) | Q(pk__lt=pk))
    found = list(rows.order_by("-made_at", "-id")[: PAGE + 1])
    shown = found[:PAGE]
    older = (shown[-1].made_at, shown[-1].pk) if len(found) > PAGE else None
    return Page(tuple(shown), older, any(row.state in (Delivery.State.WAITING, Delivery.State.SENDING) for row in shown))
