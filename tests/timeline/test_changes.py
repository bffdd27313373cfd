"""The one helper through which streams move: numbered at the end, complete up to the head, one lock order."""

import threading
import uuid
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from console import live
from console.clusters.models import Cluster, Machine, Node
from console.timeline.changes import LockOrderError, change
from console.timeline.models import Entry, Stream, Tombstone

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)


@pytest.fixture
def stream(db: None) -> uuid.UUID:
    return Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(live, "_publish", said.append)
    return said


def test_each_row_of_a_change_gets_the_next_revision_of_its_stream(stream: uuid.UUID) -> None:
    for reason in ("First", "Second"):
        with change(NOON) as made:
            made.entry(stream, reason, "one")
            made.entry(stream, reason, "two")
    assert list(Entry.objects.order_by("revision").values_list("reason", "message", "revision")) == [
        ("First", "one", 1),
        ("First", "two", 2),
        ("Second", "one", 3),
        ("Second", "two", 4),
    ]
    assert Stream.objects.get(pk=stream).revision == 4


def test_what_goes_leaves_a_numbered_tombstone(stream: uuid.UUID) -> None:
    with change(NOON) as made:
        made.entry(stream, "NodeLost", "gone")
        made.gone(stream, "node", "abc")
    assert Tombstone.objects.get().revision == 2
    assert Stream.objects.get(pk=stream).revision == 2


@pytest.mark.django_db(transaction=True)
def test_browsers_are_nudged_only_after_the_commit(nudged: list[str]) -> None:
    """A message that leaves inside the transaction shows old data, or a change that rolls back (django/channels#362)."""
    stream = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    with change(NOON) as made:
        made.entry(stream, "First", "one")
        assert nudged == []
    assert nudged == [str(stream)]


@pytest.mark.django_db(transaction=True)
def test_a_change_that_fails_leaves_nothing_and_nudges_nobody(nudged: list[str]) -> None:
    stream = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    with pytest.raises(ZeroDivisionError), change(NOON) as made:
        made.entry(stream, "First", "one")
        _ = 1 / 0
    assert not Entry.objects.exists()
    assert Stream.objects.get(pk=stream).revision == 0
    assert nudged == []


def test_an_unknown_stream_is_an_error_and_not_a_lost_row(db: None) -> None:
    with pytest.raises(Stream.DoesNotExist), change(NOON) as made:
        made.entry(uuid.uuid4(), "First", "one")
    assert not Entry.objects.exists()


def test_rows_are_locked_in_one_order_only(db: None) -> None:
    with pytest.raises(LockOrderError), change(NOON) as made:
        made.lock(Node.objects.none())
        made.lock(Cluster.objects.none())
    with change(NOON) as made:
        made.lock(Cluster.objects.none())
        made.lock(Machine.objects.none())
        made.lock(Node.objects.none())


@pytest.mark.django_db(transaction=True)
def test_a_reader_never_sees_a_head_with_a_hole_below_it() -> None:
    """Writers race; whoever reads head N must find every revision up to N, or a browser would skip a row for good."""
    stream = Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.CLUSTER).id
    holes: list[tuple[int, int]] = []
    done = threading.Event()

    def write() -> None:
        try:
            for _ in range(40):
                with change(NOON) as made:
                    made.entry(stream, "Race", "a")
                    made.entry(stream, "Race", "b")
        finally:
            connection.close()

    def read() -> None:
        try:
            while not done.is_set():
                head = Stream.objects.get(pk=stream).revision
                seen = Entry.objects.filter(stream=stream, revision__lte=head).count()
                if seen != head:
                    holes.append((head, seen))
        finally:
            connection.close()

    writers = [threading.Thread(target=write) for _ in range(4)]
    reader = threading.Thread(target=read)
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert holes == []
    assert Stream.objects.get(pk=stream).revision == 320
    assert sorted(Entry.objects.values_list("revision", flat=True)) == list(range(1, 321))


@pytest.mark.django_db(transaction=True)
def test_two_changes_of_the_same_two_streams_queue_up_instead_of_deadlocking() -> None:
    first, second = (Stream.objects.create(id=uuid.uuid4(), kind=Stream.Kind.POOL).id for _ in range(2))
    failures: list[Exception] = []

    def write(order: tuple[uuid.UUID, uuid.UUID]) -> None:
        try:
            for _ in range(30):
                with change(NOON) as made:
                    for stream in order:
                        made.entry(stream, "Race", "x")
        except Exception as error:  # noqa: BLE001  whatever a thread dies of must fail the test
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(order,)) for order in ((first, second), (second, first)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(Stream.objects.values_list("revision", flat=True)) == {120}


def test_a_change_inside_a_transaction_of_the_caller_rolls_back_with_it(stream: uuid.UUID) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with change(NOON) as made:
            made.entry(stream, "First", "one")
        _ = 1 / 0
    assert not Entry.objects.exists()


def test_a_row_can_be_shown_anew_without_a_field_of_its_own_changing(stream: uuid.UUID) -> None:
    with change(NOON) as made:
        made.entry(stream, "First", "one")
    with change(NOON) as made:
        [entry] = made.lock(Entry.objects.filter(stream=stream))
        entry.message = "not written"
        made.save(stream, entry)
    entry.refresh_from_db()
    assert (entry.revision, entry.message) == (2, "one")
