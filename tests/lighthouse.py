"""Lighthouse on the pages people keep open: `python -m tests.lighthouse ADDRESS LIGHTHOUSE`, against a running `make up`.

LIGHTHOUSE is the program of the npm package of that name, installed elsewhere (`npm install lighthouse`); node and Chromium are
the system's. Signs in as ada, measures as on a desktop, and fails below 95. Run it on a machine with nothing else to do: what is
measured is time, and Lighthouse's own benchmark index, which is printed, tells a busy machine (a quiet one has 1,000 or more).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

LEAST = 95
PORT = 9333
CATEGORIES = "performance,accessibility,best-practices"
FLAGS = ["--no-sandbox", "--disable-gpu", f"--remote-debugging-port={PORT}"]
TIMES = ("first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift")


def pages(page: Page, address: str) -> dict[str, str]:
    """Sign in, and the addresses to measure."""
    page.goto(address)
    page.get_by_role("button", name="Ada, admin").click()
    page.wait_for_url(f"{address}/", timeout=60_000)
    cluster = page.get_by_role("link", name="aurora-train").first.get_attribute("href")
    return {"clusters": f"{address}/", "cluster": f"{address}{cluster}", "timeline": f"{address}{cluster}/timeline"}


def measure(program: str, address: str, folder: Path) -> dict[str, Any]:
    report = folder / "report.json"
    command = [program, address, f"--port={PORT}", "--disable-storage-reset", f"--only-categories={CATEGORIES}"]
    subprocess.run([*command, "--preset=desktop", "--output=json", f"--output-path={report}", "--quiet"], check=True)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def main(address: str, program: str) -> int:
    low = False
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            f"{folder}/profile", executable_path="/usr/bin/chromium", args=FLAGS
        )
        for name, url in pages(browser.new_page(), address).items():
            found = measure(program, url, Path(folder))
            scores = {key: round(100 * (one["score"] or 0)) for key, one in found["categories"].items()}
            times = ", ".join(f"{key} {found['audits'][key].get('displayValue', '?')}" for key in TIMES)
            print(f"{name}: {scores}, benchmark index {found['environment']['benchmarkIndex']:.0f}; {times}")
            low = low or min(scores.values()) < LEAST
        browser.close()
    return int(low)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/"), sys.argv[2]))
