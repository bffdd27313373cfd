"""Bodies in Kubernetes' protobuf form, read only: kubectl's typed commands (`create namespace`, `drain --disable-eviction`)
send nothing else. A table says which fields of which message are known; answers are JSON, which those clients take.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from console.simulator.values import Json

MAGIC = b"k8s\x00"
CONTENT_TYPE = "application/vnd.kubernetes.protobuf"


class Unreadable(ValueError):
    """No protobuf body, or of a kind that is not known here."""


@dataclass(frozen=True)
class Field:
    """One field: its JSON name and how its value is read; `many` for a list."""

    name: str
    kind: str = "text"  # text, number, truth, bytes, map, byte-map, int-or-text, or the name of a message
    many: bool = False


MESSAGES: dict[str, dict[int, Field]] = {
    "ObjectMeta": {
        1: Field("name"), 2: Field("generateName"), 3: Field("namespace"), 5: Field("uid"), 6: Field("resourceVersion"),
        11: Field("labels", "map"), 12: Field("annotations", "map"), 14: Field("finalizers", many=True),
    },
    "Preconditions": {1: Field("uid"), 2: Field("resourceVersion")},
    "DeleteOptions": {
        1: Field("gracePeriodSeconds", "number"), 2: Field("preconditions", "Preconditions"),
        3: Field("orphanDependents", "truth"), 4: Field("propagationPolicy"), 5: Field("dryRun", many=True),
    },
    "Namespace": {1: Field("metadata", "ObjectMeta")},
    "Secret": {
        1: Field("metadata", "ObjectMeta"), 2: Field("data", "byte-map"), 3: Field("type"), 4: Field("stringData", "map"),
        5: Field("immutable", "truth"),
    },
    "ConfigMap": {
        1: Field("metadata", "ObjectMeta"), 2: Field("data", "map"), 3: Field("binaryData", "byte-map"),
        4: Field("immutable", "truth"),
    },
    "Eviction": {1: Field("metadata", "ObjectMeta"), 2: Field("deleteOptions", "DeleteOptions")},
    "PodDisruptionBudget": {1: Field("metadata", "ObjectMeta"), 2: Field("spec", "PodDisruptionBudgetSpec")},
    "PodDisruptionBudgetSpec": {
        1: Field("minAvailable", "int-or-text"), 2: Field("selector", "LabelSelector"), 3: Field("maxUnavailable", "int-or-text"),
        4: Field("unhealthyPodEvictionPolicy"),
    },
    "LabelSelector": {1: Field("matchLabels", "map"), 2: Field("matchExpressions", "Requirement", many=True)},
    "Requirement": {1: Field("key"), 2: Field("operator"), 3: Field("values", many=True)},
}  # fmt: skip
KINDS = frozenset({"DeleteOptions", "Namespace", "Secret", "ConfigMap", "Eviction", "PodDisruptionBudget"})


def decode(data: bytes) -> Json:
    """The object of a body. Raises Unreadable."""
    if not data.startswith(MAGIC):
        raise Unreadable("the body does not begin as a Kubernetes protobuf object does")
    try:
        envelope = dict(_fields(data[len(MAGIC) :]))
        about = dict(_fields(_bytes(envelope[1])))
        version, kind = (_bytes(about[number]).decode() for number in (1, 2))
        if kind not in KINDS:
            raise Unreadable(f"{kind} is read as JSON only here")
        return {"kind": kind, "apiVersion": version, **_message(kind, _bytes(envelope.get(2, b"")))}
    except (KeyError, IndexError, UnicodeDecodeError) as error:
        raise Unreadable("the body breaks off or is no protobuf") from error


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field, in order."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise IndexError("a field is longer than its message")
            yield number, data[at : at + size]
            at += size
        else:
            raise Unreadable(f"wire type {wire} is used by none of these messages")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Unreadable("a number stands where a text or message belongs")
    return value


def _message(kind: str, data: bytes) -> Json:
    known: dict[int, Field] = MESSAGES[kind]
    body: Json = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is None:
            continue  # a field nobody here asks for
        value = _value(field, raw)
        if field.many:
            body.setdefault(field.name, []).append(value)
        elif field.kind in ("map", "byte-map"):
            body.setdefault(field.name, {}).update(value)
        elif value != "":
            body[field.name] = value  # Go writes empty texts too, where JSON leaves them out
    return body


def _value(field: Field, raw: int | bytes) -> Any:
    if field.kind in ("number", "truth"):
        number = raw if isinstance(raw, int) else 0
        return bool(number) if field.kind == "truth" else number - (1 << 64 if number >= 1 << 63 else 0)
    data = _bytes(raw)
    if field.kind == "text":
        return data.decode()
    if field.kind in ("map", "byte-map"):
        entry = dict(_fields(data))
        key, value = _bytes(entry[1]).decode(), _bytes(entry.get(2, b""))
        return {key: value.decode() if field.kind == "map" else b64encode(value).decode()}
    if field.kind == "int-or-text":
        parts = dict(_fields(data))
        return _bytes(parts.get(3, b"")).decode() if parts.get(1) else parts.get(2, 0)
    return _message(field.kind, data)
