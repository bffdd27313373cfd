"""Webhooks of a project: who is told, what became of each message, and what administrators do about it.

Everybody in the project sees that a webhook exists and whether its messages arrive; whoever is woken at night needs to know. Only
administrators change anything, and nobody is ever shown an address or a secret again.
"""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.accounts.access import signed_in
from console.accounts.models import Project, Role
from console.accounts.sealing import opened, seal
from console.http import BadInput, Conflict, DomainError, Forbidden, Unprocessable
from console.pages import webhook_rows as rows
from console.pages.asking import actor_of, id_of
from console.pages.webhook_forms import KINDS, WebhookForm, cluster_options
from console.webhooks import queries, services
from console.webhooks.access import get_delivery, get_project, get_webhook, projects
from console.webhooks.models import Webhook

MENDABLE = (BadInput, Conflict, Unprocessable)
ONCE = "webhook_secret"  # in the session, encrypted, until the page after a change has shown it


@signed_in
@require_safe
def webhooks(request: HttpRequest) -> HttpResponse:
    """Of one project: the chosen one, or the first by name."""
    actor = actor_of(request)
    known = list(projects(actor))
    chosen = get_project(actor, id_of(request.GET["project"])) if request.GET.get("project") else (known[0] if known else None)
    found = [rows.row_of(webhook) for webhook in queries.of_project(chosen)] if chosen is not None else []
    context = {
        "project": chosen,
        "projects": [(str(project.pk), project.name) for project in known],
        "chosen": str(chosen.pk) if chosen is not None else "",
        "rows": found,
        "failing": sum(row.webhook.on and row.webhook.said_failing_at is not None for row in found),
        "may_manage": chosen is not None and actor.may(chosen.pk, Role.ADMIN),
    }
    return render(request, "pages/webhooks.html", context)


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def new_webhook(request: HttpRequest) -> HttpResponseBase:
    actor = actor_of(request)
    given = request.POST.get("project") or request.GET.get("project")
    mine = [project for project in projects(actor) if actor.may(project.pk, Role.ADMIN)]
    if not given and not mine:
        raise Forbidden("Webhooks are made by administrators of a project. One of them can make it, or make you one.")
    project = get_project(actor, id_of(given), Role.ADMIN) if given else mine[0]
    form = WebhookForm.posted(request.POST) if request.method == "POST" else WebhookForm()
    if request.method == "POST":
        try:
            made, secret = services.create(actor, project, form.kind, form.wish())
        except MENDABLE as error:
            form.refuse(error)
        else:
            return _with_secret(request, made, secret)
    return _form(request, form, project, None)


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def edit_webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponseBase:
    actor = actor_of(request)
    webhook = get_webhook(actor, webhook_id, Role.ADMIN)
    form = WebhookForm.posted(request.POST) if request.method == "POST" else WebhookForm.of(webhook)
    if request.method == "POST":
        try:
            services.edit(actor, webhook, form.wish())
        except MENDABLE as error:
            form.refuse(error)
        else:
            return redirect("webhook", webhook_id=webhook.pk)
    return _form(request, form, webhook.project, webhook)


def _form(request: HttpRequest, form: WebhookForm, project: Project, webhook: Webhook | None) -> HttpResponse:
    context = {
        "form": form,
        "project": project,
        "row": rows.row_of(webhook) if webhook is not None else None,
        "kinds": [(key, title, hint, key == form.kind) for key, title, hint in KINDS],
        "cluster_options": cluster_options(project),
    }
    return render(request, "pages/webhook_form.html", context, status=422 if form.errors else 200)


@signed_in
@require_safe
@never_cache
def webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    """One webhook with its newest messages; right after it was made or its secret renewed, with the secret."""
    return show_webhook(request, get_webhook(actor_of(request), webhook_id))


def show_webhook(request: HttpRequest, found: Webhook, problem: DomainError | None = None) -> HttpResponse:
    page = queries.deliveries(found, rows.place_of(request.GET.get("before", "")))
    context = {
        "row": rows.row_of(found),
        "webhook": found,
        "deliveries": [rows.message_row(delivery) for delivery in page.deliveries],
        "older": rows.place_text(page.older),
        "unfinished": page.unfinished,
        "first_page": not request.GET.get("before"),
        "may_manage": actor_of(request).may(found.project_id, Role.ADMIN),
        "secret": _secret_of(request, found),
        "problem": problem,
    }
    return render(request, "pages/webhook.html", context, status=problem.status if problem else 200)


@signed_in
@require_safe
def webhook_message(request: HttpRequest, webhook_id: UUID, delivery_id: UUID) -> HttpResponse:
    """One message: its body as it was sent, and its latest tries. What the receiver answered is for administrators."""
    actor = actor_of(request)
    found = get_webhook(actor, webhook_id)
    delivery = get_delivery(found, delivery_id)
    context = {
        "row": rows.row_of(found),
        "webhook": found,
        "delivery": delivery,
        "message": rows.message_row(delivery),
        "body": rows.body_of(delivery),
        "tries": rows.try_rows(delivery),
        "most_tries": rows.most_tries(delivery),
        "may_manage": actor.may(found.project_id, Role.ADMIN),
    }
    return render(request, "pages/webhook_message.html", context)


@signed_in
@require_POST
def switch_webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponseBase:
    found = get_webhook(actor_of(request), webhook_id, Role.ADMIN)
    services.switch(actor_of(request), found, on=request.POST.get("on") == "1")
    return redirect("webhook", webhook_id=found.pk)


@signed_in
@require_POST
def test_webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponseBase:
    """A message that says it is a test; the page shows what becomes of it."""
    found = get_webhook(actor_of(request), webhook_id, Role.ADMIN)
    try:
        services.send_test(actor_of(request), found)
    except Conflict as error:
        return show_webhook(request, found, error)
    return redirect("webhook", webhook_id=found.pk)


@signed_in
@require_POST
def renew_secret(request: HttpRequest, webhook_id: UUID) -> HttpResponseBase:
    found = get_webhook(actor_of(request), webhook_id, Role.ADMIN)
    return _with_secret(request, found, services.rotate(actor_of(request), found))


@signed_in
@require_POST
def delete_webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponseBase:
    found = get_webhook(actor_of(request), webhook_id, Role.ADMIN)
    services.delete(actor_of(request), found)
    return redirect(f"{reverse('webhooks')}?project={found.project_id}")


@signed_in
@require_POST
def resend_message(request: HttpRequest, webhook_id: UUID, delivery_id: UUID) -> HttpResponseBase:
    """The same message again, by hand."""
    found = get_webhook(actor_of(request), webhook_id, Role.ADMIN)
    delivery = get_delivery(found, delivery_id)
    try:
        services.resend(actor_of(request), found, delivery)
    except Conflict as error:
        return show_webhook(request, found, error)
    return redirect("webhook_message", webhook_id=found.pk, delivery_id=delivery.pk)


def _with_secret(request: HttpRequest, found: Webhook, secret: str) -> HttpResponseBase:
    """To the webhook's page, which shows the secret once. A reload of that page makes nothing again."""
    request.session[ONCE] = {"id": str(found.pk), "sealed": seal(secret)}
    return redirect("webhook", webhook_id=found.pk)


def _secret_of(request: HttpRequest, found: Webhook) -> str:
    kept: dict[str, Any] = request.session.get(ONCE) or {}
    if kept.get("id") != str(found.pk):
        return ""
    del request.session[ONCE]
    return opened(kept["sealed"])
