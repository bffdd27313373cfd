"""Takes the pictures of webhooks of a running `HALFTIDE_WEBHOOK_ALLOW=127.0.0.1 make up`, as `take.py` does the others.

Adds two webhooks, to a receiver of its own that answers and to one that is broken, and lets `take.stage` give them something
to tell.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import Page, sync_playwright
from take import ADDRESS, ARGUMENTS, shoot, sim, stage


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500 if "broken" in self.path else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The pictures tell what came."""


def add(page: Page, name: str, kind: str, address: str) -> None:
    page.goto("/webhooks/new")
    page.get_by_label("Name").fill(name)
    page.locator(f"input[name=kind][value={kind}]").check()
    page.get_by_label("Address").fill(address)
    page.get_by_label("Target changes").check()
    page.get_by_role("button", name="Add webhook").click()
    page.get_by_text("shown this once").wait_for()


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        page = browser.new_context(base_url=ADDRESS).new_page()
        page.goto("/")
        page.get_by_role("button", name="Ada, admin").click()
        page.wait_for_url(f"{ADDRESS}/")
        page.goto("/webhooks")
        shoot(page, "webhooks-empty")
        page.goto("/webhooks/new")
        shoot(page, "webhook-new")
        add(page, "on-call channel", "slack", f"{here}/services/T04/B07/9fK2aQ7xLmR3")
        add(page, "old pager", "json", f"{here}/broken/pager/hook-2201")
        page.goto("/")
        stage(page)
        sim("clear")
        page.wait_for_timeout(30_000)  # a burst, a sweep, a try
        page.goto("/webhooks")
        shoot(page, "webhooks")
        for name, webhook in (("webhook", "on-call channel"), ("webhook-failing", "old pager")):
            page.goto("/webhooks")
            page.get_by_role("link", name=webhook).click()
            shoot(page, name)
        page.locator("#messages a", has_text="preempted").first.click()
        shoot(page, "webhook-message")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
