"""What a piece of news costs the database: entries alone, most of what a cluster says, are read with two statements."""

import json

from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.clusters.models import Cluster, Node
from console.feed import reads
from console.timeline.changes import change
from console.timeline.models import Stream
from tests.feed.line import World, happen, head, repeat


def read(world: World, since: int) -> tuple[list[str], int]:
    """The kinds of rows that are new, and how many statements it took to read them."""
    seen = {world.id: since, world.pool.pk: Stream.objects.get(pk=world.pool.pk).revision}
    epoch = head(world.cluster)[1]
    with CaptureQueriesContext(connection) as asked:
        found = reads.news(world.id, seen, epoch)
    return [row["kind"] for row in json.loads(str(found.frame))["rows"]], len(asked)


def touch_a_node(cluster: Cluster) -> None:
    with change() as made:
        [node] = made.lock(Node.objects.filter(cluster=cluster))
        made.save(cluster.stream, node, "gpus")


def test_entries_alone_cost_two_statements_whatever_their_number(world: World) -> None:
    start, _ = head(world.cluster)
    [first, *_] = happen(world.cluster, "pulled", "created", "started")
    assert read(world, start) == (["entry"] * 3, 2)
    repeat(world.cluster, first)
    assert read(world, start + 3) == (["entry"], 2)


def test_what_changes_beside_entries_is_found_also_where_an_entry_changed_twice(world: World) -> None:
    """A revision that no entry has any more may have been anything's."""
    start, _ = head(world.cluster)
    [first] = happen(world.cluster, "pulled")
    repeat(world.cluster, first)
    assert read(world, start)[0] == ["entry"]
    touch_a_node(world.cluster)
    assert sorted(read(world, start)[0]) == ["cell", "entry", "node", "panel"]
    assert sorted(read(world, start + 2)[0]) == ["cell", "node", "panel"]
