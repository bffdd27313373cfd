"""A cluster that was connected: its nodes are its own, and Halftide asks for none of them."""

import uuid
from typing import Any

from django.test import Client
from django.utils import timezone

from console.clusters.models import Cluster, ComputeClass, Node
from tests.pages.world import a_cluster


def test_a_connected_cluster_has_its_pages_though_nothing_is_asked_for(pool: Any, ada: Client) -> None:
    cluster = a_cluster(pool, "prod", desired=0, mode=Cluster.Mode.OBSERVE, status=Cluster.Status.READY)
    Cluster.objects.filter(pk=cluster.pk).update(desired_standard_gpus=0, allocated_standard_gpus=8)
    Node.objects.create(
        cluster=cluster,
        uid=str(uuid.uuid4()),
        name="their-node-1",
        compute_class=ComputeClass.STANDARD,
        gpus=8,
        ready=True,
        created_at=timezone.now(),
        resource_version="1",
    )
    for address in ("/", f"/clusters/{cluster.pk}", "/capacity"):
        page = ada.get(address)
        assert page.status_code == 200, address
    assert "Observe only" in ada.get(f"/clusters/{cluster.pk}").content.decode()
