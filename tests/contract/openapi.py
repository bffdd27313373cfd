"""The shapes of the kinds that the simulator serves, as the real server publishes them.

`python -m tests.contract.openapi` writes `console/simulator/kubernetes/schemas.json` anew, from a control plane it starts; a test
holds that file to the real server. Only structure is taken: what a field is called, of which type, how its lists merge.
"""

import tempfile
from pathlib import Path
from typing import Any

from console.runner.controlplane.build import programs
from console.simulator.kubernetes.resources import RESOURCES
from console.simulator.kubernetes.schemas import FILE
from console.simulator.values import dumps
from tests.controlplane.plane import Plane

Json = dict[str, Any]
PROSE = ("description", "default")


def published(plane: Plane) -> Json:
    """Every schema that a served kind needs, by name."""
    every: Json = {}
    wanted: list[str] = []
    for version in sorted({f"apis/{one.api_version}" if one.group else "api/v1" for one in RESOURCES}):
        every |= plane.ask("GET", f"/openapi/v3/{version}")["components"]["schemas"]
    kinds = {(one.group, one.version, one.kind) for one in RESOURCES}
    for name, schema in every.items():
        about = schema.get("x-kubernetes-group-version-kind") or []
        if len(about) == 1 and tuple(about[0][key] for key in ("group", "version", "kind")) in kinds:
            wanted.append(name)
    kept: Json = {}
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = _bare(every[name])
            wanted += _references(kept[name])
    return dict(sorted(kept.items()))


def _bare(schema: Any, *, named: bool = False) -> Any:
    """Without prose. `named`: the keys are fields of somebody's, one of which may well be called `description`."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if not named and len(schema.get("allOf", ())) == 1:
        schema = {**{key: value for key, value in schema.items() if key != "allOf"}, **schema["allOf"][0]}
    return {
        key: _bare(value, named=key == "properties" and not named) for key, value in schema.items() if named or key not in PROSE
    }


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in _references(item)]
    if not isinstance(schema, dict):
        return []
    here = [schema["$ref"].rsplit("/", 1)[1]] if isinstance(schema.get("$ref"), str) else []
    return here + [name for value in schema.values() for name in _references(value)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, Plane(Path(home), programs()) as running:
        FILE.write_bytes(dumps(published(running)))
