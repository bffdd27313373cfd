"""What the editor's buttons do. To our script an answer is JSON; a plain form gets its page again, with its text in it."""

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.accounts.access import Actor, signed_in
from console.accounts.models import Role
from console.clusters.access import get_cluster
from console.clusters.models import Cluster
from console.http import BadInput, Conflict, DomainError, Unprocessable, envelope, wants_json
from console.pages.asking import actor_of
from console.pages.scripts import shown, views
from console.pages.scripts.asking import Edit, edit_of, number_of, typed_script
from console.scripts import queries, services, shellcheck
from console.scripts.checks import Finding, clean, remarks
from console.scripts.diff import difference
from console.scripts.kinds import Kind, kind_named
from console.scripts.services import Saved

MENDABLE = (BadInput, Unprocessable)


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def script(request: HttpRequest, cluster_id: UUID, kind: str) -> HttpResponseBase:
    """One address to look and to save, so that signing in again in the middle of a save leads back to the page."""
    if request.method != "POST":
        return views.show(request, cluster_id, kind)
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id, Role.OPERATOR)
    return _save(request, actor, cluster, kind_named(cluster, kind))


@signed_in
@require_POST
def restore(request: HttpRequest, cluster_id: UUID, kind: str) -> HttpResponseBase:
    actor = actor_of(request)
    cluster = get_cluster(actor, cluster_id, Role.OPERATOR)
    wanted = kind_named(cluster, kind)
    saved = services.restore(actor, cluster, wanted, number_of(request, "version"), number_of(request, "based_on"))
    return _back(cluster, wanted, saved)


@signed_in
@require_POST
def check(request: HttpRequest, cluster_id: UUID, kind: str) -> JsonResponse:
    """What there is to say about a text, without keeping it. Says too which version is the newest now, and how far from it."""
    cluster = get_cluster(actor_of(request), cluster_id)
    wanted = kind_named(cluster, kind)
    cleaned = clean(typed_script(request))
    checked = shellcheck.check(cleaned.text) if wanted.shell else shellcheck.Checked()
    found = sorted([*remarks(cleaned.text, wanted.shell), *checked.findings], key=_place)
    newest = queries.current(cluster, wanted)
    differs = difference(newest.text if newest is not None else "", cleaned.text)
    drawn = {"findings": found, "checked": checked, "kind": wanted, "text": cleaned.text}
    return JsonResponse(
        {
            "html": render_to_string("scripts/_findings.html", drawn),
            "findings": [{"line": one.line, "level": one.level, "text": f"{one.code}: {one.message}"} for one in found],
            "bytes": cleaned.size,
            "changed": differs.changed,
            "version": newest.number if newest is not None else 0,
            "saved_by": newest.saved_by if newest is not None else "",
        }
    )


def _save(request: HttpRequest, actor: Actor, cluster: Cluster, kind: Kind) -> HttpResponseBase:
    edit = edit_of(request)
    try:
        saved = services.save(actor, cluster, kind, edit.raw, edit.message, edit.based_on)
    except Conflict as error:
        return _clash(request, cluster, kind, edit, error)
    except MENDABLE as error:
        if wants_json(request):
            raise
        typed = {"text": edit.text, "number": edit.based_on, "typed_message": edit.message}
        return views.show(request, cluster.pk, kind.name, status=error.status, problem=error, **typed)
    if not wants_json(request):
        return _back(cluster, kind, saved)
    number = saved.version.number if saved.version is not None else 0
    return JsonResponse({"made": saved.made, "version": number, "message": _sentence(saved)})


def _clash(request: HttpRequest, cluster: Cluster, kind: Kind, edit: Edit, error: DomainError) -> HttpResponseBase:
    """Both texts, whoever was faster: nothing of either is lost, and the next save is based on theirs."""
    found = shown.clash(cluster, kind, clean(edit.raw).text, edit.based_on)
    if found is None:
        raise error
    if not wants_json(request):
        typed = {"text": found.mine, "number": found.theirs.number, "typed_message": edit.message}
        return views.show(request, cluster.pk, kind.name, status=error.status, clash=found, **typed)
    html = render_to_string("scripts/_clash.html", {"clash": found, "kind": kind, "cluster": cluster})
    texts = {"theirs": found.theirs.text, "merged": found.merged}
    return JsonResponse({**envelope(error), "html": html, "texts": texts}, status=error.status)


def _back(cluster: Cluster, kind: Kind, saved: Saved) -> HttpResponseBase:
    number = saved.version.number if saved.version is not None else 0
    here = reverse("script", kwargs={"cluster_id": cluster.pk, "kind": kind.name})
    return redirect(f"{here}?{'saved' if saved.made else 'same'}={number}")


def _sentence(saved: Saved) -> str:
    if saved.made and saved.version is not None:
        return f"Saved as v{saved.version.number}. {saved.said}".strip()
    since = f"since v{saved.version.number}" if saved.version is not None else "to keep"
    return f"Nothing changed {since}, so there is no new version. {saved.said}".strip()


def _place(finding: Finding) -> tuple[int, int]:
    return finding.line, finding.column
