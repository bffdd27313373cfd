"""Takes the pictures of what is wrong, stopped or only looked at, of a running `make up`, as `take.py` does the others.

A cluster whose API is down, a page without its socket and one without the console, the stop switch, observe, who has no role and
who may not, a fault of ours (a table is away for a moment), and paper. Afterwards everything is as it was.
"""

import os
import re
from pathlib import Path

import psycopg
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from take import ADDRESS, ARGUMENTS, HERE, shoot, sim

STATE = Path(os.environ.get("HALFTIDE_STATE", HERE.parent.parent / ".halftide"))
PAPER = {"width": 794, "height": 1123}  # A4 at 96 dpi
PRINT = "() => { dispatchEvent(new Event('beforeprint')); document.body.style.padding = '38px'; }"  # and a printer's margin


def person(browser: Browser, name: str) -> Page:
    context: BrowserContext = browser.new_context(base_url=ADDRESS, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(120_000)
    context.add_cookies([{"name": "halftide_try", "value": "off", "url": ADDRESS}])
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name=name).click()
    page.wait_for_url(f"{ADDRESS}/")
    return page


def light(page: Page, name: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.wait_for_timeout(500)
    page.screenshot(path=HERE / f"{name}-light.png")


def doors(browser: Browser) -> None:
    page = person(browser, "Fay, in no group")
    shoot(page, "no-role")
    page = person(browser, "Vic, viewer")
    page.goto("/capacity")
    shoot(page, "forbidden")


def paper(page: Page, cluster: str) -> None:
    page.set_viewport_size(PAPER)
    for name, address in {"print-cluster": cluster, "print-timeline": f"{cluster}/timeline"}.items():
        page.goto(address)
        page.wait_for_timeout(1500)
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate(PRINT)
        page.wait_for_timeout(500)
        page.screenshot(path=HERE / f"{name}-light.png")
        page.emulate_media(media="screen")


def sockets(page: Page, cluster: str) -> None:
    page.goto(cluster)
    page.route_web_socket("**/live/**", lambda socket: socket.close())
    page.goto(cluster)
    expect(page.locator("[data-badge]")).to_have_text("Every 5 s", timeout=30_000)
    light(page, "no-socket")
    page.context.set_offline(True)
    expect(page.locator("[data-badge]")).to_contain_text("Not live since", timeout=30_000)
    light(page, "not-live")
    page.context.set_offline(False)
    page.unroute_all()


def stopped(page: Page, cluster: str) -> None:
    page.goto(cluster)
    page.locator("summary", has_text="Automation").click()
    page.get_by_label("Why, for the others").fill("rack move in eu-north-1")
    page.get_by_role("button", name="Stop automation").click()
    page.goto(cluster)
    shoot(page, "stopped")
    page.goto("/capacity")
    light(page, "stopped-capacity")
    page.get_by_role("button", name="Start automation").last.click()


def observed(page: Page, cluster: str) -> None:
    page.goto(cluster)
    page.get_by_role("button", name="Only observe").click()
    box = page.locator("[data-gauge] input[name=gpus]")
    before = int(box.input_value())
    box.fill(str(before + 16))
    box.press("Enter")
    page.get_by_text("What Halftide would do now").wait_for()
    shoot(page, "observe")
    box.fill(str(before))
    box.press("Enter")
    page.get_by_text(f"Target set to {before}").wait_for()
    page.get_by_label("To confirm").fill("aurora-train")
    page.get_by_role("button", name="Let Halftide act").click()
    page.get_by_role("button", name="Only observe").wait_for()


def unreachable(page: Page, cluster: str) -> None:
    sim("api-down", "--cluster", "aurora-train")
    try:
        page.goto(cluster)
        expect(page.locator("[data-heard]")).to_have_class(re.compile("lost"), timeout=200_000)
        page.get_by_text("Kubernetes has not answered since").wait_for()
        shoot(page, "unreachable")
    finally:
        sim("clear")


def broken(page: Page) -> None:
    runtime = dict(line.split("=", 1) for line in (STATE / "runtime.env").read_text().splitlines())
    with psycopg.connect(runtime["DATABASE_URL"], autocommit=True) as database:
        database.execute("ALTER TABLE capacity_pool RENAME TO capacity_pool_away")
        try:
            page.goto("/capacity")
        finally:
            database.execute("ALTER TABLE capacity_pool_away RENAME TO capacity_pool")
    shoot(page, "broken")


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        doors(browser)
        page = person(browser, "Ada, admin")
        page.get_by_role("link", name="aurora-train").first.click()
        cluster = page.url
        paper(page, cluster)
        sockets(page, cluster)
        page = person(browser, "Ada, admin")
        stopped(page, cluster)
        observed(page, cluster)
        unreachable(page, cluster)
        broken(page)
        browser.close()


if __name__ == "__main__":
    main()
