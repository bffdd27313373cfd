"""What is too old goes: entries after HALFTIDE_RETENTION_DAYS, tombstones after seven days, in small steps by index.

A step deletes at most STEP rows in a transaction of its own, so no lock is held for long and nobody waits; a run stops after
SECONDS and the next one goes on, so it fits a task. Two runs at once take different rows (SKIP LOCKED), and a run that finds
nothing writes nothing. Entries need no tombstone: no page shows what is that old without asking for it, and a link to one finds
the `Pruned` row, which says when it went. docs/decisions/0014 says why not by dropping partitions.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from console.timeline.models import Pruned, Stream

STEP = 5000  # rows in one transaction: some tenths of a second
SECONDS = 8.0  # of one run; a task may take 20
TOMBSTONES = timedelta(days=7)  # a page sleeps no longer than its session, which is hours
FOLDED = timedelta(days=7)  # Kubernetes lists an Event again for an hour, by its own setting for longer

DELETE = """
    WITH old AS (
        SELECT id FROM timeline_entry WHERE stream_id = %s AND at < %s ORDER BY at, id LIMIT %s FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM timeline_entry WHERE id IN (SELECT id FROM old) RETURNING id
    ) SELECT count(*), min(id), max(id) FROM gone"""


def prune(now: datetime, clock: Callable[[], float] = monotonic) -> int:
    """One run over everything; how many entries went. Safe to repeat, and to run twice at once."""
    until = clock() + SECONDS
    rows = 0
    before = now - timedelta(days=settings.RETENTION_DAYS)
    for stream in Stream.objects.order_by("pk").values_list("pk", flat=True):
        while clock() < until and (gone := _prune_some(stream, before, now)):
            rows += gone
            if gone < STEP:
                break
    for table, age in (("timeline_tombstone", TOMBSTONES), ("timeline_foldedevent", FOLDED)):
        while clock() < until and _forget(table, now - age) == STEP:
            pass
    return rows


def _prune_some(stream: UUID, before: datetime, now: datetime) -> int:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(DELETE, [stream, before, STEP])
            found = cursor.fetchone()
        rows, first, last = found or (0, 0, 0)
        if rows:
            _note(stream, before, now, rows, first, last)
        return int(rows)


def _note(stream: UUID, before: datetime, now: datetime, rows: int, first: int, last: int) -> None:
    """One row a stream and day, however many steps it took."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    note = Pruned.objects.select_for_update().filter(stream=stream, at__gte=midnight).order_by("pk").first()
    if note is None:
        note = Pruned(stream_id=stream, first=first, last=last, rows=0)
    note.at, note.before, note.rows = now, before, note.rows + rows
    note.first, note.last = min(note.first, first), max(note.last, last)
    note.save()


def _forget(table: str, before: datetime) -> int:
    """`table` is one of the two names above."""
    old = f"SELECT id FROM {table} WHERE at < %s ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE id IN ({old})", [before, STEP])  # noqa: S608
        return int(cursor.rowcount)
