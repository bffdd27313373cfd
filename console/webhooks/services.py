"""What administrators of a project do with its webhooks. Each change with its audit row, which never holds address or secret."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from console.accounts.access import Actor
from console.accounts.models import Project, Role
from console.accounts.sealing import seal
from console.accounts.services import audit
from console.clusters.models import Cluster
from console.http import BadInput, Conflict, NotFound, Unprocessable
from console.webhooks import bodies, reading
from console.webhooks.addresses import check, shown
from console.webhooks.groups import BY_KEY, GROUPS
from console.webhooks.models import Cursor, Delivery, Webhook
from console.webhooks.signing import new_secret

MOST = 20  # webhooks of one project: a page shows them all, and a burst is a message to each
LONGEST_NAME = 80
OVERLAP = timedelta(hours=24)  # for which an old secret signs beside the new one

State, Kind = Delivery.State, Webhook.Kind


@dataclass(frozen=True)
class Wish:
    """What a webhook shall be. An empty address leaves the one that is there; no cluster means all of the project."""

    name: str
    address: str
    groups: Collection[str]
    cluster: UUID | None = None


def create(actor: Actor, project: Project, kind: str, wish: Wish) -> tuple[Webhook, str]:
    """A webhook that tells what happens from now on, and its secret, which is shown this once.

    Raises BadInput, Unprocessable or Conflict with the field (`param`) that cannot be so.
    """
    actor.require(project.pk, Role.ADMIN)
    if kind not in Kind.values:
        raise BadInput("Choose what the receiver understands.", param="kind")
    name, groups, cluster = _name(wish), _groups(wish), _cluster(project, wish)
    url = check(wish.address, settings.WEBHOOK_ALLOW)
    host, tail = shown(url)
    secret, now = new_secret(), timezone.now()
    with transaction.atomic():
        # Two of one name, or one too many, would meet here.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        _free(project, name)
        if project.webhooks.count() >= MOST:
            raise Unprocessable(f"{project.name} has {MOST} webhooks, which is the most. Delete one that nobody needs.")
        webhook = Webhook(project=project, cluster=cluster, kind=kind, name=name, groups=groups, host=host, tail=tail)
        webhook.address, webhook.secret = seal(str(url)), seal(secret)
        webhook.created_at, webhook.created_by, webhook.begins_at = now, actor.name, now
        webhook.save(force_insert=True)
        reading.begin(webhook, now)
        audit(actor, "webhook.create", name, project, after=_said(webhook))
    return webhook, secret


def edit(actor: Actor, webhook: Webhook, wish: Wish) -> Webhook:
    """Other name, address, groups or cluster. The kind stays: a message that waits is written for it. Raises as `create`."""
    actor.require(webhook.project_id, Role.ADMIN)
    name, groups, cluster = _name(wish), _groups(wish), _cluster(webhook.project, wish)
    url = check(wish.address, settings.WEBHOOK_ALLOW) if wish.address.strip() else None
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=webhook.project_id)
        mine = _lock(webhook)
        before = _said(mine)
        _free(mine.project, name, but=mine)
        mine.name, mine.groups, mine.cluster = name, groups, cluster
        if url is not None:
            mine.address, mine.waits_until = seal(str(url)), None
            mine.host, mine.tail = shown(url)
        Cursor.objects.filter(webhook=mine).exclude(stream__in=Cluster.objects.filter(reading.scope(mine)).values("pk")).delete()
        reading.keep_up(mine)
        mine.save()
        if url is not None or before != _said(mine):
            audit(actor, "webhook.edit", name, mine.project, before, {**_said(mine), "new_address": url is not None})
    return mine


def switch(actor: Actor, webhook: Webhook, on: bool) -> Webhook:
    """Off ends what waits to be sent; on begins with what happens from now on."""
    actor.require(webhook.project_id, Role.ADMIN)
    with transaction.atomic():
        mine = _lock(webhook)
        if mine.on == on:
            return mine
        mine.on, now = on, timezone.now()
        reading.begin(mine, now)
        mine.save()
        if not on:
            ended = {"state": State.FAILED, "due_at": None, "ended_at": now, "fence": F("fence") + 1}
            unsent = mine.deliveries.filter(due_at__isnull=False)
            unsent.update(**ended, problem="The webhook was switched off before this was sent.")
        audit(actor, "webhook.switch", mine.name, mine.project, {"on": not on}, {"on": on})
    return mine


def rotate(actor: Actor, webhook: Webhook) -> str:
    """A new secret, shown this once. For a day both sign, so that the receiver can change over in between."""
    actor.require(webhook.project_id, Role.ADMIN)
    secret = new_secret()
    with transaction.atomic():
        mine = _lock(webhook)
        mine.old_secret, mine.old_until, mine.secret = mine.secret, timezone.now() + OVERLAP, seal(secret)
        mine.save(update_fields=["secret", "old_secret", "old_until"])
        audit(actor, "webhook.rotate", mine.name, mine.project)
    return secret


def delete(actor: Actor, webhook: Webhook) -> None:
    """With its messages; what waits is not sent any more."""
    actor.require(webhook.project_id, Role.ADMIN)
    with transaction.atomic():
        mine = _lock(webhook)
        audit(actor, "webhook.delete", mine.name, mine.project, before=_said(mine))
        mine.delete()


def send_test(actor: Actor, webhook: Webhook) -> Delivery:
    """A message that says it is a test, tried once. While one is on its way there is no second."""
    actor.require(webhook.project_id, Role.ADMIN)
    with transaction.atomic():
        mine = _sendable(webhook)
        waiting = mine.deliveries.filter(group="", due_at__isnull=False).first()
        if waiting is not None:
            return waiting
        now = timezone.now()
        made = Delivery(webhook=mine, made_at=now, due_at=now, summary=bodies.TEST.format(name=mine.name)[:300])
        me, project = (mine.pk, mine.name), (mine.project.pk, mine.project.name)
        slack = mine.kind == Kind.SLACK
        made.body = bodies.test_slack(mine.name, mine.project.name) if slack else bodies.test_json(made.pk, now, me, project)
        made.save(force_insert=True)
        audit(actor, "webhook.test", mine.name, mine.project)
    return made


def resend(actor: Actor, webhook: Webhook, delivery: Delivery) -> Delivery:
    """The same message with the same id, due now, with all its tries again. One that is on its way stays on it."""
    actor.require(webhook.project_id, Role.ADMIN)
    with transaction.atomic():
        mine = _sendable(webhook)
        row = Delivery.objects.select_for_update().filter(pk=delivery.pk, webhook=mine).first()
        if row is None:
            raise NotFound("This message is not kept any more.", param="delivery_id")
        if row.due_at is not None and row.state == State.SENDING:
            return row
        row.state, row.due_at, row.tries, row.ended_at = State.WAITING, timezone.now(), 0, None
        row.resent_by = actor.name
        row.save(update_fields=["state", "due_at", "tries", "ended_at", "resent_by"])
        Webhook.objects.filter(pk=mine.pk).update(waits_until=None)
        audit(actor, "webhook.resend", mine.name, mine.project, after={"delivery": str(row.pk)})
    return row


def _lock(webhook: Webhook) -> Webhook:
    found = Webhook.objects.select_for_update(of=("self",)).select_related("project", "cluster").filter(pk=webhook.pk).first()
    if found is None:
        raise NotFound("This webhook was deleted meanwhile.", param="webhook_id")
    return found


def _sendable(webhook: Webhook) -> Webhook:
    mine = _lock(webhook)
    if not mine.on:
        raise Conflict(f"{mine.name} is switched off. Switch it on first.", code="off")
    return mine


def _name(wish: Wish) -> str:
    name = wish.name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise BadInput(f"A webhook needs a name of one line, at most {LONGEST_NAME} characters.", param="name")
    return name


def _groups(wish: Wish) -> list[str]:
    chosen = [group.key for group in GROUPS if group.key in wish.groups]
    if not chosen or set(wish.groups) - set(BY_KEY):
        raise BadInput("Choose at least one kind of news.", param="groups")
    return chosen


def _cluster(project: Project, wish: Wish) -> Cluster | None:
    if wish.cluster is None:
        return None
    cluster = Cluster.objects.filter(pk=wish.cluster, project=project).first()
    if cluster is None:
        raise BadInput(f"{project.name} has no such cluster.", param="cluster")
    return cluster


def _free(project: Project, name: str, but: Webhook | None = None) -> None:
    same = Webhook.objects.filter(project=project, name=name)
    if (same.exclude(pk=but.pk) if but is not None else same).exists():
        raise Conflict(f"{project.name} has a webhook named {name} already.", param="name", code="name_taken")


def _said(webhook: Webhook) -> dict[str, Any]:
    """A webhook as the trail may keep it."""
    return {
        "name": webhook.name,
        "kind": webhook.kind,
        "host": webhook.host,
        "cluster": webhook.cluster.name if webhook.cluster is not None else None,
        "groups": webhook.groups,
    }
