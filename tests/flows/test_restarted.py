"""A page that stays open while the web server dies under it and comes back."""

import os
import signal
from contextlib import suppress
from typing import Any

import httpx
from playwright.sync_api import BrowserContext, expect

from tests.flows.conftest import cluster_row, sign_in
from tests.installation import Installation, within

EVENTS = 12


def say(stack: Installation, cluster: Any, number: int) -> None:
    """An Event on a node of the cluster, as kubelet writes it."""
    node = stack.rows("SELECT * FROM clusters_node WHERE cluster_id = %s ORDER BY name", cluster)[0]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"restarted-{os.getpid()}-{number}", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node["name"], "uid": node["uid"]},
        "reason": f"SaidOnRestart{number}",  # no run that folds
        "message": f"Said on restart, {number}.",
        "type": "Warning",
        "count": 1,
    }
    address = f"{stack.simulator}/clusters/{cluster}/api/v1/namespaces/default/events"
    httpx.post(address, json=event, timeout=10).raise_for_status()


def said(stack: Installation) -> list[int]:
    rows = stack.rows("SELECT id FROM timeline_entry WHERE reason LIKE 'SaidOnRestart%%' ORDER BY at DESC, id DESC")
    return [row["id"] for row in rows]


def silent(stack: Installation) -> bool:
    with suppress(httpx.HTTPError):
        httpx.get(stack.address, timeout=1)
        return False
    return True


def test_what_is_written_while_the_web_server_restarts_is_on_the_open_page_once_and_in_order(
    stack: Installation, context: BrowserContext
) -> None:
    """mastodon/mastodon PR#17981, aws-samples/remote-swe-agents PR#447: after a gap only what was new came."""
    page = context.new_page()
    sign_in(page, "Olu, operator")
    cluster = cluster_row(stack, "aurora-train")["id"]
    page.goto(f"/clusters/{cluster}/timeline")
    badge, rows = page.locator("[data-badge]"), page.locator(".ev[data-reason^=SaidOnRestart]")
    expect(badge).to_have_text("Live")
    page.evaluate("window.same = true")
    say(stack, cluster, 0)
    expect(rows).to_have_count(1)

    web = stack.pid("console.web")
    assert web
    os.kill(web, signal.SIGKILL)
    assert within(10, lambda: silent(stack))
    for number in range(1, EVENTS + 1):
        say(stack, cluster, number)
    assert within(20, lambda: len(said(stack)) == EVENTS + 1)
    assert silent(stack), "all of it was written while no socket could be open"
    expect(badge).not_to_have_text("Live")

    expect(badge).to_have_text("Live", timeout=60_000)
    expect(rows).to_have_count(EVENTS + 1)
    say(stack, cluster, EVENTS + 1)
    expect(rows).to_have_count(EVENTS + 2)
    shown = [int(pk) for pk in rows.evaluate_all("rows => rows.map((row) => row.dataset.id)")]
    assert shown == said(stack)
    assert page.evaluate("window.same"), "the page was not loaded again"
    listed = page.request.get(f"/clusters/{cluster}/timeline.json?q=on+restart").json()["entries"]
    assert shown == [one["id"] for one in listed]
