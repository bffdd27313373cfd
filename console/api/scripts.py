"""Versions of startup scripts as the API says them, and what `If-Match` holds."""

from typing import Any

from django.utils.http import parse_etags

from console.accounts.access import Actor
from console.api.script_shapes import (
    SavedScript,
    ScriptUpdate,
    ScriptVersion,
    ScriptVersions,
    ScriptVersionText,
    StartupScript,
    StartupScripts,
)
from console.clusters.models import Cluster
from console.http import BadInput, Conflict, NotFound, PreconditionFailed, Unprocessable
from console.scripts import queries, services
from console.scripts.kinds import Kind, kinds_of
from console.scripts.models import Version

ETAG_OF_NONE = '"0"'


def etag(version: Version | None) -> str:
    """By number and content; of a script that was never saved, 0."""
    return f'"{version.number}-{version.sha256[:16]}"' if version is not None else ETAG_OF_NONE


def listed(cluster: Cluster) -> StartupScripts:
    found = queries.currents(cluster)
    return StartupScripts(
        startup_scripts=[
            StartupScript(kind=kind.name, runs_on=kind.runs, current=_maybe(found.get(kind.name))) for kind in kinds_of(cluster)
        ]
    )


def current(cluster: Cluster, kind: Kind) -> Version:
    found = queries.current(cluster, kind)
    if found is None:
        raise NotFound(f"{cluster.name} has no {kind.name} yet. PUT one.", param="kind", code="no_script")
    return found


def put(actor: Actor, cluster: Cluster, kind: Kind, asked: ScriptUpdate, if_match: str | None) -> services.Saved:
    """Raises PreconditionFailed with the newer version and its text for an outdated `if_match`, and what the service raises."""
    if asked.script is None:
        raise Unprocessable("script is missing.", param="script", code="missing")
    message = (asked.message or "").strip()
    if any(not char.isprintable() for char in message):
        raise Unprocessable("message is one line of text that can be shown.", param="message", code="not_a_line")
    based_on = _based_on(cluster, kind, if_match) if if_match is not None else None
    try:
        return services.save(actor, cluster, kind, asked.script, message, based_on)
    except Conflict as error:
        if error.code != "changed":
            raise
        raise outdated(kind, queries.current(cluster, kind)) from None


def page(cluster: Cluster, kind: Kind, limit: int, after: str | None) -> ScriptVersions:
    if after is not None and not (after.isdigit() and 0 < int(after) < 2**31):
        raise BadInput("This cursor is none of ours: take next_cursor of the page before.", param="after", code="bad_cursor")
    found = queries.history(cluster, kind, limit + 1, int(after) if after is not None else None)
    more, found = len(found) > limit, found[:limit]
    return ScriptVersions(versions=[summary(row) for row in found], next_cursor=str(found[-1].number) if more else None)


def summary(row: Version) -> ScriptVersion:
    return ScriptVersion(**_fields(row))


def whole(row: Version) -> ScriptVersionText:
    return ScriptVersionText(**_fields(row), script=row.text)


def saved(kind: Kind, found: services.Saved) -> SavedScript:
    if found.version is None:
        raise Unprocessable(f"There is no {kind.name} yet, and an empty one is none either.", param="script", code="empty")
    return SavedScript(**_fields(found.version), script=found.version.text, changed=found.made, note=found.said or None)


def outdated(kind: Kind, newest: Version | None) -> PreconditionFailed:
    number = newest.number if newest is not None else 0
    who = f"{newest.saved_by} saved v{number}" if newest is not None else f"there is no {kind.name} any more"
    return PreconditionFailed(
        f"{kind.name} is another one than you read: {who}. Put both together and send them with its ETag.",
        param="If-Match",
        code="changed",
        version=number,
        script=newest.text if newest is not None else "",
        etag=etag(newest),
    )


def _based_on(cluster: Cluster, kind: Kind, if_match: str) -> int | None:
    """The number of the version that `If-Match` names; None for `*`, which takes any that is there."""
    newest, wanted = queries.current(cluster, kind), parse_etags(if_match)
    if wanted == ["*"]:
        if newest is None:
            raise outdated(kind, None)
        return None
    if etag(newest) not in wanted:
        raise outdated(kind, newest)
    return newest.number if newest is not None else 0


def _maybe(row: Version | None) -> ScriptVersion | None:
    return summary(row) if row is not None else None


def _fields(row: Version) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "version": row.number,
        "bytes": row.size,
        "sha256": row.sha256,
        "message": row.message,
        "saved_at": row.saved_at,
        "saved_by": row.saved_by,
        "restored_from": row.restored_from,
        "lines_added": row.added,
        "lines_removed": row.removed,
    }
