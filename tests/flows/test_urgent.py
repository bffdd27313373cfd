"""Urgent work never waits behind bulk (DESIGN 4). Order is read from the simulator's request logs, no clock."""

import os
import signal
from collections.abc import Sequence
from typing import Any

from tests.flows.conftest import cluster_row, settled
from tests.installation import Installation, within

SLOW = ("atlas-serve", "borealis-eval")  # as many as the worker of the slow queue has slots
LIST_SECONDS = 10  # that each request to those takes: less than a list may take, so it is answered and stands in the log
TRIES = 3  # on a machine so busy that a cordon takes longer than a list, the next lists may do


def asked(here: Installation, cluster: Any, verb: str) -> list[str]:
    """Paths that Halftide was answered, in order. A request stands there from when its answer is sent."""
    found = here.control("GET", f"requests?cluster_id={cluster}")
    return [one["path"] for one in found if one["verb"] == verb and one["user_agent"] == "halftide"]


def runs(here: Installation, clusters: Sequence[Any]) -> set[str]:
    """Who lists these clusters just now."""
    query = "SELECT owner FROM clusters_lease WHERE kind = 'relist' AND object_id = ANY(%s) AND until > now()"
    return {row["owner"] for row in here.rows(query, list(clusters))}


def passed_by(here: Installation, quiet: Any, slow: Sequence[Any]) -> bool:
    """Whether a node of the quiet cluster was cordoned while the lists that fill the slow queue's slots still went on."""
    here.rows("UPDATE clusters_cluster SET proved_to = now() - interval '1 hour' WHERE id = ANY(%s) RETURNING id", list(slow))
    assert within(120, lambda: len(runs(here, slow)) == len(slow)), "the slots are not full"
    lists, answered = runs(here, slow), [asked(here, cluster, "list") for cluster in slow]
    answer = here.api("POST", f"/v1/compute/clusters/{quiet}/reclaims", {"num_gpus": 8})
    assert answer.status_code == 202, answer.text
    node = answer.json()["drains"][0]["node_name"]
    assert within(120, lambda: f"/api/v1/nodes/{node}" in asked(here, quiet, "patch")), "never cordoned"
    return [asked(here, cluster, "list") for cluster in slow] == answered and runs(here, slow) == lists


def test_a_drain_begins_while_slow_lists_fill_every_slot_of_the_slow_queue(stack: Installation) -> None:
    """RedHatProductSecurity/osidb PR#1418: long syncs filled all worker slots, and what was urgent waited behind them."""
    quiet, slow = cluster_row(stack, "aurora-train")["id"], [cluster_row(stack, name)["id"] for name in SLOW]
    assert stack.api("PUT", f"/v1/compute/clusters/{quiet}", {"num_preemptible_gpus": 8 * TRIES}).status_code == 200
    assert within(120, lambda: settled(stack), 0.2)
    watch = stack.pid("manage watch")
    assert watch is not None
    os.kill(watch, signal.SIGSTOP)  # so that the slow queue lists
    try:
        for cluster in slow:
            stack.control("POST", "faults", {"cluster_id": str(cluster), "kind": "delay", "seconds": LIST_SECONDS})
        assert any(passed_by(stack, quiet, slow) for _ in range(TRIES))
    finally:
        for cluster in slow:
            stack.control("DELETE", f"faults?cluster_id={cluster}")
        os.kill(watch, signal.SIGCONT)
