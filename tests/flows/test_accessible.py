"""axe finds nothing on any page, in light and dark; none is wider than a phone or breaks its Content-Security-Policy."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from console.pages.urls import urlpatterns
from tests.flows import walk
from tests.flows.conftest import sign_in
from tests.installation import Installation

# What a page shows once its own scripts have done their work.
READY = {
    "capacity": "#would >> text=Start drill",
    "cluster": "[data-badge]:has-text('Live')",
    "script": ".ace_content",
    "workload": "h2:has-text('Pods')",
    "workloads": "[data-copies] button",
}
PHONE = {"width": 375, "height": 800}


@pytest.fixture(scope="module")
def pages(stack: Installation, chromium: Browser) -> Iterator[dict[str, str]]:
    context = chromium.new_context(base_url=stack.address)
    page = context.new_page()
    sign_in(page, "Ada, admin")
    found = walk.pages(stack, page)
    yield found
    page.goto(found["webhook"])
    page.get_by_role("button", name="Switch off").click()
    context.close()


def violations(page: Page) -> list[str]:
    found = Axe().run(page)
    return [f"{one['id']}: {node['html'][:160]}" for one in found.response["violations"] for node in one["nodes"]]


def look(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")


def width(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_every_address_is_walked_or_is_no_page(pages: dict[str, str]) -> None:
    assert sorted([*pages, *walk.NO_PAGES.split()]) == sorted(one.name for one in urlpatterns if one.name)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(
    pages: dict[str, str], context: BrowserContext, complaints: list[str], scheme: str
) -> None:
    page = context.new_page()
    look(page, scheme)
    page.goto("/")
    assert violations(page) == []
    sign_in(page, "Ada, admin")
    for name, address in pages.items():  # without the API's page, which is Swagger UI's own
        page.goto(address)
        if name in READY:
            page.locator(READY[name]).first.wait_for()
        assert violations(page) == [], name
    page.goto("/")
    for key in ("?", "/"):  # what opens over a page
        page.keyboard.press(key)
        page.locator("dialog[open]").wait_for()
        assert violations(page) == [], key
        page.keyboard.press("Escape")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_pages_that_refuse_and_none_is_wider_than_a_phone(context: BrowserContext, scheme: str) -> None:
    """Apart from the others: a browser complains of each answer that is an error."""
    page = context.new_page()
    look(page, scheme)
    page.set_viewport_size(PHONE)
    refused = ["/signed-out/", "/oidc/demo/login/callback/?code=no&state=such"]
    for person, addresses in {"": refused, "Vic, viewer": ["/nothing-here", "/capacity"], "Fay, in no group": ["/"]}.items():
        if person:
            context.clear_cookies()
            page.goto("/")
            page.get_by_role("button", name=person).click()
            page.wait_for_url("**/")
        for address in addresses:
            page.goto(address)
            assert violations(page) == [], address
            assert width(page) <= PHONE["width"], address


def test_nothing_is_wider_than_a_phone(pages: dict[str, str], context: BrowserContext) -> None:
    page = context.new_page()
    page.set_viewport_size(PHONE)
    sign_in(page, "Ada, admin")
    for name, address in [*pages.items(), ("API", "/api/docs")]:
        page.goto(address)
        if name in READY:
            page.locator(READY[name]).first.wait_for()
        assert width(page) <= PHONE["width"], name
