"""Label and field selectors: parsed once, then asked of each object."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.simulator.kubernetes.errors import bad_request
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json

NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
KEY = rf"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{NAME}"
VALUE = rf"({NAME})?"
_SET = re.compile(rf"\s*(?P<key>{KEY})\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_EQUAL = re.compile(rf"\s*(?P<key>{KEY})\s*(?P<op>==|!=|=|>|<)\s*(?P<value>{VALUE})\s*$")
_EXISTS = re.compile(rf"\s*(?P<no>!?)\s*(?P<key>{KEY})\s*$")
_FIELD = re.compile(r"^([^=!]+)(==|!=|=)(.*)$")

COMMON_FIELDS = ("metadata.name", "metadata.namespace")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "nodes": ("spec.unschedulable",),
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type",
        "reportingComponent", "source",
    ),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
}  # fmt: skip
NEW_EVENT_FIELDS = {
    "reportingController": "reportingComponent",
    **{
        f"regarding.{at}": f"involvedObject.{at}"
        for at in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
}


@dataclass(frozen=True)
class Requirement:
    """One condition on a label, in the words of LabelSelector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it; an absent label meets the negative ones."""
        value = labels.get(self.key)
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        if self.operator == "NotIn":
            return value not in self.values
        if self.operator in ("Gt", "Lt"):
            try:
                left, right = int(value or ""), int(self.values[0])
            except ValueError:
                return False
            return left > right if self.operator == "Gt" else left < right
        return value in self.values


def _split(text: str) -> list[str]:
    """Cut at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The requirements of a `labelSelector`. Raises the API's 400."""
    if not text.strip():
        return ()
    return tuple(_requirement(part) for part in _split(text))


def _requirement(part: str) -> Requirement:
    if found := _SET.match(part):
        values = tuple(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], "In" if found["op"] == "in" else "NotIn", values)
    if found := _EQUAL.match(part):
        operator = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}[found["op"]]
        return Requirement(found["key"], operator, (found["value"],))
    if found := _EXISTS.match(part):
        return Requirement(found["key"], "DoesNotExist" if found["no"] else "Exists")
    raise bad_request(f"unable to parse requirement: {part.strip()!r} is no label selector")


def from_object(selector: Json | None) -> tuple[Requirement, ...] | None:
    """The requirements of a `metav1.LabelSelector`; None (nothing matches) where there is none."""
    if selector is None:
        return None
    equal = [Requirement(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    more = [
        Requirement(item["key"], item["operator"], tuple(item.get("values") or ()))
        for item in selector.get("matchExpressions") or []
    ]
    return (*equal, *more)


def labels_match(requirements: Sequence[Requirement], labels: Mapping[str, str] | None) -> bool:
    """Whether all of them are met."""
    return all(requirement.matches(labels or {}) for requirement in requirements)


@dataclass(frozen=True)
class FieldRequirement:
    """One condition on a field."""

    path: str
    equal: bool
    value: str

    def matches(self, body: Json) -> bool:
        """Whether the object meets it; an absent field is the empty string, or false."""
        return (field(body, self.path) == self.value) is self.equal


def field(body: Json, path: str) -> str:
    """A field as selectors compare it: text, `true`/`false`, empty for none."""
    if path == "source":
        path = "source.component"
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if path in ("spec.unschedulable", "spec.hostNetwork"):
        return "true" if value else "false"
    return "" if value is None else str(value)


def parse_fields(resource: Resource, text: str) -> tuple[FieldRequirement, ...]:
    """The conditions of a `fieldSelector`. Raises the API's 400, also for a field that this resource does not offer."""
    requirements = []
    for part in filter(None, text.split(",")):
        found = _FIELD.match(part)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        path = found[1].strip()
        if resource.stored_as == "events":
            path = NEW_EVENT_FIELDS.get(path, path)
        if path not in COMMON_FIELDS and path not in FIELDS.get(resource.key, ()):
            raise bad_request(f"field label not supported: {path}")
        requirements.append(FieldRequirement(path, found[2] != "!=", found[3]))
    return tuple(requirements)


def matcher(namespace: str, labels: Sequence[Requirement], fields: Sequence[FieldRequirement]) -> Callable[[Json], bool]:
    """One question for all three."""

    def matches(body: Json) -> bool:
        metadata = body["metadata"]
        if namespace and metadata.get("namespace") != namespace:
            return False
        return labels_match(labels, metadata.get("labels")) and all(item.matches(body) for item in fields)

    return matches
