"""The whole line in a real browser: sign in, drag the target, see nodes come live, reclaim, see each pod's end, see it refill."""

import re
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from tests.flows.conftest import cluster_row, open_cluster, settled, sign_in
from tests.installation import Installation, within

FIGURE = ".figure"


def drag(page: Page, gpus: int) -> None:
    """Move the thumb with the mouse, in a few steps as a hand does, and let go."""
    slider = page.locator("input#target")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    low, high = 0, int(slider.get_attribute("max") or 0)
    value = int(slider.input_value())
    inset = 8  # half a thumb on each side

    def place(at: int) -> float:
        return float(box["x"] + inset + (box["width"] - 2 * inset) * (at - low) / (high - low))

    middle = box["y"] + box["height"] / 2
    page.mouse.move(place(value), middle)
    page.mouse.down()
    for share in (0.25, 0.5, 0.75, 1):
        page.mouse.move(place(round(value + (gpus - value) * share)), middle)
    page.mouse.up()


def targets_sent(page: Page) -> list[str]:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if request.url.endswith("/target") else None)
    return sent


def test_drag_from_8_to_64_then_reclaim_16_and_it_refills(
    stack: Installation, context: BrowserContext, complaints: list[str]
) -> None:
    train = cluster_row(stack, "aurora-train")["id"]
    stack.api("PUT", f"/v1/compute/clusters/{train}", {"num_preemptible_gpus": 8}).raise_for_status()  # what other flows left
    assert within(90, lambda: settled(stack) and len(machines(stack, train)) == 1), machines(stack, train)
    old = {row["node_name"] for row in machines(stack, train)}
    page = context.new_page()
    sign_in(page, "Ada, admin")
    cluster = open_cluster(page, stack, "aurora-train")
    expect(page.locator(FIGURE)).to_have_text("8 allocated of 8 desired")
    sent = targets_sent(page)
    requests: list[str] = []

    drag(page, 64)
    expect(page.locator(FIGURE)).to_contain_text("of 64 desired")
    page.on("request", lambda request: requests.append(request.url))
    expect(page.locator(FIGURE)).to_have_text("64 allocated of 64 desired", timeout=60_000)
    assert len(sent) == 1, "one request for one drag"
    assert "gpus=64" in sent[0]
    names = {row["node_name"] for row in machines(stack, cluster["id"])}
    assert len(names) == 8
    for name in names - old:
        expect(page.locator(".live li.ev", has_text=name).first).to_be_attached()
    assert [url for url in requests if "/updates" in url] == [], "rows arrive by the socket, without a request each"

    # Nodes without pods are taken back first, and a table needs pods: let the training job fill them all.
    assert within(60, lambda: busy_nodes(stack, cluster["id"]) >= names), busy_nodes(stack, cluster["id"])
    before = drains(stack, cluster["id"])
    page.get_by_text(re.compile("Reclaim 8 GPUs now")).click()
    page.get_by_label("GPUs", exact=True).fill("16")
    page.get_by_role("button", name="Reclaim now").click()
    assert within(10, lambda: len(drains(stack, cluster["id"])) == len(before) + 2)
    mine = [one for one in drains(stack, cluster["id"]) if one["id"] not in {known["id"] for known in before}]
    for drain in mine:
        row = page.locator(f'.live li.ev:has([data-drain="{drain["id"]}"])')
        expect(row).to_contain_text("TogetherPreempted", timeout=15_000)
        expect(row.locator(".verdicts tbody tr").first).to_be_attached(timeout=30_000)
    assert within(60, lambda: all(one["state"] == "removed" for one in drains(stack, cluster["id"])))
    assert within(60, lambda: settled(stack))
    expect(page.locator(FIGURE)).to_have_text("64 allocated of 64 desired", timeout=30_000)
    for drain in mine:
        told = stack.rows("SELECT name, verdict FROM capacity_podverdict WHERE drain_id = %s", drain["id"])
        assert told, "pods ran there"
        assert {one["verdict"] for one in told} <= {"finished", "killed", "budget_overridden"}
        row = page.locator(f'.live li.ev:has([data-drain="{drain["id"]}"]) .verdicts')
        expect(row).not_to_contain_text("Stopping", timeout=15_000)


def machines(stack: Installation, cluster: Any) -> list[dict[str, Any]]:
    return stack.rows(
        "SELECT * FROM clusters_machine WHERE cluster_id = %s AND compute_class = 'preemptible' AND state = 'joined'", cluster
    )


def busy_nodes(stack: Installation, cluster: Any) -> set[str]:
    rows = stack.rows(
        "SELECT DISTINCT node_name FROM clusters_pod WHERE cluster_id = %s AND phase = 'Running' AND NOT daemonset", cluster
    )
    return {row["node_name"] for row in rows}


def drains(stack: Installation, cluster: Any) -> list[dict[str, Any]]:
    return stack.rows("SELECT * FROM capacity_drain WHERE cluster_id = %s ORDER BY started_at", cluster)


def test_two_tabs_show_the_same_and_a_stale_one_is_told_both_values(stack: Installation, context: BrowserContext) -> None:
    first, second = context.new_page(), context.new_page()
    sign_in(first, "Ada, admin")
    open_cluster(first, stack, "borealis-eval")
    cluster = open_cluster(second, stack, "borealis-eval")
    stale = second.locator("[data-gauge] input[name=gpus]")
    stale.fill("32")  # typed, not sent yet: this page is held at what it was based on
    box = first.locator("[data-gauge] input[name=gpus]")
    box.fill("24")
    box.press("Enter")
    expect(first.locator(FIGURE)).to_contain_text("of 24 desired")
    assert within(10, lambda: cluster_row(stack, "borealis-eval")["desired_preemptible_gpus"] == 24)
    stale.press("Enter")
    expect(second.locator("[data-gauge-said]")).to_contain_text("24")
    expect(second.locator("[data-gauge-said]")).to_contain_text("32")
    assert cluster_row(stack, "borealis-eval")["desired_preemptible_gpus"] == 24, "the stale value was not taken"
    expect(second.locator(FIGURE)).to_contain_text("of 24 desired")
    said = stack.rows(
        "SELECT e.message FROM timeline_entry e WHERE e.stream_id = %s AND e.reason = 'TargetChanged'", cluster["id"]
    )
    assert [row["message"] for row in said] == ["Preemptible target from 16 to 24"]
    assert within(60, lambda: settled(stack))


def test_a_viewer_sees_one_project_and_can_change_nothing(stack: Installation, context: BrowserContext) -> None:
    page = context.new_page()
    sign_in(page, "Vic, viewer")
    expect(page.get_by_role("link", name="aurora-train")).to_be_visible()
    expect(page.get_by_text("borealis-eval")).to_have_count(0)
    open_cluster(page, stack, "aurora-train")
    expect(page.locator("input#target")).to_be_disabled()
    other = cluster_row(stack, "borealis-eval")["id"]
    answer = page.goto(f"/clusters/{other}")
    assert answer is not None
    assert answer.status == 404


def test_somebody_without_a_group_is_told_whom_to_ask(stack: Installation, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="Fay, in no group").click()
    expect(page.locator("main")).to_contain_text("ada")
    answer = page.goto("/")
    assert answer is not None
    assert answer.status == 403
