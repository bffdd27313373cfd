"""The Capacity page: what fleet operators see and do, and that nobody else does; the preview that every viewer may ask for."""

import re
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.accounts.models import AuditRow, Role
from console.capacity import enqueue
from console.capacity.models import Automation, Drain, Pool, Quota, Reclaim, Wait
from console.capacity.reclaims import previewing
from console.capacity.reclaims.budgets import Budgets
from console.clusters.models import Cluster, ComputeClass, Machine, Pod
from console.timeline.models import Entry
from tests.pages import world

JSON = {"HTTP_ACCEPT": "application/json"}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hints to workers, and no Kubernetes but what a test says."""
    monkeypatch.setattr(enqueue, "enqueue", lambda *_: True)
    monkeypatch.setattr(
        previewing, "read_budgets", lambda cluster, names: Budgets(unknown="The Kubernetes API cannot be reached.")
    )


def text(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content[:800]
    return str(answer.content.decode())


def a_pod(cluster: Cluster, node: str, name: str = "train-0", **more: object) -> Pod:
    fields = {"grace_seconds": 30, "started_at": timezone.now() - timedelta(hours=1), **more}
    return Pod.objects.create(
        cluster=cluster, uid=str(uuid.uuid4()), namespace="ml", name=name, node_name=node, phase="Running", **fields
    )


def waits(cluster: Cluster, machines: int) -> None:
    Wait.objects.create(cluster=cluster, since=timezone.now(), preemptible=machines)


# Who


@pytest.mark.parametrize("path", ["/capacity", "/capacity/parts", "/capacity/would"])
def test_it_is_for_fleet_operators_and_others_do_not_even_see_the_way(pool: Pool, olu: Client, ada: Client, path: str) -> None:
    cluster = world.a_cluster(pool)
    assert 'href="/capacity"' not in text(olu.get("/"))
    assert 'href="/capacity"' in text(ada.get("/"))
    refused = text(olu.get(path), 403)
    assert "fleet operators" in refused
    assert cluster.name not in refused


def test_a_fleet_operator_without_a_role_in_a_project_sees_what_it_holds_but_no_way_into_it(pool: Pool) -> None:
    cluster = world.a_cluster(pool, "borealis-eval", "borealis")
    client = world.browser(world.a_person("flo", Role.VIEWER, "aurora", fleet=True))
    page = text(client.get("/capacity"))
    assert "borealis-eval" in page
    assert f'href="/clusters/{cluster.pk}"' not in page


# What it says


def test_the_bar_of_a_pool_adds_up_to_all_of_it(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, desired=32)
    world.a_node(cluster, "steady", preemptible=False)
    world.a_node(cluster, "held")
    world.a_drain(world.a_node(cluster, "going"))
    node = world.a_node(cluster, "booting")
    Machine.objects.filter(pk=node.machine_id).update(state=Machine.State.BOOTING, first_ready_at=None)
    node.delete()
    page = text(ada.get("/capacity"))
    for share in (
        'seg-std" x="0%" width="3.125%"',
        'seg-boot" x="6.25%"',
        'seg-drain" x="9.375%"',
        'seg-others" x="12.5%" width="75%"',
    ):
        assert share in page
    assert 'seg-free" x="87.5%" width="12.5%"' in page
    assert "The provider has not said yet what it has" in page


def test_what_waits_is_said_with_since_and_next_try(pool: Pool, ada: Client) -> None:
    now = timezone.now()
    Pool.objects.update(seen_at=now, waiting_since=now, next_try_at=now + timedelta(seconds=40), free_machines=0, owed_machines=2)
    cluster = world.a_cluster(pool, desired=64)
    waits(cluster, 5)
    page = text(ada.get("/capacity"))
    assert "40 wait" in page
    assert f"No free node since {now:%H:%M}, next try {now + timedelta(seconds=40):%H:%M:%S} UTC" in page
    assert 'data-label="Owed">16<' in page
    assert f"40 waiting since {now:%H:%M}" in page, "and why, cluster by cluster"
    assert "24 held by pace" in page, "the rest of the 64"
    assert "100 %" in page


def test_a_silent_provider_is_said(pool: Pool, ada: Client) -> None:
    now = timezone.now()
    Pool.objects.update(seen_at=now, silent_since=now)
    assert f"The provider does not answer since {now:%H:%M} UTC" in text(ada.get("/capacity"))


def test_each_pool_shows_its_own_clusters_and_the_one_that_waits_first(pool: Pool, ada: Client) -> None:
    other = world.a_pool("us-central-2")
    world.a_cluster(pool, "calm-one", desired=0)
    waits(world.a_cluster(other, "short-one"), 2)
    first = text(ada.get("/capacity"))
    assert "short-one" in first
    assert "calm-one" not in first
    chosen = text(ada.get(f"/capacity?pool={pool.pk}"))
    assert "calm-one" in chosen
    assert "short-one" not in chosen
    for nonsense in ("x", "00000000-0000-4000-8000-000000000009", "%00"):
        assert "short-one" in text(ada.get(f"/capacity?pool={nonsense}"))


def test_nodes_that_went_together_are_counted(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    drains = [world.a_drain(world.a_node(cluster, f"gpu-preemptible-dp-{number}")) for number in range(3)]
    Drain.objects.update(started_at=drains[0].started_at, state=Drain.State.REMOVED)
    assert "3 nodes, <time" in text(ada.get("/capacity"))


def test_a_fleet_with_nothing_in_it_says_what_comes_first(ada: Client) -> None:
    world.an_installation()
    assert "No pools yet" in text(ada.get("/capacity"))
    world.a_pool()
    page = text(ada.get("/capacity"))
    assert "No cluster takes machines from this pool yet" in page
    assert "there is nothing to take back" in page
    assert "None yet. A drill takes nodes back for real" in page


def test_a_thousand_nodes_are_drawn_as_far_as_they_fit_and_counted_beyond(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, desired=1600, allocated_preemptible_gpus=960)
    for number in range(120):
        world.a_node(cluster, f"gpu-preemptible-dp-{number:04x}")
    page = text(ada.get("/capacity"))
    assert page.count('class="cell ') == 96
    assert "and 104 more" in page  # 120 nodes and 80 asked for


def test_names_are_text(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, world.HOSTILE[:63])
    a_pod(cluster, world.a_node(cluster, world.HOSTILE).name, world.HOSTILE)
    for path in ("/capacity", f"/clusters/{cluster.pk}/preview?gpus=8"):
        page = text(ada.get(path))
        assert "<img" not in page
        assert "<svg onload" not in page


def queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as seen:
        answer = client.get(path)
    assert answer.status_code == 200, answer.content[:500]
    return len(seen)


@pytest.mark.parametrize("path", ["/capacity", "/capacity/parts"])
def test_it_asks_as_much_for_one_cluster_as_for_a_hundred(pool: Pool, ada: Client, path: str) -> None:
    first = world.a_busy_cluster(pool, "one", 2)
    Quota.objects.create(project=first.project, gpus=64, set_by="ada", set_at=timezone.now())
    waits(first, 1)
    few = queries(ada, path)
    for number in range(99):
        cluster = world.a_cluster(pool, f"more-{number}", f"project-{number % 10}")
        world.a_drain(world.a_node(cluster, f"node-{number}"))
        waits(cluster, 1)
    for number in range(7):
        world.a_pool(f"region-{number}")
    assert queries(ada, path) == few
    assert few <= 30


def test_the_poll_answers_the_same_parts_as_the_page(pool: Pool, ada: Client) -> None:
    world.a_busy_cluster(pool, "one", 3)
    page, answer = text(ada.get("/capacity")), ada.get("/capacity/parts", **JSON).json()
    assert set(answer["parts"]) >= {"facts", "pools", "holders", "drills"}
    for html in answer["parts"].values():
        assert html in page
    assert not any("<form" in html or "csrf" in html for html in answer["parts"].values()), "controls are never redrawn"


# Taking back


def test_a_drill_leads_to_its_report_and_a_reclaim_to_its_cluster(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    for name in ("a", "b", "c"):
        world.a_node(cluster, name)
    answer = ada.post(f"/clusters/{cluster.pk}/take", {"gpus": "16", "kind": "drill"})
    drill = Reclaim.objects.get()
    assert (drill.drill, drill.num_gpus, drill.asked_by) == (True, 16, "ada")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/clusters/{cluster.pk}/drills/{drill.pk}")
    page = text(ada.get("/capacity"))
    assert f'href="/clusters/{cluster.pk}/drills/{drill.pk}"' in page
    assert f"16 GPUs of {cluster.name}, started by ada" in page
    assert "2 nodes cordoned and announced" in page
    again = ada.post(f"/clusters/{cluster.pk}/take", {"gpus": "8", "kind": "reclaim"})
    assert again.headers["Location"] == f"/clusters/{cluster.pk}"
    assert Reclaim.objects.filter(drill=False).count() == 1


def test_a_number_that_cannot_be_is_refused_beside_what_was_typed(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "a")
    for gpus, says in (
        ("12", "8 or 16, not 12"),
        ("16", "has 8 preemptible GPUs"),
        ("many", "whole number"),
        ("0", "At least one node"),
    ):
        for answer in (
            ada.post(f"/clusters/{cluster.pk}/take", {"gpus": gpus}),
            ada.get(f"/clusters/{cluster.pk}/preview?gpus={gpus}"),
        ):
            page = text(answer, answer.status_code)
            assert answer.status_code in (400, 422)
            assert says in page
            assert f'value="{gpus}"' in page
    assert not Drain.objects.exists()


def test_only_a_fleet_operator_takes_and_sets(pool: Pool, olu: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "a")
    assert olu.post(f"/clusters/{cluster.pk}/take", {"gpus": "8"}).status_code == 403
    assert olu.post("/capacity/quota", {"project": cluster.project_id, "gpus": "8"}).status_code == 403
    assert not Drain.objects.exists()
    assert not Quota.objects.exists()


@pytest.mark.parametrize("path", ["/capacity/quota", "/clusters/{}/take"])
def test_what_changes_something_takes_only_posts(pool: Pool, ada: Client, path: str) -> None:
    assert ada.get(path.format(world.a_cluster(pool).pk)).status_code == 405


# Preview


def test_a_viewer_sees_what_would_be_lost_and_cannot_begin_it(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "busy")
    a_pod(cluster, node.name, "slow", grace_seconds=3600)
    a_pod(cluster, node.name, "saved", last_checkpoint=timezone.now() - timedelta(minutes=42))
    page = text(vic.get(f"/clusters/{cluster.pk}/preview?gpus=8"))
    assert "asks for 1 h of grace and gets 5:00" in page
    assert "unknown" in page
    assert re.search(r">42:\d\d<", page), "since its checkpoint, to the minute"
    assert "Budgets unknown. The Kubernetes API cannot be reached." in page
    assert '<form method="post" action="/clusters' not in page
    assert "Start drill" not in page


def test_a_cluster_of_another_project_has_no_preview(pool: Pool, vic: Client) -> None:
    other = world.a_cluster(pool, "borealis-eval", "borealis")
    assert vic.get(f"/clusters/{other.pk}/preview?gpus=8").status_code == 404


def test_budgets_are_named_with_what_they_allow(pool: Pool, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = world.a_cluster(pool)
    pod = a_pod(cluster, world.a_node(cluster, "busy").name)
    said = Budgets({("ml", "infer-rt"): 0}, {pod.uid: (("ml", "infer-rt"),)}, round_trip=0.01)
    monkeypatch.setattr(previewing, "read_budgets", lambda cluster, names: said)
    page = text(ada.get(f"/clusters/{cluster.pk}/preview?gpus=8"))
    assert "Budget <b>infer-rt</b> allows 0 of 1: 1 overridden" in page
    assert "All pods told about 0.07 s after it begins" in page


def test_the_card_shows_the_same_nodes_as_the_page_and_asks_before_it_begins(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    a_pod(cluster, world.a_node(cluster, "busy").name)
    world.a_node(cluster, "idle")
    query = f"cluster={cluster.pk}&gpus=8&kind=drill"
    card = text(ada.get(f"/capacity/would?{query}", HTTP_HX_REQUEST="true"))
    assert "This node goes" in card
    assert "idle" in card
    assert "busy" not in card
    assert "Start drill, 8 GPUs" in card
    assert "cannot be called off" in card
    refused = text(ada.get(f"/capacity/would?cluster={cluster.pk}&gpus=12", HTTP_HX_REQUEST="true"))
    assert "8 or 16, not 12" in refused
    assert "Start drill" not in refused
    plain = ada.get(f"/capacity/would?{query}")
    assert (plain.status_code, plain.headers["Location"]) == (302, f"/clusters/{cluster.pk}/preview?{query}")


# By name


def trouble(cluster: Cluster) -> None:
    """One node of each kind that cannot be taken back."""
    world.a_node(cluster, "steady", preemptible=False)
    world.a_drain(world.a_node(cluster, "going"))
    foreign = world.a_node(cluster, "foreign")
    machine, foreign.machine = foreign.machine, None
    foreign.save()
    assert machine is not None
    machine.delete()


CANNOT = [
    ("nowhere", "has no node nowhere. Take the names from the cluster&#x27;s Nodes page."),
    ("steady", "steady is a standard node: it is never taken back. Name preemptible nodes."),
    ("going", "going is draining already, gone by "),
    ("foreign", "foreign is no machine of Halftide&#x27;s. Drain it with kubectl"),
    ("NOT,NAMES", "None of these nodes can be taken back. &quot;NOT&quot; cannot be the name of a node."),
    ("", "Name the nodes that would go"),
    (" ; ,", "Name the nodes that would go"),
    ("n\x00l", "cannot be the name of a node"),
    (",".join(f"n{number}" for number in range(101)), "Name 1 to 100 nodes at once, not 101"),
]


def test_named_nodes_are_previewed_and_exactly_those_go(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    for name in ("a", "b", "c"):
        world.a_node(cluster, name)
    a_pod(cluster, "c", "busy")
    page = text(ada.get(f"/clusters/{cluster.pk}/preview?nodes=c,a&kind=drill"))
    assert f"If {cluster.name} lost 16 GPUs now" in page
    assert page.index('id="n1">c<') < page.index('id="n2">a<')
    assert 'id="n3"' not in page
    assert 'name="nodes" value="c,a"' in page
    for name, ticked in (("a", " checked"), ("b", ""), ("c", " checked")):
        assert f'<input type="checkbox" name="nodes" value="{name}"{ticked}>' in page
    answer = ada.post(f"/clusters/{cluster.pk}/take", {"by": "nodes", "nodes": "c,a", "kind": "drill", "gpus": "8"})
    drill = Reclaim.objects.get()
    assert answer.headers["Location"] == f"/clusters/{cluster.pk}/drills/{drill.pk}"
    assert (drill.drill, drill.num_gpus) == (True, None)
    assert set(Drain.objects.values_list("node_name", flat=True)) == {"a", "c"}
    assert f"16 GPUs of {cluster.name}, started by ada" in text(ada.get("/capacity"))


def test_names_are_read_as_people_list_them_ticked_or_written(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    for name in ("a", "b", "c", "d"):
        world.a_node(cluster, name)
    query = urlencode({"by": "nodes", "nodes": ["d", "b\r\n a;b ,"]}, doseq=True)
    assert 'name="nodes" value="d,b,a"' in text(ada.get(f"/clusters/{cluster.pk}/preview?{query}"))
    card = text(ada.get(f"/capacity/would?cluster={cluster.pk}&{query}", HTTP_HX_REQUEST="true"))
    assert "These 3 nodes go" in card
    assert "all of them or none" in card
    assert f'href="/clusters/{cluster.pk}/preview?kind=drill&amp;nodes=d%2Cb%2Ca"' in card


@pytest.mark.parametrize(("typed", "says"), CANNOT, ids=[typed[:8] for typed, _ in CANNOT])
def test_a_node_that_cannot_go_is_said_with_what_to_do_and_none_goes(pool: Pool, ada: Client, typed: str, says: str) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "fine")
    trouble(cluster)
    before = Drain.objects.count()
    for also in ("", "fine,") if typed.isalpha() else ("",):
        form = {"by": "nodes", "nodes": also + typed, "kind": "reclaim"}
        for answer in (
            ada.get(f"/clusters/{cluster.pk}/preview", form),
            ada.post(f"/clusters/{cluster.pk}/take", form),
        ):
            page = text(answer, answer.status_code)
            assert answer.status_code in (400, 422)
            assert says in page
            assert "Reclaim, " not in page, "no button to go on with"
            if typed.isalpha():
                assert f"{typed}</textarea>" in page
            assert f'value="fine"{" checked" if also else ""}>' in page
    assert Drain.objects.count() == before
    assert not Reclaim.objects.exists()
    assert not Entry.objects.filter(reason="NoticeRefused").exists(), "a person who sees the refusal is no lost notice"


def test_a_node_that_went_meanwhile_keeps_back_all_the_others(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "a")
    other = world.a_node(cluster, "b")
    form = {"by": "nodes", "nodes": "a,b", "kind": "reclaim"}
    assert "Reclaim, 16 GPUs" in text(ada.get(f"/clusters/{cluster.pk}/preview", form))
    world.a_drain(other)
    page = text(ada.post(f"/clusters/{cluster.pk}/take", form), 422)
    assert "b is draining already" in page
    assert "Leave it out." in page
    assert Drain.objects.count() == 1


def test_a_form_that_is_sent_twice_takes_once(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    for name in ("a", "b"):
        world.a_node(cluster, name)
    found = re.search(r'name="key" value="([^"]+)"', text(ada.get(f"/clusters/{cluster.pk}/preview?gpus=8")))
    assert found
    form = {"by": "gpus", "gpus": "8", "kind": "drill", "key": found[1]}
    first, second = (ada.post(f"/clusters/{cluster.pk}/take", form) for _ in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    assert Drain.objects.count() == 1


def test_a_node_of_the_list_leads_to_its_preview(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "a")
    trouble(cluster)
    page = text(vic.get(f"/clusters/{cluster.pk}/nodes"))
    assert re.findall(r'href="(/clusters/[^"]+/preview[^"]+)"', page) == [f"/clusters/{cluster.pk}/preview?nodes=a"]
    found = text(vic.get(f"/clusters/{cluster.pk}/preview?nodes=a"))
    assert 'id="n1">a<' in found
    assert "Start drill" not in found


@pytest.mark.parametrize("by", ["gpus={}", "nodes={}"])
def test_a_preview_asks_as_much_for_one_node_as_for_fifty(pool: Pool, ada: Client, by: str) -> None:
    cluster = world.a_cluster(pool)
    names = [f"node-{number:02}" for number in range(50)]
    for name in names:
        a_pod(cluster, world.a_node(cluster, name).name)

    def asked(number: int) -> int:
        value = number * 8 if by.startswith("gpus") else ",".join(names[:number])
        return queries(ada, f"/clusters/{cluster.pk}/preview?{by.format(value)}")

    assert asked(1) == asked(50) <= 20


# Quotas and the switch


def test_a_quota_is_set_given_back_and_left_a_trail(pool: Pool, ada: Client) -> None:
    project = world.a_cluster(pool, desired=64).project
    assert ada.post("/capacity/quota", {"project": project.pk, "gpus": "32"}).status_code == 302
    page = text(ada.get("/capacity"))
    assert 'value="32"' in page
    assert "more is asked for than the quota" in page
    assert ada.post("/capacity/quota", {"project": project.pk, "gpus": " "}).status_code == 302
    assert not Quota.objects.exists()
    assert AuditRow.objects.filter(action="project.quota.set").count() == 2


def test_a_quota_that_is_no_number_stays_typed_beside_the_sentence(pool: Pool, ada: Client) -> None:
    project = world.a_cluster(pool).project
    for typed, says in (("lots", "whole number"), ("-8", "cannot be negative"), ("9999999", "from 0 to 1,000,000")):
        page = text(ada.post("/capacity/quota", {"project": project.pk, "gpus": typed}), 422 if typed == "9999999" else 400)
        assert says in page
        assert f'value="{typed}"' in page
    assert ada.post("/capacity/quota", {"project": "x", "gpus": "8"}).status_code == 404


def test_the_switch_is_here_with_its_reason(pool: Pool, ada: Client) -> None:
    world.a_cluster(pool, desired=64)
    assert "Stop automation" in text(ada.get("/capacity"))
    ada.post("/automation", {"on": "0", "why": "rack move", "next": "/capacity"})
    page = text(ada.get("/capacity"))
    assert "Automation is stopped" in page
    assert "“rack move”" in page
    assert "blocked: automation is stopped by ada" in page
    assert ada.post("/automation", {"on": "1", "next": "/capacity"}).headers["Location"] == "/capacity"
    assert Automation.objects.get().on


def test_an_observed_cluster_is_seen_and_offered_to_nobody(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool, mode=Cluster.Mode.OBSERVE)
    world.a_node(cluster, "a")
    page = text(ada.get("/capacity"))
    assert f"{cluster.name}, 8 GPUs" not in page
    refused = ada.post(f"/clusters/{cluster.pk}/take", {"gpus": "8"})
    assert refused.status_code == 409
    assert "only observed" in text(refused, 409)


def test_standard_nodes_are_never_offered(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    world.a_node(cluster, "steady", preemptible=False)
    assert Machine.objects.get().compute_class == ComputeClass.STANDARD
    assert "there is nothing to take back" in text(ada.get("/capacity"))
