"""One whole installation for all flows: real PostgreSQL, Redis, Celery workers, watch, simulator, identity provider, Chromium."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.installation import Installation, fresh, within

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",  # as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=20_000)  # how long things take is measured elsewhere


@pytest.fixture(scope="package")
def stack() -> Iterator[Installation]:
    """Machines boot in a second, other tenants keep quiet, a drain has half a minute; webhooks may reach this machine."""
    settings = {"HALFTIDE_SIM_BOOT_SECONDS": "1", "HALFTIDE_SIM_DEMAND": "off", "HALFTIDE_DRAIN_WINDOW": "30"}
    here = fresh("flows", **settings, HALFTIDE_WEBHOOK_ALLOW="127.0.0.1")
    try:
        here.up()
        assert within(90, lambda: settled(here)), here.rows("SELECT name, status, status_why FROM clusters_cluster")
        yield here
    finally:
        here.reset()


def settled(here: Installation) -> bool:
    """Every cluster has what it asked for."""
    [found] = here.rows(
        "SELECT count(*) AS behind FROM clusters_cluster WHERE allocated_preemptible_gpus <> desired_preemptible_gpus"
        " OR allocated_standard_gpus <> desired_standard_gpus"
    )
    return bool(found["behind"] == 0)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """For this folder only: Playwright's loop runs in this thread, and tests of other folders must find none."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser, stack: Installation) -> Iterator[BrowserContext]:
    """A browser of its own, as a person would open it."""
    context = chromium.new_context(base_url=stack.address, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def complaints(context: BrowserContext) -> Iterator[list[str]]:
    """What the browser complains of, broken Content-Security-Policy among it. A test that asks for it ends with none."""
    said: list[str] = []

    def listen(page: Page) -> None:
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))

    context.on("page", listen)
    yield said
    assert said == []


def sign_in(page: Page, person: str) -> None:
    """The real flow: our page, the provider, back."""
    page.goto("/")
    page.get_by_role("button", name=person).click()
    page.wait_for_url("**/")


def cluster_row(here: Installation, name: str) -> dict[str, Any]:
    [found] = here.rows("SELECT * FROM clusters_cluster WHERE name = %s", name)
    return found


def open_cluster(page: Page, here: Installation, name: str) -> dict[str, Any]:
    row = cluster_row(here, name)
    page.goto(f"/clusters/{row['id']}")
    page.get_by_text("Live", exact=True).first.wait_for()
    return row
