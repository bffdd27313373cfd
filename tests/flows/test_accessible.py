"""axe finds nothing on the pages, in light and dark; no page breaks its Content-Security-Policy (see `complaints`)."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

from tests.flows.conftest import open_cluster, sign_in
from tests.installation import Installation


def violations(page: Page) -> list[str]:
    found = Axe().run(page)
    return [f"{one['id']}: {node['html'][:160]}" for one in found.response["violations"] for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(stack: Installation, context: BrowserContext, complaints: list[str], scheme: str) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    page.goto("/")
    assert violations(page) == []
    sign_in(page, "Ada, admin")
    assert violations(page) == []
    cluster = open_cluster(page, stack, "aurora-train")
    assert violations(page) == []
    page.goto("/capacity")
    page.locator("#would").get_by_text("Start drill").first.wait_for()
    assert violations(page) == []
    for address in (f"/clusters/{cluster['id']}/preview?gpus=8", "/webhooks", "/webhooks/new", "/search?q=aurora"):
        page.goto(address)
        assert violations(page) == []
    page.goto(f"/clusters/{cluster['id']}/workloads")
    page.locator("[data-copies] button").first.wait_for()
    assert violations(page) == []
    page.locator("[data-workloads] a.name").first.click()
    page.get_by_role("heading", name="Pods").wait_for()
    assert violations(page) == []
    page.goto(f"/clusters/{cluster['id']}/planner?size=3.5&bandwidth=14.6&step=90&slower=2")
    assert violations(page) == []
    page.goto("/")
    for key in ("?", "/"):  # what opens over a page
        page.keyboard.press(key)
        page.locator("dialog[open]").wait_for()
        assert violations(page) == []
        page.keyboard.press("Escape")


def test_nothing_is_wider_than_a_phone(stack: Installation, chromium: object, context: BrowserContext) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 375, "height": 800})
    sign_in(page, "Ada, admin")
    for address in ("/", "/clusters/new", "/webhooks", "/webhooks/new", "/search?q=aurora"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
    cluster = open_cluster(page, stack, "aurora-train")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    here = f"/clusters/{cluster['id']}"
    for address in ("/capacity", f"{here}/preview?gpus=8", f"{here}/workloads", f"{here}/planner?size=3.5&bandwidth=9"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
