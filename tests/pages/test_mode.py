"""Observe or act on the page: a plain form, for administrators, and the list of what would be done."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.capacity.models import Pool
from console.clusters.models import Cluster
from tests.pages import world

OBSERVE, ACT = Cluster.Mode.OBSERVE, Cluster.Mode.ACT


def page_of(client: Client, cluster: Cluster) -> str:
    return client.get(f"/clusters/{cluster.pk}").content.decode()


def test_an_observed_cluster_shows_what_would_be_done_and_that_nothing_is_sent(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool, desired=16, mode=OBSERVE)
    page = page_of(vic, cluster)
    assert "Observing: nothing is sent." in page
    assert "Launch 1 standard machine (8 GPUs)." in page
    assert "Launch 2 preemptible machines (16 GPUs)." in page
    Cluster.objects.update(mode=ACT)
    assert "What Halftide would do now" not in page_of(vic, cluster)


def test_poll_and_socket_carry_the_same_list(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool, desired=16, mode=OBSERVE)
    epoch = str(world.Stream.objects.get(pk=cluster.stream).epoch)
    frame = vic.get(f"/clusters/{cluster.pk}/updates", {"since": "0", "epoch": epoch}).json()
    [panel] = [row["html"] for row in frame["rows"] if row["kind"] == "panel"]
    assert '<div data-part="would">' in panel
    assert "Launch 2 preemptible machines (16 GPUs)." in panel


def test_a_name_of_a_node_cannot_be_a_program(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool, desired=0, mode=OBSERVE)
    world.a_node(cluster, world.HOSTILE)
    page = page_of(vic, cluster)
    assert "Drain and remove" in page
    assert "<img src=x" not in page


def test_the_form_works_without_scripts_and_asks_for_the_name(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, mode=OBSERVE)
    where = f"/clusters/{cluster.pk}"
    assert "Let Halftide act on aurora-train" in page_of(ada, cluster)
    refused = ada.post(f"{where}/mode", {"mode": "act", "confirm": "yes"})
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "Type the cluster&#x27;s name, aurora-train, to confirm" in page
    assert page.count("Not changed.") == 1
    assert Cluster.objects.get().mode == OBSERVE
    done = ada.post(f"{where}/mode", {"mode": "act", "confirm": "aurora-train"})
    assert (done.status_code, done.headers["Location"]) == (302, where)
    assert "Only observe aurora-train" in page_of(ada, cluster)
    assert ada.post(f"{where}/mode", {"mode": "observe"}).status_code == 302
    assert Cluster.objects.get().mode == OBSERVE


def test_only_an_administrator_sees_the_form_and_may_send_it(pool: Pool, olu: Client, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    for client in (olu, vic):
        assert "data-mode" not in page_of(client, cluster)
        assert client.post(f"/clusters/{cluster.pk}/mode", {"mode": "observe"}).status_code == 403
    assert Cluster.objects.get().mode == ACT


def test_the_form_takes_only_posts(pool: Pool, ada: Client) -> None:
    assert ada.get(f"/clusters/{world.a_cluster(pool).pk}/mode").status_code == 405


def test_a_cordon_of_an_observed_cluster_is_refused_with_a_sentence(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, mode=OBSERVE)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    answer = ada.post(f"/clusters/{cluster.pk}/cordon", {"node": node.pk, "on": "1"}, HTTP_ACCEPT="application/json")
    assert answer.status_code == 409
    assert answer.json()["error"]["message"] == "aurora-train is only observed: nothing is ever sent to it."


def test_the_list_costs_as_many_queries_for_thirty_nodes_as_for_three(pool: Pool, ada: Client) -> None:
    def queries(size: int) -> int:
        cluster = world.a_busy_cluster(pool, f"c{size}", size)
        Cluster.objects.filter(pk=cluster.pk).update(mode=OBSERVE, desired_preemptible_gpus=0)
        page_of(ada, cluster)
        with CaptureQueriesContext(connection) as seen:
            assert "What Halftide would do now" in page_of(ada, cluster)
        return len(seen)

    assert queries(30) == queries(3)


def test_a_long_list_is_cut_and_says_how_much_is_left(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, desired=0, mode=OBSERVE)
    for number in range(23):
        world.a_node(cluster, f"gpu-preemptible-dp-{number:02}")
    page = page_of(ada, cluster)
    assert page.count("data-would=") == 20
    assert "and 4 more." in page
