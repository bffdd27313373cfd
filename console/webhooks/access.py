"""Fetch a webhook or refuse, as `clusters.access` does: what somebody may not see is not there."""

from uuid import UUID

from django.db.models import QuerySet

from console.accounts.access import Actor
from console.accounts.models import Project, Role
from console.http import NotFound
from console.webhooks.models import Delivery, Webhook


def projects(actor: Actor) -> QuerySet[Project]:
    """The projects in which the actor has a role, by name."""
    found = Project.objects.order_by("name", "pk")
    return found if actor.everywhere is not None else found.filter(pk__in=list(actor.roles))


def get_project(actor: Actor, project_id: UUID | None, role: Role = Role.VIEWER) -> Project:
    """A project the actor may see and holds `role` in."""
    project = projects(actor).filter(pk=project_id).first() if project_id is not None else None
    if project is None:
        raise NotFound("There is no project with this id, or you have no role in it.", param="project")
    actor.require(project.pk, role)
    return project


def get_webhook(actor: Actor, webhook_id: UUID, role: Role = Role.VIEWER) -> Webhook:
    """The webhook, if the actor may see its project and holds `role` in it."""
    seen = Webhook.objects.select_related("project", "cluster").filter(pk=webhook_id)
    webhook = seen.filter(project__in=projects(actor)).first()
    if webhook is None:
        raise NotFound("There is no webhook with this id, or it belongs to a project you have no role in.", param="webhook_id")
    actor.require(webhook.project_id, role)
    return webhook


def get_delivery(webhook: Webhook, delivery_id: UUID) -> Delivery:
    found = webhook.deliveries.filter(pk=delivery_id).first()
    if found is None:
        raise NotFound("There is no message with this id: messages are kept for 30 days.", param="delivery_id")
    return found
