"""Saving a script: a version, its ledger row and its audit row in one transaction.

A save says which version it is based on. If another came since, it is refused with the newer text, so that the one who was slower
decides; nothing is ever written over. A text that is already the newest is no version, however often it is saved.
"""

import hashlib
from dataclasses import dataclass

from console.accounts.access import Actor
from console.accounts.models import Role
from console.accounts.services import audit
from console.clusters.models import Cluster
from console.http import Conflict
from console.scripts import queries
from console.scripts.checks import PARAM, Clean, clean
from console.scripts.diff import difference
from console.scripts.kinds import Kind
from console.scripts.models import Version
from console.timeline.changes import Change, change
from console.timeline.who import doer


@dataclass(frozen=True)
class Saved:
    """`version` is None where there was no script and an empty one was saved."""

    version: Version | None
    made: bool
    said: str  # what was changed in the text on its way in


def save(
    actor: Actor,
    cluster: Cluster,
    kind: Kind,
    raw: bytes | str,
    message: str = "",
    based_on: int | None = None,
    restored_from: int | None = None,
) -> Saved:
    """`based_on` is the number of the version that was edited (0: there was none); None saves whatever is there.

    Raises Conflict with the newer version in `theirs` (not part of an answer's `state`, which has its number and author), and
    what `checks.clean` raises for a text that is none.
    """
    actor.require(cluster.project_id, Role.OPERATOR)
    cleaned = clean(raw)
    with change() as made:
        _hold(made, cluster)
        newest = queries.current(cluster, kind)
        number, text = (newest.number, newest.text) if newest is not None else (0, "")
        if text == cleaned.text:
            return Saved(newest, False, cleaned.said)
        if based_on is not None and based_on != number:
            raise overtaken(kind, newest)
        row = _version(actor, cluster, kind, newest, cleaned, made)
        row.message, row.restored_from = message or _default(cleaned, restored_from), restored_from
        row.save(force_insert=True)
        _say(made, actor, cluster, row, newest)
    return Saved(row, True, cleaned.said)


def restore(actor: Actor, cluster: Cluster, kind: Kind, number: int, based_on: int | None) -> Saved:
    """An old version's text as a new version. Raises NotFound, Conflict."""
    actor.require(cluster.project_id, Role.OPERATOR)
    old = queries.version(cluster, kind, number)
    return save(actor, cluster, kind, old.text, based_on=based_on, restored_from=number)


def _hold(made: Change, cluster: Cluster) -> None:
    """Two saves in one cluster at a time would take the same number."""
    found = made.lock(Cluster.objects.filter(pk=cluster.pk))
    if not found or found[0].status == Cluster.Status.DELETING:
        raise Conflict(f"{cluster.name} is being deleted.", code="deleting")


def _version(actor: Actor, cluster: Cluster, kind: Kind, before: Version | None, cleaned: Clean, made: Change) -> Version:
    differs = difference(before.text if before is not None else "", cleaned.text)
    return Version(
        cluster=cluster,
        kind=kind.name,
        number=before.number + 1 if before is not None else 1,
        text=cleaned.text,
        size=cleaned.size,
        sha256=hashlib.sha256(cleaned.text.encode()).hexdigest(),
        saved_at=made.now,
        saved_by=actor.name,
        user=actor.user,
        added=differs.added,
        removed=differs.removed,
    )


def _default(cleaned: Clean, restored_from: int | None) -> str:
    if restored_from is not None:
        return f"Restored from v{restored_from}"
    return "" if cleaned.text else "Emptied: nothing runs"


def _say(made: Change, actor: Actor, cluster: Cluster, row: Version, before: Version | None) -> None:
    reason = "ScriptRestored" if row.restored_from is not None else "ScriptSaved"
    told = f"{row.kind} v{row.number} saved" + (f": {row.message}" if row.message else "")
    now = {"kind": row.kind, "version": row.number, "sha256": row.sha256, "bytes": row.size}
    made.entry(
        cluster.stream,
        reason,
        told,
        actor=doer(actor),
        subject=("Script", row.kind, str(row.pk)),
        data={**now, "added": row.added, "removed": row.removed},
    )
    was = {"version": before.number, "sha256": before.sha256} if before is not None else {}
    audit(actor, "script.save", f"{cluster.name} {row.kind}", cluster.project, was, {**now, "message": row.message})


def overtaken(kind: Kind, newest: Version | None) -> Conflict:
    """Somebody saved since; `state` names the newer version, whose text the caller shows beside the other."""
    if newest is None:
        return Conflict(f"There is no {kind.name} yet, so nothing to base this on.", param=PARAM, code="changed", version=0)
    return Conflict(
        f"{newest.saved_by} saved v{newest.number} of {kind.name} while you wrote. Your text is still here.",
        param=PARAM,
        code="changed",
        version=newest.number,
        saved_by=newest.saved_by,
    )
