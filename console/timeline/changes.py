"""How every change is written: lock, write rows, write ledger rows, number them, nudge on commit.

`change()` is the one helper through which streams move. It takes the counter **last**, after every row lock, so that two
transactions never wait for each other crosswise and a reader that sees revision N sees everything up to N (DESIGN 4).
Row locks go through `Change.lock`, which refuses a second order: pool, cluster, machine, node, pod, drain; each by id.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from console import live
from console.timeline.models import Entry, Revised, Stream, Tombstone

Row = TypeVar("Row", bound=Revised)


class LockOrderError(RuntimeError):
    """Rows were locked against the one order. A programming error, found by tests."""


@dataclass(frozen=True)
class Actor:
    """Who did it, as a timeline row says it: a person, an API key, Halftide itself or Kubernetes."""

    kind: str
    name: str


HALFTIDE = Actor(Entry.ActorKind.SYSTEM, "Halftide")
KUBERNETES = Actor(Entry.ActorKind.KUBERNETES, "Kubernetes")


@dataclass
class Change:
    """What one transaction does. Nothing gets its revision before the end of the `with` block."""

    now: datetime
    _rank: int = 0
    _rows: dict[UUID, dict[int, tuple[Revised, set[str]]]] = field(default_factory=lambda: defaultdict(dict))
    _gone: list[tuple[UUID, str, str]] = field(default_factory=list)
    _stamps: list[tuple[Revised, str]] = field(default_factory=list)

    def lock(self, rows: QuerySet[Row]) -> list[Row]:
        """SELECT … FOR UPDATE by primary key, refusing a model that stands before one already locked."""
        rank = rows.model.lock_rank
        if rank < self._rank:
            raise LockOrderError(f"{rows.model.__name__} must be locked before what is already locked")
        self._rank = rank
        return list(rows.select_for_update(of=("self",)).order_by("pk"))

    def save(self, stream: UUID, row: Revised, *fields: str) -> None:
        """Write `fields` of a locked row, or all of a new one, with a revision of the stream. No fields: only the revision."""
        _, known = self._rows[stream].setdefault(id(row), (row, set()))
        known.update(fields)

    def stamp(self, stream: UUID, row: Revised, name: str) -> None:
        """Write the row's new revision into its field `name` too, where it stays until the next stamp: for compare-and-set."""
        self.save(stream, row, name)
        self._stamps.append((row, name))

    def pending(self, model: type[Row]) -> list[Row]:
        """Rows of a model that this change will write, as they will be written."""
        return [row for rows in self._rows.values() for row, _ in rows.values() if isinstance(row, model)]

    def gone(self, stream: UUID, kind: str, object_id: object) -> None:
        """The row disappears from live pages; the caller deletes it."""
        self._gone.append((stream, kind, str(object_id)))

    def entry(
        self,
        stream: UUID,
        reason: str,
        message: str,
        *,
        actor: Actor = HALFTIDE,
        severity: str = Entry.Severity.INFO,
        at: datetime | None = None,
        subject: tuple[str, str, str] = ("", "", ""),
        node: str = "",
        **more: Any,
    ) -> Entry:
        """A ledger row: what happened, to whom (kind, name, uid), by whom. Written at the end of the block.

        `node` is the node it is about where that is not the subject itself; `compute_class` says which of the two it is.
        """
        moment = at or self.now
        kind, name, uid = subject
        row = Entry(
            stream_id=stream,
            at=moment,
            recorded_at=self.now,
            first_at=moment,
            last_at=moment,
            reason=reason,
            severity=severity,
            message=message,
            actor_kind=actor.kind,
            actor_name=actor.name,
            subject_kind=kind,
            subject_name=name,
            subject_uid=uid,
            node_name=node or (name if kind in Entry.ABOUT_NODES else ""),
            **more,
        )
        self.save(stream, row)
        return row

    def _streams(self) -> list[UUID]:
        return sorted({*self._rows, *(stream for stream, _, _ in self._gone)})

    def _write(self) -> None:
        """Count, number, write. Streams by id, so that two changes of the same streams queue up instead of dead-locking."""
        for stream in self._streams():
            rows = list(self._rows.get(stream, {}).values())
            gone = [(kind, object_id) for at, kind, object_id in self._gone if at == stream]
            first = _advance(stream, len(rows) + len(gone)) - len(rows) - len(gone) + 1
            for number, (row, _) in enumerate(rows, first):
                row.revision = number
            for row, name in self._stamps:
                setattr(row, name, row.revision)
            _store(rows)
            Tombstone.objects.bulk_create(
                Tombstone(stream_id=stream, kind=kind, object_id=object_id, revision=number, at=self.now)
                for number, (kind, object_id) in enumerate(gone, first + len(rows))
            )
            live.nudge_on_commit(stream)


def _advance(stream: UUID, steps: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE timeline_stream SET revision = revision + %s WHERE id = %s RETURNING revision", [steps, stream])
        found = cursor.fetchone()
    if found is None:
        raise Stream.DoesNotExist(f"no stream {stream}")
    return int(found[0])


def _store(rows: Iterable[tuple[Revised, set[str]]]) -> None:
    """One statement for each model and set of fields; rows keep their order, which is that of their revisions."""
    new: dict[type[Revised], list[Revised]] = defaultdict(list)
    known: dict[tuple[type[Revised], frozenset[str]], list[Revised]] = defaultdict(list)
    for row, fields in rows:
        if row._state.adding:
            new[type(row)].append(row)
        else:
            known[type(row), frozenset({*fields, "revision"})].append(row)
    for model, members in new.items():
        model._default_manager.bulk_create(members)
    for (model, names), members in known.items():
        # An upsert by primary key of rows that are there and locked: one statement, much faster than a CASE for each.
        model._default_manager.bulk_create(
            members, update_conflicts=True, unique_fields=[model._meta.pk.name], update_fields=sorted(names)
        )


@contextmanager
def change(now: datetime | None = None) -> Iterator[Change]:
    """A transaction whose changes are numbered at its end. `now` is injected by tests and by callers with one instant."""
    with transaction.atomic():
        made = Change(now or timezone.now())
        yield made
        made._write()
