"""The page in real Chromium, the socket in the test's hand: what is held stays, what comes is bounded, nothing asks twice."""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.messages import WARNING
from django.contrib.messages.storage.cookie import CookieStorage
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from playwright.sync_api import Browser, Page, WebSocketRoute, expect, sync_playwright

from console.accounts.models import Role
from console.accounts.services import actor_for_session
from console.capacity import panels, picture, services
from console.clusters.access import get_cluster
from console.clusters.models import Cluster
from console.timeline.queries import heads
from console.timeline.rows import render_entry
from tests.pages import world
from tests.workloads.world import a_workload, with_pods

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync"

expect.set_options(timeout=20_000)  # how long things take is measured elsewhere


class Desk:
    """A browser at one cluster's page, and the socket's other end."""

    def __init__(self, page: Page, address: str, cluster: Cluster) -> None:
        self.page, self.cluster, self.revision = page, cluster, 0
        self.sockets: list[WebSocketRoute] = []
        self.requests: list[tuple[str, str]] = []
        page.route_web_socket("**/live/**", self._opened)
        page.goto(f"{address}/clusters/{cluster.pk}")
        page.wait_for_function("document.querySelector('#target').hasAttribute('aria-valuetext')")
        page.on("request", lambda asked: self.requests.append((asked.url, asked.post_data or "")))
        self.send([])
        expect(page.locator("[data-badge]")).to_have_text("Live")

    def _opened(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)

    def send(self, rows: list[dict[str, str]], at: int | None = None) -> None:
        self.revision = at if at is not None else heads([self.cluster.stream])[self.cluster.stream].revision
        frame = {"type": "rows", "revision": self.revision, "at": timezone.now().isoformat(), "rows": rows, "gone": []}
        self.sockets[-1].send(json.dumps(frame))

    def panel(self) -> dict[str, str]:
        cluster = Cluster.objects.select_related("region", "gpu_type", "project").get(pk=self.cluster.pk)
        html = panels.render_panel(picture.read(cluster, timezone.now()))
        return {"kind": "panel", "id": str(cluster.pk), "html": html}

    def entry(self, message: str, **more: Any) -> dict[str, str]:
        return {"kind": "entry", "id": "", "html": render_entry(world.an_entry(self.cluster, message, **more))}

    def grab(self, gpus: int) -> None:
        """Hold the thumb and move it there."""
        box = self.page.locator("#target").bounding_box()
        assert box is not None
        self.page.mouse.move(self.at(box, int(self.page.input_value("#target"))), box["y"] + 20)
        self.page.mouse.down()
        self.page.mouse.move(self.at(box, gpus), box["y"] + 20, steps=4)

    @staticmethod
    def at(box: Any, gpus: int) -> float:
        return float(box["x"] + 8 + (box["width"] - 16) * gpus / 96)

    @property
    def posts(self) -> list[str]:
        return [body.split("&", 1)[1] for url, body in self.requests if url.endswith("/target")]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for this file; its driver keeps a loop in this thread, in which Django would else refuse to read rows."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as driver:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def desk(chromium: Browser, transactional_db: None, live_server: Any) -> Iterator[Desk]:
    world.an_installation()
    cluster = world.a_cluster(world.a_pool())
    world.a_node(cluster, "gpu-preemptible-dp-51fb")
    client: Client = world.browser(world.a_person("olu", Role.OPERATOR, "aurora"))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
    yield Desk(context.new_page(), live_server.url, cluster)
    context.close()


def somebody_else_sets(desk: Desk, gpus: int) -> None:
    actor = actor_for_session(world.a_person("ada", Role.ADMIN), None)
    services.set_target(actor, get_cluster(actor, desk.cluster.pk), gpus)


def test_no_update_moves_the_thumb_under_the_finger_and_a_stale_release_is_told_both_values(desk: Desk) -> None:
    """adobe/spectrum-web-components#2743, andreruffert/rangeslider.js#154."""
    desk.grab(56)
    somebody_else_sets(desk, 24)
    desk.send([desk.panel()])
    desk.send([desk.entry("something happened")])
    expect(desk.page.locator(".ev")).to_have_count(1)
    assert desk.page.input_value("#target") == "56"
    assert "of 56 desired" in desk.page.inner_text(".figure")
    desk.page.mouse.up()
    said = desk.page.locator("[data-gauge-said]")
    expect(said).to_contain_text("set from 16 to 24 by ada while you moved it to 56")
    assert desk.posts == ["gpus=56&based_on=0"]
    assert Cluster.objects.get(pk=desk.cluster.pk).desired_preemptible_gpus == 24
    assert desk.page.input_value("#target") == "24"
    said.get_by_role("button", name="Ask for 56").click()
    expect(said).to_contain_text("Target set to 56")
    assert Cluster.objects.get(pk=desk.cluster.pk).desired_preemptible_gpus == 56


def test_quick_keys_are_one_request_and_the_last_value_wins(desk: Desk) -> None:
    """Clooos/Bubble-Card#852, openscad/openscad#1761."""
    desk.page.clock.install()
    desk.page.reload()
    desk.page.wait_for_function("document.querySelector('#target').hasAttribute('aria-valuetext')")
    desk.page.focus("#target")
    desk.page.clock.pause_at(timezone.now() + timedelta(seconds=5))  # however slow this machine is, no key settles by itself
    for key in ("End", "Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        desk.page.keyboard.press(key)
    desk.page.clock.run_for(1000)
    expect(desk.page.locator("[data-gauge-said]")).to_contain_text("Target set to 32")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=32"]
    assert desk.page.get_attribute("#target", "aria-valuetext") == "32 GPUs wanted, 4 nodes; 0 allocated"


def test_a_value_off_the_step_is_refused_and_stays_typed(desk: Desk) -> None:
    desk.page.fill("#want", "60")
    desk.page.press("#want", "Enter")
    expect(desk.page.locator("[data-gauge-said]")).to_contain_text("56 or 64, not 60")
    desk.send([desk.panel()])
    assert desk.page.input_value("#want") == "60"
    assert len(desk.posts) == 1


def test_escape_puts_back_what_was_and_sends_nothing(desk: Desk) -> None:
    desk.page.fill("#want", "96")
    desk.page.press("#want", "Escape")
    assert desk.page.input_value("#want") == "16"
    assert "of 16 desired" in desk.page.inner_text(".figure")
    assert desk.posts == []


def test_a_flood_of_rows_stays_bounded_once_each_and_asks_for_nothing(desk: Desk) -> None:
    """TheThingsNetwork/lorawan-stack#2887: all rows stay in the page and it freezes."""
    rows = [desk.entry(f"row {number}") for number in range(700)]
    desk.page.locator(".plot .chart").wait_for()
    desk.requests.clear()
    for start in range(0, 700, 50):
        desk.send(rows[start : start + 50])
    desk.send(rows[650:])  # again: nothing twice
    desk.send([desk.entry("of the past")], at=-1)  # an older frame than the page: not taken
    expect(desk.page.locator(".ev").first).to_contain_text("row 699")
    assert desk.page.locator(".ev").count() == 500
    assert desk.page.locator(".ev", has_text="row 699").count() == 1
    assert desk.page.locator(".ev", has_text="of the past").count() == 0
    assert desk.requests == []


def test_rows_wait_while_the_reader_is_away_from_the_top(desk: Desk) -> None:
    desk.send([desk.entry(f"{'odd' if number % 2 else 'even'} row {number}") for number in range(40)])  # no run that folds
    expect(desk.page.locator(".ev")).to_have_count(40)
    desk.page.locator("[data-live]").evaluate("column => column.scrollTo(0, 600)")
    desk.send([desk.entry("while away"), desk.entry("and another")])
    expect(desk.page.locator("[data-new]")).to_have_text("2 new")
    expect(desk.page.locator("[data-badge]")).to_have_text("Held while you read")
    assert desk.page.locator(".ev").count() == 40
    desk.page.locator("[data-new]").click()
    expect(desk.page.locator(".ev").first).to_contain_text("and another")
    expect(desk.page.locator("[data-badge]")).to_have_text("Live")


def a_note(says: str) -> str:
    """A note for the next page, as a browser carries it."""
    storage, answer = CookieStorage(RequestFactory().get("/")), HttpResponse()
    storage.add(WARNING, says)
    storage.update(answer)
    return answer.cookies[CookieStorage.cookie_name].value


def box_of(page: Page, name: str) -> Any:
    box = page.locator(name).bounding_box()
    assert box is not None
    return box


def test_a_note_from_signing_in_stands_over_the_whole_page(desk: Desk) -> None:
    page, address = desk.page, desk.page.url.split("/clusters/")[0]
    for path, width in ((path, width) for path in ("", "/timeline") for width in (1200, 375)):
        page.set_viewport_size({"width": width, "height": 800})
        says = "The groups in your token were cut off, so your roles stay as they were."
        page.context.add_cookies([{"name": CookieStorage.cookie_name, "value": a_note(says), "url": address}])
        page.goto(f"{address}/clusters/{desk.cluster.pk}{path}")
        note, main, title = (box_of(page, name) for name in (".note:has-text('cut off')", "#main", "h1"))
        assert main["y"] <= note["y"] < note["y"] + note["height"] < title["y"]
        assert note["x"] - main["x"] == main["x"] + main["width"] - note["x"] - note["width"] < 40
        if not path and width == 1200:
            live = box_of(page, "[data-live]")
            assert title["x"] < live["x"]
            assert note["y"] + note["height"] < live["y"]


def test_hostile_text_on_the_live_path_runs_nothing(desk: Desk) -> None:
    """kubermatic/dashboard#7269: the live path puts in as markup what the page escapes."""
    asked: list[str] = []
    desk.page.on("dialog", lambda dialog: asked.append(dialog.message) or dialog.dismiss())
    desk.send([desk.entry(world.HOSTILE, reason=world.HOSTILE, actor_name=world.HOSTILE, subject_name=world.HOSTILE)])
    expect(desk.page.locator(".ev")).to_have_count(1)
    assert desk.page.locator(".ev img, .ev svg[onload]").count() == 0
    assert asked == []


def test_the_tab_counts_the_workloads_in_trouble_as_they_are_now(desk: Desk) -> None:
    with_pods(a_workload(desk.cluster, "queued"), [None], why="0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    desk.page.goto(f"{desk.page.url}/workloads")
    desk.send([])
    expect(desk.page).to_have_title("(1) Workloads of aurora-train · Halftide")
    row = desk.page.locator("[data-workloads] tr")
    row_now = row.evaluate("row => row.outerHTML").replace('data-trouble="1"', 'data-trouble="0"')
    desk.send([{"kind": "workload", "id": "", "html": row_now}])
    expect(desk.page).to_have_title("Workloads of aurora-train · Halftide")
    expect(desk.page.locator("[data-workloads-count]")).to_have_text("1, none in trouble")


def test_a_lost_right_ends_the_page_and_it_says_so(desk: Desk) -> None:
    """django/channels#1324: no reconnecting in a loop, but a way to sign in, back to this page."""
    desk.sockets[-1].close(code=4401)
    expect(desk.page.locator("[data-badge]")).to_have_text("Signed out")
    note = desk.page.get_by_role("alert")
    expect(note).to_contain_text("You are signed out. What stands here is as of")
    note.get_by_role("button", name="Sign in again").click()
    desk.page.wait_for_url(f"**/sign-in/?next=%2Fclusters%2F{desk.cluster.pk}")


def test_without_a_socket_the_page_says_so_and_asks_each_five_seconds(desk: Desk) -> None:
    desk.page.route_web_socket("**/live/**", lambda socket: socket.close())
    desk.sockets[-1].close()
    expect(desk.page.locator("[data-badge]")).to_contain_text("Reconnecting")
    expect(desk.page.locator("[data-badge]")).to_have_text("Every 5 s", timeout=15_000)
    assert any("/updates?since=" in url for url, _ in desk.requests)
