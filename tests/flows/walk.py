"""Every page there is, with something on it: what a walk over all of them opens."""

from typing import Any

from playwright.sync_api import Page

from tests.flows.conftest import cluster_row
from tests.installation import Installation, within

# Addresses that are no page: parts of one, files, answers to forms and to machines.
NO_PAGES = """healthz readyz metrics moved_static_file automation capacity_parts capacity_would quota clusters_parts
new_cluster_preview timeline_rows lately looked timeline_csv timeline_json updates chart take scripts script_restore script_check
target mode cordon reclaim switch_webhook test_webhook renew_secret delete_webhook resend_message"""


def pages(stack: Installation, page: Page) -> dict[str, str]:
    """Address by the name of its route, for somebody who may do everything. Makes what is not there by itself: a drill and a
    webhook with a message that is on its way to where there is nothing."""
    cluster = cluster_row(stack, "aurora-train")["id"]
    here = f"/clusters/{cluster}"
    webhook = _a_webhook(stack, page)
    answer = stack.api("POST", f"/v1/compute{here}/reclaims", {"num_gpus": 8, "drill": True})
    answer.raise_for_status()
    assert within(60, lambda: _some(stack, "capacity_podverdict"))
    [entry] = stack.rows("SELECT max(e.id) AS id FROM timeline_entry e JOIN capacity_drain d ON d.id = e.drain_id")
    page.goto(f"{here}/workloads")
    return {
        "clusters": "/",
        "search": "/search?q=aurora",
        "capacity": "/capacity",
        "new_cluster": "/clusters/new",
        "cluster": here,
        "nodes": f"{here}/nodes",
        "workloads": f"{here}/workloads",
        "workload": page.locator("[data-workloads] a.name").first.get_attribute("href") or "",
        "planner": f"{here}/planner?size=3.5&bandwidth=14.6&step=90&slower=2",
        "timeline": f"{here}/timeline",
        "entry": f"{here}/timeline/{entry['id']}",
        "drill": f"{here}/drills/{answer.json()['reclaim_id']}",
        "preview": f"{here}/preview?gpus=8",
        "script": f"{here}/scripts/node_init",
        "webhooks": "/webhooks",
        "new_webhook": "/webhooks/new",
        "webhook": webhook,
        "edit_webhook": f"{webhook}/edit",
        "webhook_message": f"{webhook}/messages/{_some(stack, 'webhooks_delivery')}",
    }


def _a_webhook(stack: Installation, page: Page) -> str:
    page.goto("/webhooks/new")
    page.get_by_label("Name").fill("on-call channel")
    page.get_by_label("Address").fill("http://127.0.0.1:1025/services/T04/B07/9fK2aQ7x")
    page.get_by_role("button", name="Add webhook").click()
    page.get_by_text("shown this once").wait_for()
    address = page.url
    page.get_by_role("button", name="Send a test").click()
    assert within(20, lambda: _some(stack, "webhooks_delivery"))
    return address.removeprefix(stack.address)


def _some(stack: Installation, table: str) -> Any:
    found = stack.rows(f"SELECT id FROM {table} ORDER BY id DESC LIMIT 1")
    return found[0]["id"] if found else None
