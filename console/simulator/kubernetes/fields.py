"""Sets of fields, in the form of `fieldsV1`: `{"f:spec": {"f:replicas": {}}}`. Pure.

A path is a tuple of its steps: `f:name` for a field, `k:{"name":"x"}` for the item of a list of objects, `v:"x"` for a member of
a set, and `.` for such an item itself.
"""

from collections.abc import Iterable
from typing import Any

from console.simulator.kubernetes import schemas
from console.simulator.values import Json, dumps, loads

Path = tuple[str, ...]
SELF = "."


def _key(entry: Json, names: tuple[str, ...]) -> str:
    return "k:" + dumps({name: entry.get(name) for name in sorted(names)}).decode()


def leaves(value: Any, schema: Json, at: Path = ()) -> dict[Path, Any]:
    """Every field that is set, with its value; what is replaced whole is one field."""
    if isinstance(value, dict) and value and not schemas.atomic(schema):
        found: dict[Path, Any] = {}
        for name, part in value.items():
            found |= leaves(part, schemas.child(schema, name) or schemas.ANYTHING, (*at, f"f:{name}"))
        return found
    if isinstance(value, list) and value:
        names, inner = schemas.keys(schema), schemas.item(schema)
        if names and all(isinstance(entry, dict) for entry in value):
            found = {}
            for entry in value:
                step = (*at, _key(entry, names))
                found[(*step, SELF)] = None
                found |= leaves(entry, inner, step)
            return found
        if schema.get("x-kubernetes-list-type") == "set":
            return {(*at, "v:" + dumps(entry).decode()): entry for entry in value}
    return {at: value}


def nested(paths: Iterable[Path]) -> Json:
    """As it is written in `fieldsV1`."""
    whole: Json = {}
    for path in sorted(paths):
        part = whole
        for step in path:
            part = part.setdefault(step, {})
    return whole


def flat(fields: Json, at: Path = ()) -> set[Path]:
    """The paths of a `fieldsV1`."""
    if not fields:
        return {at} if at else set()
    return {path for step, part in fields.items() for path in flat(part, (*at, step))}


def shown(path: Path) -> str:
    """As people read it: `.spec.containers[name="main"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            text += "[" + ",".join(f"{name}={dumps(value).decode()}" for name, value in loads(rest).items()) + "]"
        elif kind == "v":
            text += f"[={rest}]"
    return text


def merged(live: Any, config: Any, schema: Json) -> Any:
    """`live` with everything that `config` says."""
    if isinstance(config, dict) and isinstance(live, dict) and not schemas.atomic(schema):
        result = dict(live)
        for name, value in config.items():
            inner = schemas.child(schema, name) or schemas.ANYTHING
            result[name] = merged(result.get(name), value, inner)
        return result
    if isinstance(config, list) and isinstance(live, list):
        names, inner = schemas.keys(schema), schemas.item(schema)
        if names:
            known = {_key(entry, names): entry for entry in live}
            for entry in config:
                key = _key(entry, names)
                known[key] = merged(known.get(key), entry, inner)
            return list(known.values())
        if schema.get("x-kubernetes-list-type") == "set":
            return [*live, *(entry for entry in config if entry not in live)]
    return config


def without(value: Any, schema: Json, gone: set[Path], at: Path = ()) -> Any:
    """`value` less the fields in `gone`, and less what holds nothing any more."""
    if isinstance(value, dict) and not schemas.atomic(schema):
        result = {}
        for name, part in value.items():
            path = (*at, f"f:{name}")
            kept = None if path in gone else without(part, schemas.child(schema, name) or schemas.ANYTHING, gone, path)
            if kept is not None and (kept or not isinstance(kept, dict | list) or kept == part):
                result[name] = kept
        return result
    if isinstance(value, list):
        names, inner = schemas.keys(schema), schemas.item(schema)
        if names:
            steps = [(entry, (*at, _key(entry, names))) for entry in value]
            return [without(entry, inner, gone, step) for entry, step in steps if (*step, SELF) not in gone]
        if schema.get("x-kubernetes-list-type") == "set":
            return [entry for entry in value if (*at, "v:" + dumps(entry).decode()) not in gone]
    return value
