"""Who owns which field: `metadata.managedFields`, and server-side apply, which stands on it. Pure.

An apply says "these fields are mine, so". It takes away what its manager owned and no longer names, leaves alone what it never
named, and is a conflict where it names what another manager set to another value, unless forced. Any other write makes its writer
the owner of what it changed.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.simulator.kubernetes import fields, schemas
from console.simulator.kubernetes.errors import ApiError
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, copy, stamp

APPLY, UPDATE = "Apply", "Update"

# The server's own, or what tells which object it is: nobody's to manage.
NOBODYS = frozenset(
    (("f:metadata", f"f:{name}"))
    for name in (
        "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink",
        "deletionTimestamp", "deletionGracePeriodSeconds",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Writer:
    """Who writes, and when."""

    manager: str
    now: datetime
    subresource: str = ""

    def entry(self, resource: Resource, operation: str, paths: set[fields.Path]) -> Json:
        """Its part of `managedFields`."""
        entry: Json = {
            "manager": self.manager, "operation": operation, "apiVersion": resource.api_version, "time": stamp(self.now),
            "fieldsType": "FieldsV1", "fieldsV1": fields.nested(paths),
        }  # fmt: skip
        return entry | ({"subresource": self.subresource} if self.subresource else {})

    def wrote(self, entry: Json, operation: str) -> bool:
        """Whether an entry is this writer's."""
        mine = (self.manager, operation, self.subresource)
        return (entry["manager"], entry["operation"], entry.get("subresource", "")) == mine


def _leaves(resource: Resource, body: Json) -> dict[fields.Path, Any]:
    found = fields.leaves({key: value for key, value in body.items() if key not in ("kind", "apiVersion")}, schemas.of(resource))
    return {path: value for path, value in found.items() if path[:2] not in NOBODYS and path}


def _entries(body: Json) -> list[tuple[Json, set[fields.Path]]]:
    return [(entry, fields.flat(entry["fieldsV1"])) for entry in body["metadata"].get("managedFields") or []]


def _kept(entries: list[tuple[Json, set[fields.Path]]]) -> list[Json]:
    return [entry | {"fieldsV1": fields.nested(paths)} for entry, paths in entries if paths]


def updated(resource: Resource, old: Json | None, new: Json, writer: Writer) -> Json:
    """`new`, with what it changes of `old` (None: all of it is new) owned by its writer."""
    before, after = _leaves(resource, old) if old else {}, _leaves(resource, new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    touched = changed | (before.keys() - after.keys())
    if not touched:
        return new
    mine: set[fields.Path] = set(changed)
    others = []
    for entry, paths in _entries(old) if old else []:
        if writer.wrote(entry, UPDATE):
            mine |= paths & after.keys()
        else:
            others.append((entry, paths - touched))
    result = {**new, "metadata": {**new["metadata"]}}
    own = [writer.entry(resource, UPDATE, mine)] if mine else []
    result["metadata"]["managedFields"] = [*_kept(others), *own]
    return result


def applied(resource: Resource, live: Json | None, config: Json, writer: Writer, *, force: bool) -> Json:
    """The object after an apply; `live` is None where there is none yet. Raises the conflict."""
    wanted = _leaves(resource, config)
    if live is None:
        fresh: Json = copy({key: value for key, value in config.items() if key not in ("kind", "apiVersion")})
        fresh["metadata"]["managedFields"] = [writer.entry(resource, APPLY, set(wanted))]
        return fresh
    have, entries = _leaves(resource, live), _entries(live)
    others = [(entry, paths) for entry, paths in entries if not writer.wrote(entry, APPLY)]
    lost = {path for path, value in wanted.items() if path in have and have[path] != value}
    if not force:
        _refuse_conflicts([(entry, sorted(paths & lost)) for entry, paths in others if paths & lost])
    others = [(entry, paths - lost) for entry, paths in others]
    owned: set[fields.Path] = set().union(*(paths for _, paths in others))
    mine: set[fields.Path] = set().union(*(paths for entry, paths in entries if writer.wrote(entry, APPLY)))
    schema = schemas.of(resource)
    told = {key: value for key, value in config.items() if key not in ("kind", "apiVersion")}
    result = fields.merged(fields.without(live, schema, mine - wanted.keys() - owned), told, schema)
    own = writer.entry(resource, APPLY, set(wanted))
    known = next((entry for entry, _ in entries if writer.wrote(entry, APPLY)), None)
    if known is not None and known["fieldsV1"] == own["fieldsV1"] and not lost:
        own = known  # an apply that changes nothing writes nothing, not even a time
    result["metadata"] = {**result["metadata"], "managedFields": [own, *_kept(others)]}
    return dict(result)


def _refuse_conflicts(conflicts: list[tuple[Json, list[fields.Path]]]) -> None:
    if not conflicts:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_who(entry)}", "field": fields.shown(path)}
        for entry, paths in conflicts
        for path in paths
    ]
    parts = []
    for entry, paths in conflicts:
        if len(paths) == 1:
            parts.append(f"conflict with {_who(entry)}: {fields.shown(paths[0])}")
        else:
            parts.append("\n- ".join([f"conflicts with {_who(entry)}:", *map(fields.shown, paths)]))
    count = f"{len(causes)} conflict" + ("s" if len(causes) > 1 else "")
    raise ApiError(409, "Conflict", f"Apply failed with {count}: " + "\n".join(parts), {"causes": causes})


def _who(entry: Json) -> str:
    name = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        name += f' with subresource "{entry["subresource"]}"'
    return f"{name} using {entry['apiVersion']}" if entry["operation"] == UPDATE else name
