"""The timeline's questions on a ledger of 10⁵, 10⁶ and 10⁷ entries of one cluster: on the last as quick as on the first.

The rows are made in the database, over the ninety days that are kept, with the indexes taken away and built again for the larger
two. `BENCH_ENTRIES` ends it earlier: building the index on text of 10⁷ messages takes minutes of one core.
"""

import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from console.http import DomainError
from console.timeline import queries, retention
from console.timeline.changes import change
from console.timeline.filters import Filter, narrow
from console.timeline.models import Entry, Stream
from tests.bench.report import Book
from tests.installation import Installation

SIZES = (100_000, 1_000_000, 10_000_000)
KEPT = timedelta(days=89)
TIMES = 5
ROWS = 100
GOAL = 50  # milliseconds for one question of the page: a third of what the whole page may take

WISHES = {
    "everything": Filter(),
    "warnings": Filter(severity="warning"),
    "critical": Filter(severity="critical"),
    "a reason that is rare": Filter(reason="TargetChanged"),
    "a reason that is not there": Filter(reason="Nothing"),
    "a node": Filter(node="gpu-000500"),
    "a class": Filter(compute_class="standard"),
    "people": Filter(actor="person"),
    "one person": Filter(actor="person:ada"),
    "text in many": Filter(text="back-off"),
    "text in one": Filter(text="needle"),
    "text in none": Filter(text="nowhere at all"),
    "text, node and week": Filter(text="back-off", node="gpu-000500", last="7d"),
}

FILL = """
    INSERT INTO timeline_entry (revision, stream_id, at, recorded_at, first_at, last_at, reason, severity, subject_kind,
        subject_name, subject_uid, message, actor_kind, actor_name, node_name, compute_class, count, data)
    SELECT n, %(stream)s, %(start)s + n * %(step)s, now(), %(start)s + n * %(step)s, %(start)s + n * %(step)s,
        CASE WHEN n %% 1000 = 0 THEN 'TargetChanged' ELSE (ARRAY['BackOff', 'NodeReady', 'Pulled'])[1 + n %% 3] END,
        CASE WHEN n %% 20000 = 7 THEN 'critical' WHEN n %% 20 = 3 THEN 'warning' ELSE 'info' END,
        'Node', 'gpu-' || lpad((n %% 1000)::text, 6, '0'), 'u',
        CASE WHEN n = 4711 THEN 'a needle' ELSE 'Back-off restarting failed container main in pod sweep-' || n END,
        CASE WHEN n %% 1000 = 0 THEN 'person' ELSE 'kubernetes' END, CASE WHEN n %% 1000 = 0 THEN 'ada' ELSE 'kubelet' END,
        'gpu-' || lpad((n %% 1000)::text, 6, '0'), CASE WHEN n %% 10 = 0 THEN 'standard' ELSE 'preemptible' END, 1, '{}'
    FROM generate_series(%(first)s, %(last)s) AS n"""


def run(_: Installation, book: Book) -> None:
    most = int(os.environ.get("BENCH_ENTRIES") or SIZES[-1])
    stream = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    there, rates = 0, []
    for size in (size for size in SIZES if size <= most):
        fill(stream, there, size)
        there = size
        rates.append(written())
        took = {name: median(question) for name, question in questions(stream).items()}
        for name, value in took.items():
            book.at_most(f"timeline, {size:,} entries: {name}", value, "ms", GOAL)
        explain(stream)
    book.ratio_at_least(
        f"timeline, {there:,} entries: written, 200 a transaction, beside {SIZES[0]:,}", rates[-1], "entries/s", rates[0], 0.5
    )
    pruned(stream, there, book)


def fill(stream: uuid.UUID, there: int, size: int) -> None:
    """Up to `size` entries. All lie within the days that are kept, however many: later ones between the earlier ones."""
    start, step = timezone.now() - KEPT, KEPT / size
    began = time.monotonic()
    with without_indexes(size > SIZES[0]), connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")  # of the filling, not of what is measured
        values = {"stream": stream, "start": start, "step": step, "first": there + 1, "last": size}
        cursor.execute(FILL, values)
        cursor.execute("RESET synchronous_commit")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE timeline_entry")
    Stream.objects.filter(pk=stream).update(revision=size)
    print(f"      {size:,} entries after {time.monotonic() - began:.0f} s", flush=True)


@contextmanager
def without_indexes(really: bool) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'timeline_entry' AND indexname LIKE 'entry%' "
            "AND indexname NOT LIKE 'entry_once%'"
        )
        indexes = cursor.fetchall() if really else []
        cursor.execute("SET maintenance_work_mem = '512MB'")
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        yield
        for _, definition in indexes:
            cursor.execute(definition)


def questions(stream: uuid.UUID) -> dict[str, Callable[[], Any]]:
    now = timezone.now()
    middle = (now - KEPT / 2, 1)

    def page(wish: Filter) -> Callable[[], Any]:
        return lambda: queries.older(stream, ROWS, wish, now)

    return {
        **{name: page(wish) for name, wish in WISHES.items()},
        "older from the middle": lambda: queries.older(stream, ROWS, Filter(), now, middle),
        "newer from the middle": lambda: queries.newer(stream, ROWS, Filter(), now, middle),
        "what the form offers": lambda: (queries.reasons(stream), queries.nodes(stream), queries.actors(stream)),
        "warnings of a day, counted": lambda: queries.counted(stream, "warning", now - timedelta(hours=24)),
    }


def median(question: Callable[[], Any]) -> float:
    """Milliseconds. A search that is refused for its length counts with the time until it was."""
    took = []
    for _ in range(TIMES):
        began = time.monotonic()
        try:
            question()
        except DomainError as error:
            print(f"      {error.message}")
        took.append(1000 * (time.monotonic() - began))
    return statistics.median(took)


def explain(stream: uuid.UUID) -> None:
    """The plans and the pages they touch, for docs/operations.md: the same on any machine, however busy."""
    now = timezone.now()
    for name, wish in WISHES.items():
        rows = narrow(Entry.objects.filter(stream_id=stream), wish, now).order_by("-at", "-id")[: ROWS + 1]
        lines = rows.explain(analyze=True, buffers=True).splitlines()
        shown = [line.strip() for line in lines if "Scan" in line or "Buffers" in line or "Execution" in line]
        print(f"      {name}: " + " | ".join(shown[:4]), flush=True)


def written() -> float:
    """Entries a second in batches as the sync writer does, all indexes on; into a stream of their own, so a fill fits."""
    stream = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    began = time.monotonic()
    for batch in range(20):
        with change() as made:
            for number in range(200):
                made.entry(stream, "BackOff", f"written {batch}-{number}", node=f"gpu-{number}", compute_class="preemptible")
    return 4000 / (time.monotonic() - began)


def pruned(stream: uuid.UUID, there: int, book: Book) -> None:
    """One run of retention, half a day too late: all of that, or as much as its seconds allow."""
    began = time.monotonic()
    gone = retention.prune(oldest(stream) + timedelta(days=90, hours=12))
    book.at_least(f"timeline, {there:,} entries: pruned", gone / (time.monotonic() - began), "entries/s", 1000)


def oldest(stream: uuid.UUID) -> datetime:
    return Entry.objects.filter(stream=stream).order_by("at", "id").values_list("at", flat=True)[0]
