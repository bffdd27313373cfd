"""What the fields of each kind are called, of which type they are and how their lists merge.

The facts are in `schemas.json`, as the real server publishes them and without its prose; `tests/contract` writes that file and
holds it to the real server. Server-side apply, field validation and `kubectl explain` all read it here.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, loads

FILE = Path(__file__).with_name("schemas.json")
KIND = "x-kubernetes-group-version-kind"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
ANYTHING: Json = {}


@cache
def every() -> dict[str, Json]:
    """All schemas by name."""
    return dict(loads(FILE.read_bytes()))


@cache
def name_of(resource: Resource) -> str:
    """The schema of a kind."""
    about = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return next(name for name, schema in every().items() if about in schema.get(KIND, ()))


def of(resource: Resource) -> Json:
    """A kind's own schema."""
    return every()[name_of(resource)]


def resolved(schema: Json) -> Json:
    """The schema itself, where only its name is given."""
    reference = schema.get("$ref")
    return every()[reference.rsplit("/", 1)[1]] if isinstance(reference, str) else schema


def child(schema: Json, key: str) -> Json | None:
    """The schema of one field; None where there is no such field."""
    fields = schema.get("properties")
    if fields is not None and key in fields:
        return resolved(fields[key])
    more = schema.get("additionalProperties")
    if more is not None:
        return resolved(more)
    # An object without declared fields is free: managed fields, raw extensions.
    return ANYTHING if fields is None else None


def item(schema: Json) -> Json:
    """The schema of a list's items."""
    return resolved(schema.get("items") or ANYTHING)


def keys(schema: Json) -> tuple[str, ...]:
    """What tells the items of a list of objects apart; nothing for a list that is replaced whole."""
    return tuple(schema.get("x-kubernetes-list-map-keys") or ()) if schema.get("x-kubernetes-list-type") == "map" else ()


def atomic(schema: Json) -> bool:
    """Whether an object is replaced whole."""
    return schema.get("x-kubernetes-map-type") == "atomic" or not (schema.get("properties") or schema.get("additionalProperties"))


def closure(names: Iterator[str]) -> dict[str, Json]:
    """These schemas and all that they stand on."""
    found: dict[str, Json] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = every()[name]
            waiting += _references(found[name])
    return found


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for part in schema for name in _references(part)]
    if not isinstance(schema, dict):
        return []
    here = [schema["$ref"].rsplit("/", 1)[1]] if isinstance(schema.get("$ref"), str) else []
    return here + [name for part in schema.values() for name in _references(part)]
