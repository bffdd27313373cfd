"""Is this object well formed: names, labels, the fields a kind cannot be without. Causes in the API's own words."""

import re
from typing import Any

from console.simulator.kubernetes import schemas
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json

Cause = tuple[str, str, str]
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")

BAD_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
BAD_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
BAD_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def name_causes(resource: Resource, name: str) -> list[Cause]:
    """What is wrong with a name."""
    if not name:
        return [("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")]
    if resource.plural == "namespaces":
        if len(name) > 63:
            return [("FieldValueInvalid", f'Invalid value: "{name}": must be no more than 63 characters', "metadata.name")]
        bad = BAD_LABEL if not _LABEL.fullmatch(name) else ""
    else:
        if len(name) > 253:
            return [("FieldValueInvalid", f'Invalid value: "{name}": must be no more than 253 characters', "metadata.name")]
        bad = BAD_NAME if not _SUBDOMAIN.fullmatch(name) else ""
    return [("FieldValueInvalid", f'Invalid value: "{name}": {bad}', "metadata.name")] if bad else []


def label_causes(labels: object) -> list[Cause]:
    """What is wrong with the labels."""
    if labels is None:
        return []
    if not isinstance(labels, dict):
        return [("FieldValueInvalid", "Invalid value: labels must be a map of strings", "metadata.labels")]
    causes = []
    for key, value in labels.items():
        if not _KEY.fullmatch(key) or len(key.rsplit("/", 1)[-1]) > 63:
            causes.append(("FieldValueInvalid", f'Invalid value: "{key}": {BAD_KEY}', "metadata.labels"))
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            causes.append(("FieldValueInvalid", f'Invalid value: "{value}": {BAD_VALUE}', "metadata.labels"))
        elif len(value) > 63:
            causes.append(
                ("FieldValueTooLong", f'Invalid value: "{value}": must be no more than 63 characters', "metadata.labels")
            )
    return causes


def object_causes(resource: Resource, body: Json) -> list[Cause]:
    """What is wrong with a whole object."""
    metadata = body["metadata"]
    causes = name_causes(resource, metadata.get("name", "")) + label_causes(metadata.get("labels"))
    spec = body.get("spec") or {}
    if resource.plural == "pods":
        if not isinstance(spec.get("containers") or [], list) or spec.get("containers") == {}:
            raise TypeError("spec.containers is no list")
        if not spec.get("containers"):
            causes.append(("FieldValueRequired", "Required value", "spec.containers"))
        for at, container in enumerate(spec.get("containers") or []):
            for needed in ("name", "image"):
                if not container.get(needed):
                    causes.append(("FieldValueRequired", "Required value", f"spec.containers[{at}].{needed}"))
    if resource.plural == "nodes":
        for at, taint in enumerate(spec.get("taints") or []):
            if taint.get("effect") not in EFFECTS:
                known = ", ".join(f'"{effect}"' for effect in EFFECTS)
                message = f'Unsupported value: "{taint.get("effect", "")}": supported values: {known}'
                causes.append(("FieldValueNotSupported", message, f"metadata.taints[{at}].effect"))
    if resource.plural in ("daemonsets", "deployments", "replicasets") and not spec.get("selector"):
        causes.append(("FieldValueRequired", "Required value", "spec.selector"))
    return causes


def unknown(value: Any, schema: Json, at: str = "") -> list[str]:
    """The fields that no such object has."""
    if isinstance(value, list):
        return [path for number, part in enumerate(value) for path in unknown(part, schemas.item(schema), f"{at}[{number}]")]
    found: list[str] = []
    if not isinstance(value, dict):
        return found
    for name, part in value.items():
        inner, path = schemas.child(schema, name), f"{at}.{name}" if at else name
        found += [path] if inner is None else unknown(part, inner, path)
    return found


def pruned(value: Any, schema: Json) -> Any:
    """Without them: the real server decodes into types, which have no room for more."""
    if isinstance(value, list):
        return [pruned(part, schemas.item(schema)) for part in value]
    if not isinstance(value, dict):
        return value
    inner = {name: schemas.child(schema, name) for name in value}
    return {name: pruned(part, inner[name] or {}) for name, part in value.items() if inner[name] is not None}
