"""A person at an open timeline while it rains: 100,000 entries behind it, 50 Events a second for five minutes, in real Chromium.

What is measured is what the person has: how long a key or a click waits until it is painted (the browser's own event timing),
how much the page and its scripts hold, and that the newest entry is on it in the end.
"""

import asyncio
import itertools
import os
import shutil
import threading
import time
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench import world
from tests.bench.live import cookie, event
from tests.bench.page import fill
from tests.bench.report import Book, share
from tests.installation import Installation, within

SECONDS, A_SECOND = 300, 50
ROWS = 500  # that a page has at most
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"

# Every key, click and tap, however short; `duration` is from the input to the next paint, in steps of 8 ms.
LISTEN = """
window.inputs = []; window.most = {rows: 0, elements: 0};
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (/^(key|click|pointer)/.test(one.name)) window.inputs.push(one.duration);
}).observe({type: "event", durationThreshold: 16, buffered: true});
setInterval(() => {
  window.most.rows = Math.max(window.most.rows, document.querySelectorAll(".ev").length);
  window.most.elements = Math.max(window.most.elements, document.querySelectorAll("*").length);
}, 500);
"""


def run(here: Installation, book: Book) -> None:
    cluster = world.cluster("bench", 4)
    node = world.nodes(cluster, 1)[0]
    fill(cluster)
    count = SECONDS * A_SECOND
    rain = (event(node, f"rain {number}.") for number in range(count))
    api = world.api(here, cluster)
    sender = threading.Thread(target=lambda: asyncio.run(api.paced(rain, A_SECOND, lambda _: None)))
    name, _, value = cookie().partition("=")
    with sync_playwright() as playwright:  # its loop runs in this thread, so Django's models may not be asked in here
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.add_cookies([{"name": name, "value": value, "url": here.address}])
        page = context.new_page()
        page.goto(f"{here.address}/clusters/{cluster.pk}/timeline")
        page.wait_for_selector("[data-badge]:has-text('Live')")
        page.evaluate(LISTEN)
        began = time.monotonic()
        sender.start()
        inputs, full = use(page, sender)
        took = time.monotonic() - began
        arrived = "SELECT count(*) FROM timeline_entry WHERE stream_id = %s AND message LIKE 'rain %%'"
        assert within(60, lambda: here.rows(arrived, cluster.stream)[0]["count"] == count, 0.5)
        page.wait_for_selector(f".ev:has-text('rain {count - 1}.')")
        most: dict[str, Any] = page.evaluate("window.most")
        held = heap(page)
        browser.close()
    print(f"      {count} Events in {took:.0f} s ({count / took:.0f}/s), {len(inputs)} inputs of 16 ms or more")
    book.at_most(f"browser, {A_SECOND} entries a second for {SECONDS} s: input → paint, p98", share(inputs, 0.98), "ms", 200)
    book.at_most(f"browser, {A_SECOND} entries a second for {SECONDS} s: rows on the page", most["rows"], "rows", ROWS)
    book.at_most(f"browser, {A_SECOND} entries a second for {SECONDS} s: elements", most["elements"], "elements", 20_000)
    # H07 asks for "flat" and names no number: held in the end, beside what a page of as many rows held at the beginning.
    book.ratio_at_most(f"browser, {A_SECOND} entries a second for {SECONDS} s: JS heap", held, "MiB", full, 1.5)


def use(page: Page, sender: threading.Thread) -> tuple[list[float], float]:
    """Type, scroll and open entries for as long as it rains; the milliseconds from each input to its paint, and what the page's
    scripts held when it first had all the rows it may have."""
    search, full = page.get_by_placeholder("Text in messages"), 0.0
    for turn in itertools.count():
        if not sender.is_alive():
            break
        search.click()
        page.keyboard.type("back-off", delay=90)
        search.fill("")
        page.mouse.move(640, 500)
        page.mouse.wheel(0, 600 if turn % 4 else -10_000)
        page.wait_for_timeout(700)
        if not full and page.evaluate("window.most.rows") >= ROWS:
            full = heap(page)
    page.mouse.wheel(0, -1_000_000)
    return [float(one) for one in page.evaluate("window.inputs")], full


def heap(page: Page) -> float:
    """MiB that are in use once what nobody holds has been collected."""
    line = page.context.new_cdp_session(page)
    line.send("HeapProfiler.collectGarbage")
    line.send("Performance.enable")
    found = {one["name"]: one["value"] for one in line.send("Performance.getMetrics")["metrics"]}
    line.detach()
    return float(found["JSHeapUsedSize"]) / 2**20
