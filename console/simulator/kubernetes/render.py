"""One object, many forms: as itself, as metadata only, as a row of a table. Chosen by the Accept header."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from console.simulator.kubernetes.columns import COLUMNS, definitions
from console.simulator.kubernetes.errors import not_acceptable
from console.simulator.kubernetes.events_view import to_new
from console.simulator.kubernetes.resources import NEW_EVENTS, Resource
from console.simulator.kubernetes.store import Record
from console.simulator.values import Json, dumps

PLAIN, TABLE, PARTIAL = "plain", "table", "partial"


def form(accept: str) -> str:
    """The form a client asked for: the first of its alternatives that is known here. Raises 406."""
    for part in accept.split(",") if accept else ["*/*"]:
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        wanted = dict(piece.split("=", 1) for piece in parameters if "=" in piece)
        if kind not in ("application/json", "application/*", "*/*"):
            continue
        shape = wanted.get("as", "")
        if not shape:
            return PLAIN
        if shape == "Table" and wanted.get("v") == "v1":
            return TABLE
        if shape.startswith("PartialObjectMetadata") and wanted.get("v") == "v1":
            return PARTIAL
    raise not_acceptable()


@dataclass(frozen=True)
class Renderer:
    """Turns records of one resource into bytes of one form."""

    resource: Resource
    form: str
    now: Callable[[], datetime]
    include: str = "Metadata"  # what a table row carries of its object: None, Metadata or Object

    def one(self, record: Record) -> bytes:
        """A single object."""
        if self.form == TABLE:
            return self._table([record], {"resourceVersion": str(record.version)})
        if self.form == PARTIAL:
            return dumps(_partial(record))
        head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.resource.api_version}",'.encode()
        return head + self._raw(record)[1:]

    def many(self, records: list[Record], metadata: Json) -> bytes:
        """A list."""
        if self.form == TABLE:
            return self._table(records, metadata)
        kind, version, raws = f"{self.resource.kind}List", self.resource.api_version, map(self._raw, records)
        if self.form == PARTIAL:
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
            raws = map(dumps, map(_partial, records))
        head = f'{{"kind":"{kind}","apiVersion":"{version}","metadata":'.encode()
        return b"".join((head, dumps(metadata), b',"items":[', b",".join(raws), b"]}"))

    def change(self, kind: str, record: Record, *, first: bool = False) -> bytes:
        """One line of a watch."""
        body = (
            self._table([record], {"resourceVersion": str(record.version)}, headed=first)
            if self.form == TABLE
            else self.one(record)
        )
        return b"".join((b'{"type":"', kind.encode(), b'","object":', body, b"}\n"))

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        """A bookmark: an object of nothing but a version."""
        metadata: Json = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        body: Json = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        if self.form == TABLE:
            body = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": str(version)}}
            body |= {
                "columnDefinitions": None,
                "rows": [{"cells": None, "object": self._bookmark_object(metadata)}] if initial else [],
            }
        elif self.form == PARTIAL:
            body = self._bookmark_object(metadata)
        return dumps({"type": "BOOKMARK", "object": body}) + b"\n"

    def _bookmark_object(self, metadata: Json) -> Json:
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}

    def _raw(self, record: Record) -> bytes:
        return dumps(to_new(record.body)) if self.resource is NEW_EVENTS else record.raw

    def _table(self, records: list[Record], metadata: Json, *, headed: bool = True) -> bytes:
        columns = COLUMNS[self.resource.key]
        now = self.now()
        rows = [{"cells": columns.cells(record.body, now), "object": self._row_object(record)} for record in records]
        heads = definitions(columns) if headed else None
        table: Json = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return dumps(table | {"columnDefinitions": heads, "rows": rows})

    def _row_object(self, record: Record) -> Json | None:
        if self.include == "None":
            return None
        if self.include == "Object":
            body = to_new(record.body) if self.resource is NEW_EVENTS else record.body
            return {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **body}
        return _partial(record)


def _partial(record: Record) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": record.body["metadata"]}
