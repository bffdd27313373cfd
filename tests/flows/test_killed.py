"""Whatever dies, the drain ends in time, once, and the target is reached. Outcomes are read beside the console's own code."""

import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import redis
from playwright.sync_api import BrowserContext

from tests.flows.conftest import cluster_row, settled, sign_in
from tests.installation import Installation, within

ALLOWANCE = timedelta(seconds=15)  # beyond the deadline (DESIGN 16, guarantee 2)


@pytest.fixture
def reclaim(stack: Installation, context: BrowserContext) -> Iterator[Any]:
    """Reclaims GPUs as a fleet operator would, by the page's own form, and hands back the new drains."""
    page = context.new_page()
    sign_in(page, "Olu, operator")
    cookies = {cookie["name"]: cookie["value"] for cookie in context.cookies(stack.address)}
    assert within(60, lambda: settled(stack))
    target(stack, 32)
    assert within(90, lambda: settled(stack) and quiet(stack))
    known = {row["id"] for row in stack.rows("SELECT id FROM capacity_drain")}

    def ask(gpus: int) -> list[dict[str, Any]]:
        cluster = cluster_row(stack, "aurora-train")["id"]
        answer = httpx.post(
            f"{stack.address}/clusters/{cluster}/reclaim",
            data={"gpus": gpus, "csrfmiddlewaretoken": page.locator("[name=csrfmiddlewaretoken]").first.input_value()},
            cookies=cookies,
            headers={"Accept": "application/json", "Referer": stack.address},
            timeout=20,
        )
        answer.raise_for_status()
        return [row for row in stack.rows("SELECT * FROM capacity_drain") if row["id"] not in known]

    page.goto(f"/clusters/{cluster_row(stack, 'aurora-train')['id']}")
    yield ask
    assert within(90, lambda: settled(stack)), "it refills"


def quiet(stack: Installation) -> bool:
    """No drain is open, and every preemptible node of the cluster has something to lose."""
    [found] = stack.rows(
        "SELECT (SELECT count(*) FROM capacity_drain WHERE state NOT IN ('removed', 'stopped')) AS open,"
        " (SELECT count(*) FROM clusters_node n JOIN clusters_cluster c ON c.id = n.cluster_id"
        "  WHERE c.name = 'aurora-train' AND n.compute_class = 'preemptible' AND NOT EXISTS (SELECT 1 FROM clusters_pod p"
        "  WHERE p.cluster_id = c.id AND p.node_name = n.name AND p.phase = 'Running' AND NOT p.daemonset)) AS idle"
    )
    return bool(found["open"] == 0 and found["idle"] == 0)


def target(stack: Installation, gpus: int) -> None:
    cluster = cluster_row(stack, "aurora-train")["id"]
    answer = stack.api("PUT", f"/v1/compute/clusters/{cluster}", {"num_preemptible_gpus": gpus})
    assert answer.status_code == 200, answer.text


def ended_well(stack: Installation, asked: list[dict[str, Any]]) -> None:
    """Each node gone by its deadline + 15 s, announced once in the ledger and in Kubernetes, every pod told and judged."""
    ids = [drain["id"] for drain in asked]

    def states() -> set[str]:
        return {row["state"] for row in stack.rows("SELECT state FROM capacity_drain WHERE id = ANY(%s)", ids)}

    assert within(60, lambda: states() == {"removed"}, 0.2), states()
    for drain in stack.rows("SELECT * FROM capacity_drain WHERE id = ANY(%s)", ids):
        assert drain["removed_at"] <= drain["deadline"] + ALLOWANCE
        entries = stack.rows("SELECT * FROM timeline_entry WHERE drain_id = %s AND reason = 'TogetherPreempted'", drain["id"])
        assert len(entries) == 1
        events = [
            event
            for event in kubernetes(stack, drain, "/api/v1/events")["items"]
            if event["reason"] == "TogetherPreempted" and event["involvedObject"]["uid"] == drain["node_uid"]
        ]
        assert len(events) == 1
        verdicts = stack.rows("SELECT * FROM capacity_podverdict WHERE drain_id = %s", drain["id"])
        assert verdicts
        assert all(row["told_at"] is not None and row["verdict"] != "stopping" for row in verdicts)
        names = [node["metadata"]["name"] for node in kubernetes(stack, drain, "/api/v1/nodes")["items"]]
        assert drain["node_name"] not in names


def kubernetes(stack: Installation, drain: dict[str, Any], path: str) -> Any:
    return httpx.get(f"{stack.simulator}/clusters/{drain['cluster_id']}{path}", timeout=10).raise_for_status().json()


def picture(stack: Installation, cluster: Any) -> list[dict[str, Any]]:
    """How fresh the console's picture is, and who holds what: why a change is not there yet."""
    return [
        *stack.rows("SELECT now(), proved_to, unreachable_since, unreachable_why FROM clusters_cluster WHERE id = %s", cluster),
        *stack.rows("SELECT * FROM clusters_lease WHERE object_id = %s", cluster),
        *stack.rows("SELECT pid, state, wait_event, left(query, 120) AS query FROM pg_stat_activity WHERE state <> 'idle'"),
    ]


def telling(stack: Installation, asked: list[dict[str, Any]]) -> bool:
    ids = [drain["id"] for drain in asked]
    rows = stack.rows("SELECT state FROM capacity_drain WHERE id = ANY(%s)", ids)
    return any(row["state"] in ("announced", "terminating") for row in rows)


def test_a_worker_killed_in_the_middle_of_a_drain_costs_nothing(stack: Installation, reclaim: Any) -> None:
    """With late acknowledgement alone a killed worker loses its work (celery/celery#1628); the row brings it back."""
    asked = reclaim(16)
    assert len(asked) == 2
    assert within(10, lambda: telling(stack, asked))
    stack.signal_all("-n urgent", signal.SIGKILL)
    ended_well(stack, asked)


def test_the_watch_killed_in_the_middle_of_a_drain_costs_nothing(stack: Installation, reclaim: Any) -> None:
    asked = reclaim(8)
    assert within(10, lambda: telling(stack, asked))
    stack.signal_all("-m manage watch", signal.SIGKILL)
    ended_well(stack, asked)


def test_flushing_all_of_redis_between_a_commit_and_its_delivery_costs_two_seconds(stack: Installation) -> None:
    """The queue is only a hint: what needs work says so in its own row."""
    target(stack, 32)
    assert within(60, lambda: settled(stack))
    with redis.Redis.from_url(stack.runtime()["REDIS_URL"]) as client:
        stack.signal_all("-n urgent", signal.SIGSTOP)
        try:
            target(stack, 40)
            time.sleep(0.2)  # the hint is in the queue now, and nobody takes it
            client.flushall()
        finally:
            stack.signal_all("-n urgent", signal.SIGCONT)
    assert within(45, lambda: settled(stack)), cluster_row(stack, "aurora-train")


def test_with_the_watch_frozen_celery_brings_every_change_into_the_console_once(stack: Installation) -> None:
    """`relist_cluster` goes through the same services, so that nothing is doubled when the watch comes back."""
    assert within(60, lambda: settled(stack))
    cluster = cluster_row(stack, "aurora-train")
    node = stack.rows("SELECT * FROM clusters_node WHERE cluster_id = %s AND compute_class = 'preemptible'", cluster["id"])[0]
    api = f"{stack.simulator}/clusters/{cluster['id']}"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"frozen-{os.getpid()}", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node["name"], "uid": node["uid"]},
        "reason": "SaidWhileFrozen",
        "message": "The watch did not hear this.",
        "type": "Warning",
        "count": 1,
    }

    def said() -> list[dict[str, Any]]:
        return stack.rows("SELECT * FROM timeline_entry WHERE reason = 'SaidWhileFrozen'")

    stack.signal_all("-m manage watch", signal.SIGSTOP)
    try:
        httpx.post(f"{api}/api/v1/namespaces/default/events", json=event, timeout=10).raise_for_status()
        patch = {"spec": {"unschedulable": True}}
        httpx.patch(
            f"{api}/api/v1/nodes/{node['name']}",
            json=patch,
            headers={"Content-Type": "application/merge-patch+json"},
            timeout=10,
        ).raise_for_status()

        def seen() -> bool:
            [row] = stack.rows("SELECT unschedulable FROM clusters_node WHERE id = %s", node["id"])
            return bool(said()) and bool(row["unschedulable"])

        assert within(80, seen, 0.5), (said(), picture(stack, cluster["id"]))
    finally:
        stack.signal_all("-m manage watch", signal.SIGCONT)
    httpx.patch(
        f"{api}/api/v1/nodes/{node['name']}",
        json={"spec": {"unschedulable": None}},
        headers={"Content-Type": "application/merge-patch+json"},
        timeout=10,
    ).raise_for_status()
    assert within(20, lambda: not stack.rows("SELECT 1 FROM clusters_node WHERE id = %s AND unschedulable", node["id"]))
    assert len(said()) == 1
