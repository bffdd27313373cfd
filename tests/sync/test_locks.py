"""A batch of the watch and a round of drains write the same drains; neither may wait for the other while it is waited for."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from console.capacity.models import Drain
from console.clusters.models import Node
from tests.capacity.drain_api import begin, fleet
from tests.simulator.conftest import eventually
from tests.sync.world import Line, new_line

pytestmark = pytest.mark.django_db(transaction=True)

NODES = [f"gpu-preemptible-dp-{number}" for number in range(6)]
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees it as it was first
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def write_and_close(line: Line) -> None:
    line.write(*line.listed("nodes", []))
    connection.close()


def test_nodes_that_go_in_one_batch_lock_their_drains_in_the_order_of_the_drains() -> None:
    """Seen against a real Kubernetes: four nodes went at once, and the watch and the drains' own writes waited for each other."""
    cluster = fleet(*NODES)
    line = new_line(cluster)
    ids = sorted(begin(cluster, name).pk for name in NODES)
    with ThreadPoolExecutor(1) as watch:
        with transaction.atomic():
            Drain.objects.select_for_update().get(pk=ids[0])
            done = watch.submit(write_and_close, line)
            eventually(waits)
            free = Drain.objects.select_for_update(skip_locked=True).filter(pk__in=ids[1:])
            assert len(free) == len(ids) - 1, "the watch holds a drain and waits for one that comes before it"
        done.result()
    assert not Node.objects.filter(cluster=cluster).exists()
