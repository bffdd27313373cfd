"""The demo's card is ticked off by the ledger, and is nowhere but in the demo."""

from typing import Any

from django.test import Client
from django.utils import timezone

from console.capacity.models import Pool, Reclaim
from tests.pages import world


def done(client: Client, address: str) -> dict[str, bool]:
    page = client.get(address).content.decode()
    steps = page.split('data-try-step="')[1:]
    return {step.partition('"')[0]: " data-done>" in step.partition("<svg")[0] for step in steps}


def test_what_was_done_is_ticked_off(pool: Pool, ada: Client, settings: Any) -> None:
    settings.DEMO = True
    cluster = world.a_cluster(pool)
    node = world.a_node(cluster, "gpu-preemptible-dp-1")
    address = f"/clusters/{cluster.pk}"
    assert done(ada, address) == {"target": False, "reclaim": False, "drain": False, "kubectl": False}
    assert "--context aurora-train cordon gpu-preemptible-dp-1" in ada.get(address).content.decode()
    world.an_entry(cluster, reason="TargetChanged", data={"from": 8, "to": 32})
    drain = world.a_drain(node)
    world.an_entry(cluster, reason="TogetherPreempted", drain_id=drain.pk)  # by other tenants' demand
    assert not any(done(ada, address).values())
    world.an_entry(cluster, reason="TargetChanged", data={"from": 32, "to": 64})
    world.an_entry(cluster, reason="NodeCordoned")
    reclaim = Reclaim.objects.create(cluster=cluster, asked_at=timezone.now(), asked_by="ada", body_hash="", answer={})
    cluster.drains.update(reclaim=reclaim)
    assert done(ada, address) == {"target": True, "reclaim": True, "drain": False, "kubectl": True}


def test_it_is_for_who_may_in_the_demo_until_it_is_put_away(pool: Pool, vic: Client, olu: Client, settings: Any) -> None:
    cluster = world.a_cluster(pool)
    address = f"/clusters/{cluster.pk}"
    settings.DEMO = True
    assert done(vic, address) == {}
    assert list(done(olu, address)) == ["target", "drain"]  # no node yet, and no right to reclaim
    olu.cookies["halftide_try"] = "off"
    assert done(olu, address) == {}
    del olu.cookies["halftide_try"]
    settings.DEMO = False
    assert done(olu, address) == {}
