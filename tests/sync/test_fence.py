"""A writer that was frozen and replaced writes nothing any more (repository-service-tuf/repository-service-tuf-worker#151)."""

import pytest

from console.clusters import leases
from console.clusters.leases import LeaseLost
from console.clusters.models import Lease, Node
from tests.sync.world import Line, node


def expire(line: Line) -> None:
    leases.release(line.room.held)


def test_a_watcher_that_lost_its_lease_cannot_write(line: Line) -> None:
    line.write(*line.listed("nodes", [node("gpu-dp-1")]))
    expire(line)
    assert leases.take("watch", line.cluster.pk, "another")
    with pytest.raises(LeaseLost):
        line.write(*line.seen(node("gpu-dp-1", version=200), type_="DELETED"))
    assert Node.objects.count() == 1


def test_not_even_a_proof_of_life(line: Line) -> None:
    line.write(*line.listed("nodes", []), *line.listed("pods", []), *line.listed("events", []))
    proved = line.fresh().proved_to
    expire(line)
    assert leases.take("watch", line.cluster.pk, "another")
    line.now = line.now.replace(minute=5)
    with pytest.raises(LeaseLost):
        line.write(*line.heard("nodes"))
    assert line.fresh().proved_to == proved


def test_a_lease_that_ran_out_but_found_no_other_holder_still_writes(line: Line) -> None:
    """After an outage of the database nobody else may have come; refusing then would only lose time."""
    expire(line)
    line.write(*line.seen(node("gpu-dp-1"), type_="ADDED"))
    assert Node.objects.count() == 1


def test_a_batch_that_failed_can_be_written_again(line: Line) -> None:
    """Nothing counts as known before it is committed."""
    batch = line.seen(node("gpu-dp-1"), type_="ADDED")
    fence = Lease.objects.get().fence
    Lease.objects.update(fence=99)
    with pytest.raises(LeaseLost):
        line.write(*batch)
    Lease.objects.update(fence=fence)
    line.write(*batch)
    assert Node.objects.count() == 1
