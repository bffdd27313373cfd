"""Which rows stand where: the strip, the nodes table, and a timeline that is paged by place."""

import re
import uuid
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from console.capacity.drawing.lines import lines
from console.capacity.models import Pool
from console.clusters.models import Cluster, ComputeClass, Machine
from console.timeline.models import Stream
from tests.pages import world

ROW = re.compile(r'<li class="ev[^"]*" id="e(\d+)"')


def test_paging_by_place_shows_every_entry_once_even_at_one_instant(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    at = timezone.now() - timedelta(minutes=1)
    ids = {world.an_entry(cluster, f"entry {number}", at=at).pk for number in range(260)}
    seen: list[int] = []
    path = f"/clusters/{cluster.pk}/timeline"
    while path:
        page = vic.get(path).content.decode()
        seen += [int(found) for found in ROW.findall(page)]
        world.an_entry(cluster, "something newer")  # what arrives meanwhile shifts nothing
        older = re.search(r'data-older href="([^"]+)"', page)
        path = older[1].replace("&amp;", "&") if older else ""
    assert len(seen) == len(set(seen))
    assert set(seen) >= ids
    assert seen[:260] == sorted(seen[:260], reverse=True)


def test_a_machine_and_its_node_are_one_line_with_one_key(pool: Pool) -> None:
    cluster = world.a_cluster(pool)
    machine = Machine.objects.create(
        cluster=cluster,
        region=cluster.region,
        gpu_type=cluster.gpu_type,
        compute_class=ComputeClass.PREEMPTIBLE,
        node_name="gpu-preemptible-dp-9d10",
        state=Machine.State.BOOTING,
        asked_at=timezone.now(),
    )
    (before,) = lines([machine], [], [])
    node = world.a_node(cluster, "other")
    node.machine, node.name = machine, machine.node_name
    (after,) = lines([machine], [node], [])
    assert (before.state, after.state) == ("booting", "ready")
    assert before.key == after.key == machine.pk.hex
    assert before.sort == after.sort


def test_a_nodes_line_says_the_most_urgent_truth(pool: Pool) -> None:
    cluster = world.a_cluster(pool)
    found = {
        "ready": world.a_node(cluster, "a"),
        "sick": world.a_node(cluster, "b", ready=False, unschedulable=True),
        "lost": world.a_node(cluster, "c", ready=None),
        "held": world.a_node(cluster, "d", unschedulable=True),
        "booting": world.a_node(cluster, "e", startup_pending=True),
        "draining": world.a_node(cluster, "f", ready=False, unschedulable=True),
    }
    drain = world.a_drain(found["draining"])
    drawn = lines([node.machine for node in found.values()], found.values(), [drain])
    assert [line.state for line in drawn] == list(found)
    assert drawn[-1].until == drain.deadline


def test_many_nodes_become_small_squares_and_the_overview_shows_the_troubled_ones(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    for number in range(70):
        world.a_node(cluster, f"gpu-preemptible-dp-{number:04x}")
    world.a_node(cluster, "gpu-preemptible-dp-zzzz", ready=False)
    page = vic.get(f"/clusters/{cluster.pk}").content.decode()
    assert page.count('data-key="cell-') == 71
    assert 'class="cells dense"' in page
    assert page.count('<tr id="node-') == 24
    assert "Not Ready" in page
    assert vic.get(f"/clusters/{cluster.pk}/nodes").content.decode().count('<tr id="node-') == 71


def test_empty_lists_say_so(pool: Pool, vic: Client, ada: Client) -> None:
    assert "No clusters yet" in vic.get("/").content.decode()
    cluster = world.a_cluster(pool)
    assert "Nothing has happened yet" in vic.get(f"/clusters/{cluster.pk}/timeline").content.decode()
    assert "No cluster matches" in ada.get("/", {"q": "zebra"}).content.decode()


def test_a_cell_leads_to_the_page_of_nodes_that_has_its_row(pool: Pool, vic: Client) -> None:
    cluster = world.a_large_cluster(pool, "large", 120, 1)
    machine = Machine.objects.get(cluster=cluster, node_name="gpu-dp-000119")  # the last one, on the second page
    page = vic.get(f"/clusters/{cluster.pk}").content.decode()
    (address,) = re.findall(rf'href="([^"]+)#node-{machine.pk.hex}"', page)
    rows = vic.get(address).content.decode()
    assert f'<tr id="node-{machine.pk.hex}"' in rows
    assert rows.count('<tr id="node-') == 20


def test_the_clusters_list_is_kept_fresh_by_parts_that_are_those_of_the_page(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    page = vic.get("/", {"q": "aurora"}).content.decode()
    (address,) = re.findall(r'data-polled="([^"]+)"', page)
    address = address.replace("&amp;", "&")
    for html in vic.get(address).json()["parts"].values():
        assert html in page
    world.an_entry(cluster, "something new happened")
    world.a_node(cluster, "gpu-preemptible-dp-1", ready=False)
    parts = vic.get(address).json()["parts"]
    assert "something new happened" in parts["rows"]
    assert 'data-alarm="1 needs a look"' in parts["alarm"]
    world.a_cluster(pool, "borealis-eval", "borealis")
    assert "borealis" not in str(vic.get("/clusters/parts").json())


def test_a_thousand_clusters_are_counted_whole_and_shown_a_page_at_a_time(pool: Pool, ada: Client) -> None:
    example = world.a_cluster(pool, "c-000")
    Stream.objects.bulk_create(Stream(pk=uuid.UUID(int=number), kind=Stream.Kind.CLUSTER) for number in range(1, 1000))
    columns = {field.attname: getattr(example, field.attname) for field in Cluster._meta.concrete_fields}
    Cluster.objects.bulk_create(
        Cluster(**{**columns, "id": uuid.UUID(int=number), "name": f"c-{number:03d}"}) for number in range(1, 1000)
    )
    page = ada.get("/").content.decode()
    assert "1000 clusters in 1 region" in page
    assert page.count('class="name" href="/clusters/') == 100
    last = ada.get("/", {"page": "9"}).content.decode()
    assert "c-999" in last
    assert "c-000" not in last
    assert ada.get("/", {"page": "77777"}).content.decode().count('class="name" href="/clusters/') == 100
    assert 'aria-label="Pages of clusters"' not in ada.get("/", {"q": "c-00"}).content.decode()
