"""One run at a time, and a fence that a run which lost its lease stumbles over."""

import threading
import uuid

import pytest
from django.db import connection, transaction

from console.clusters import leases
from console.clusters.leases import LeaseLost, guard, release, renew, take
from console.clusters.models import Lease


def expire() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_lease SET until = clock_timestamp() - interval '1 second'")


def test_a_lease_is_held_by_one_and_extended_by_the_same(db: None) -> None:
    pool = uuid.uuid4()
    mine = take("pool", pool, "a")
    assert mine is not None
    assert take("pool", pool, "b") is None
    again = take("pool", pool, "a")
    assert again == mine


def test_taking_over_an_expired_lease_raises_the_fence(db: None) -> None:
    pool = uuid.uuid4()
    mine = take("pool", pool, "a")
    expire()
    theirs = take("pool", pool, "b")
    assert mine is not None
    assert theirs is not None
    assert theirs.fence == mine.fence + 1


def test_a_run_that_was_frozen_cannot_write_any_more(db: None) -> None:
    """Its lease expired, another took over: it is fenced off (repository-service-tuf/repository-service-tuf-worker#151)."""
    pool = uuid.uuid4()
    mine = take("pool", pool, "a")
    assert mine is not None
    expire()
    assert take("pool", pool, "b") is not None
    with pytest.raises(LeaseLost), transaction.atomic():
        guard(mine)
    with pytest.raises(LeaseLost):
        renew(mine)


def test_an_owner_whose_lease_ran_out_comes_back_with_a_new_fence(db: None) -> None:
    """It cannot know what happened in between, so what it began under the old fence is void."""
    pool = uuid.uuid4()
    mine = take("pool", pool, "a")
    assert mine is not None
    expire()
    with pytest.raises(LeaseLost):
        renew(mine)
    again = take("pool", pool, "a")
    assert again is not None
    assert again.fence == mine.fence + 1


def test_a_late_release_leaves_the_new_holder_alone(db: None) -> None:
    """Freeing somebody else's lock is how a scheduler dies (sibson/redbeat#230)."""
    pool = uuid.uuid4()
    mine = take("pool", pool, "a")
    assert mine is not None
    expire()
    theirs = take("pool", pool, "b")
    assert theirs is not None
    release(mine)
    with transaction.atomic():
        guard(theirs)


def test_a_released_lease_can_be_taken_at_once(db: None) -> None:
    pool = uuid.uuid4()
    mine = take("pool", pool, "a")
    assert mine is not None
    release(mine)
    assert take("pool", pool, "b") is not None


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_one_wins() -> None:
    pool = uuid.uuid4()
    won: list[str] = []
    start = threading.Barrier(8)

    def ask(name: str) -> None:
        try:
            start.wait()
            if leases.take("pool", pool, name):
                won.append(name)
        finally:
            connection.close()

    for _ in range(5):
        won.clear()
        Lease.objects.all().delete()
        threads = [threading.Thread(target=ask, args=(str(n),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
