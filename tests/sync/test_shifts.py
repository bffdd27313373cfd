"""Who may take over whose clusters, and when."""

import os
import subprocess
import sys

import pytest

from console.clusters import leases
from console.clusters.models import Cluster
from console.kube.kubeconfig import Connection
from console.sync.shifts import LEASE, census, died_here, neighbourhood
from tests.sync.world import new_cluster


def dead() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def connected(db: None) -> Cluster:
    return new_cluster(kubeconfig=Connection("http://127.0.0.1:1").to_kubeconfig("aurora-train"))


def test_a_lease_of_a_process_that_died_beside_us_is_free_at_once(connected: Cluster) -> None:
    assert leases.take(LEASE, connected.pk, f"{neighbourhood()}:{dead()}:abc")
    assert census()[1] == set()
    assert leases.take(LEASE, connected.pk, "the next")


OTHERS = {
    "alive": f"{neighbourhood()}:{os.getpid()}:abc",
    "dead elsewhere": f"elsewhere:1:{dead()}:abc",
    "a word": "watcher",
    "nothing": "::",
    "letters": "a:b:c",
}


@pytest.mark.parametrize("owner", OTHERS.values(), ids=OTHERS)
def test_any_other_lease_stands_until_it_ends(connected: Cluster, owner: str) -> None:
    assert leases.take(LEASE, connected.pk, owner)
    assert census()[1] == {connected.pk}
    assert not died_here(owner)


def test_a_cluster_without_an_api_is_nobodys(db: None) -> None:
    new_cluster()
    assert census() == ({}, set())
