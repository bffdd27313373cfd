"""The Capacity page in real Chromium: it asks each five seconds, touches only what has changed, and begins nothing by a slip."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Browser, Page, Request, expect

from console.accounts.models import Role
from console.capacity import enqueue
from console.capacity.models import Drain, Pool, Reclaim
from console.capacity.reclaims import previewing
from console.capacity.reclaims.budgets import Budgets
from console.clusters.models import Cluster
from tests.pages import world
from tests.pages.test_in_browser import chromium  # noqa: F401  (a fixture)


@pytest.fixture
def page(chromium: Browser, transactional_db: None, live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:  # noqa: F811
    monkeypatch.setattr(enqueue, "enqueue", lambda *_: True)
    monkeypatch.setattr(previewing, "read_budgets", lambda cluster, names: Budgets())
    world.an_installation()
    cluster = world.a_cluster(world.a_pool())
    for name in ("gpu-preemptible-dp-51fb", "gpu-preemptible-dp-7f2c"):
        world.a_node(cluster, name)
    client = world.browser(world.a_person("ada", Role.ADMIN, fleet=True))
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, base_url=live_server.url)
    context.add_cookies(
        [
            {
                "name": settings.SESSION_COOKIE_NAME,
                "value": client.cookies[settings.SESSION_COOKIE_NAME].value,
                "url": live_server.url,
            }
        ]
    )
    opened = context.new_page()
    opened.goto("/capacity")
    yield opened
    context.close()


def is_poll(request: Request) -> bool:
    return "/capacity/parts" in request.url


def poll(page: Page) -> None:
    with page.expect_request_finished(is_poll, timeout=20_000):
        pass


def test_a_poll_redraws_what_has_changed_and_leaves_the_rest_and_the_focus_alone(page: Page) -> None:
    page.evaluate("window.kept = document.querySelector('[data-part=holders]').firstElementChild")
    row = page.locator("[data-part=pools] a.name")
    row.focus()
    Pool.objects.update(free_machines=7)
    poll(page)
    expect(page.locator("[data-part=facts]")).to_contain_text("56")
    assert page.evaluate("window.kept.isConnected"), "who holds what has not changed"
    expect(row).to_be_focused()
    expect(page.locator("[data-badge]")).to_have_text("Every 5 s")


def test_it_says_when_nothing_answers_and_since_when(page: Page) -> None:
    page.route("**/capacity/parts*", lambda route: route.abort())
    expect(page.locator("[data-badge]")).to_contain_text("Not live since", timeout=20_000)
    page.unroute("**/capacity/parts*")
    expect(page.locator("[data-badge]")).to_have_text("Every 5 s", timeout=20_000)


def test_a_drill_is_looked_at_confirmed_and_begun_once(page: Page) -> None:
    card = page.locator("#would")
    expect(card).to_contain_text("This node goes")
    page.get_by_label("GPUs, in nodes of 8").fill("16")
    expect(card).to_contain_text("These 2 nodes go")
    card.locator("summary").click()
    confirm = card.get_by_role("button", name="Start drill, 16 GPUs")
    expect(confirm).to_be_in_viewport()
    page.wait_for_timeout(500)  # whatever the click's loss of focus may still start
    expect(confirm).to_be_visible()
    assert not Drain.objects.exists(), "nothing begins by looking"
    page.keyboard.press("Escape")
    expect(confirm).to_be_hidden()
    page.keyboard.press("Enter")  # the focus is back on the button that opened it
    confirm.click()
    page.wait_for_url("**/drills/**")
    assert (Reclaim.objects.get().num_gpus, Drain.objects.count()) == (16, 2)


def test_a_number_that_cannot_be_leaves_no_button(page: Page) -> None:
    card = page.locator("#would")
    expect(card).to_contain_text("This node goes")
    page.get_by_label("GPUs, in nodes of 8").fill("12")
    expect(card).to_contain_text("8 or 16, not 12")
    assert card.get_by_role("button").count() == 0
    assert Cluster.objects.get().desired_preemptible_gpus == 16


def test_nodes_are_named_on_the_card_or_ticked_on_the_page_and_exactly_those_go(page: Page) -> None:
    card, names = page.locator("#would"), page.get_by_label("Names, with commas or line by line")
    expect(names).to_be_hidden()
    page.get_by_label("Nodes by name").check()
    expect(page.get_by_label("GPUs, in nodes of 8")).to_be_hidden()
    names.fill("gpu-preemptible-dp-51fb\ngpu-preemptible-dp-0000")
    expect(card.get_by_role("alert")).to_contain_text("has no node gpu-preemptible-dp-0000")
    assert card.get_by_role("button").count() == 0
    names.fill("gpu-preemptible-dp-51fb")
    expect(card).to_contain_text("This node goes")
    card.get_by_role("link", name="Pod by pod").click()
    picks = page.get_by_role("list", name="Nodes that can go")
    expect(picks.get_by_label("gpu-preemptible-dp-51fb")).to_be_checked()
    assert [one["id"] for one in Axe().run(page).response["violations"]] == []
    picks.get_by_label("gpu-preemptible-dp-51fb").uncheck()
    picks.get_by_label("gpu-preemptible-dp-7f2c").check()
    page.get_by_role("button", name="Look again").click()
    expect(page.locator("h2", has_text="gpu-preemptible-dp-7f2c")).to_be_visible()
    page.locator("summary", has_text="Start drill, 8 GPUs").click()
    page.get_by_role("button", name="Start drill, 8 GPUs").click()
    page.wait_for_url("**/drills/**")
    assert [drain.node_name for drain in Drain.objects.all()] == ["gpu-preemptible-dp-7f2c"]


def test_the_list_of_nodes_leads_to_the_preview_of_each(page: Page) -> None:
    page.goto(f"/clusters/{Cluster.objects.get().pk}/nodes")
    assert [one["id"] for one in Axe().run(page).response["violations"]] == []
    page.get_by_role("link", name="Preview of gpu-preemptible-dp-51fb").click()
    expect(page.get_by_role("heading", name="gpu-preemptible-dp-51fb")).to_be_visible()
