"""The tab's title says what is wrong, for who looks at another tab."""

from django.test import Client
from django.utils import timezone

from console.capacity import panels, picture
from console.capacity.models import Pool
from tests.pages import world


def test_the_title_counts_what_drains_and_what_is_sick_and_is_plain_when_all_is_well(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    assert "<title>aurora-train · Halftide</title>" in vic.get(f"/clusters/{cluster.pk}").content.decode()
    world.a_drain(node)
    assert "<title>● 1 draining – aurora-train · Halftide</title>" in vic.get(f"/clusters/{cluster.pk}").content.decode()
    world.a_node(cluster, "gpu-preemptible-dp-2", ready=False)
    for tab, rest in (("", "aurora-train"), ("/nodes", "Nodes of aurora-train"), ("/timeline", "Timeline of aurora-train")):
        title = f"<title>● 1 not Ready, 1 draining – {rest} · Halftide</title>"
        assert title in vic.get(f"/clusters/{cluster.pk}{tab}").content.decode()
    assert "<title>● 1 needs a look – Clusters · Halftide</title>" in vic.get("/").content.decode()


def test_what_is_pushed_says_it_too_and_the_worst_colours_the_icon(pool: Pool) -> None:
    cluster = world.a_cluster(pool, unreachable_since=timezone.now())
    world.a_drain(world.a_node(cluster, "gpu-preemptible-dp-1"))
    pushed = panels.render_panel(picture.read(cluster, timezone.now()))
    assert '<span data-alarm="Kubernetes unreachable, 1 draining" data-look="red"></span>' in pushed
