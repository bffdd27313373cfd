"""The addresses of startup scripts."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Body, Router

from console.accounts.models import Role
from console.api import scripts
from console.api.routes import READ, WRITE, Cursor, Limit, asker
from console.api.script_shapes import SavedScript, ScriptUpdate, ScriptVersions, ScriptVersionText, StartupScripts
from console.clusters.access import get_cluster
from console.scripts import queries
from console.scripts.kinds import kind_named

SCRIPTS = "/clusters/{cluster_id}/startup_scripts"
ETAG = {"headers": {"ETag": {"schema": {"type": "string"}, "description": "Names the version, for If-Match."}}}
NOTHING = ScriptUpdate()  # of an empty body

router = Router(tags=["Startup scripts"])


@router.get(SCRIPTS, response={200: StartupScripts, **READ}, summary="List startup scripts", operation_id="list_startup_scripts")
def list_scripts(request: HttpRequest, cluster_id: str) -> StartupScripts:
    """Every kind that the cluster can have, each with its newest version. Texts are left out."""
    return scripts.listed(get_cluster(asker(request), cluster_id))


@router.get(
    f"{SCRIPTS}/{{kind}}",
    response={200: ScriptVersionText, **READ},
    summary="Read a startup script",
    operation_id="get_startup_script",
    openapi_extra={"responses": {200: ETAG}},
)
def read_script(request: HttpRequest, response: HttpResponse, cluster_id: str, kind: str) -> ScriptVersionText:
    """Its newest version, with an ETag for `If-Match`."""
    cluster = get_cluster(asker(request), cluster_id)
    row = scripts.current(cluster, kind_named(cluster, kind))
    response["ETag"] = scripts.etag(row)
    return scripts.whole(row)


@router.put(
    f"{SCRIPTS}/{{kind}}",
    response={200: SavedScript, **WRITE},
    summary="Save a startup script",
    operation_id="put_startup_script",
    openapi_extra={
        "parameters": [{"in": "header", "name": "If-Match", "schema": {"type": "string"}, "required": False}],
        "responses": {200: ETAG},
    },
)
def put_script(
    request: HttpRequest, response: HttpResponse, cluster_id: str, kind: str, asked: Annotated[ScriptUpdate, Body()] = NOTHING
) -> SavedScript:
    """A new version, for operators of the project; the same text again is none. `If-Match: "0"` takes only the very first."""
    actor = asker(request)
    cluster = get_cluster(actor, cluster_id, Role.OPERATOR)
    wanted = kind_named(cluster, kind)
    found = scripts.put(actor, cluster, wanted, asked, request.headers.get("If-Match"))
    answer = scripts.saved(wanted, found)
    response["ETag"] = scripts.etag(found.version)
    return answer


@router.get(
    f"{SCRIPTS}/{{kind}}/versions",
    response={200: ScriptVersions, **READ},
    summary="Page through a script's versions",
    operation_id="list_startup_script_versions",
)
def list_versions(request: HttpRequest, cluster_id: str, kind: str, limit: Limit, after: Cursor) -> ScriptVersions:
    """Newest first, without texts; `after` takes the page before's `next_cursor`."""
    cluster = get_cluster(asker(request, "limit", "after"), cluster_id)
    return scripts.page(cluster, kind_named(cluster, kind), limit, after)


@router.get(
    f"{SCRIPTS}/{{kind}}/versions/{{int:version}}",
    response={200: ScriptVersionText, **READ},
    summary="Read one version of a startup script",
    operation_id="get_startup_script_version",
)
def read_version(request: HttpRequest, cluster_id: str, kind: str, version: int) -> ScriptVersionText:
    """Every version that ever was is kept. To restore one, PUT its text."""
    cluster = get_cluster(asker(request), cluster_id)
    return scripts.whole(queries.version(cluster, kind_named(cluster, kind), version))
