"""Keyboard, search, the tab's title and both themes, in real Chromium."""

import re
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.pages import world
from tests.pages.test_in_browser import Desk, chromium, desk  # noqa: F401  (fixtures)

LUMINANCE = """
(selector) => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (colour) => colour.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = rgb(getComputedStyle(document.querySelector("[data-chart]")).backgroundColor);
  return [...document.querySelectorAll(selector)].map((text) => {
    const pair = [light(rgb(getComputedStyle(text).fill)), light(ground)].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05);
  });
}
"""


def active(page: Page) -> str:
    found: str = page.evaluate("document.activeElement.id || document.activeElement.getAttribute('aria-label') || ''")
    return found


def test_search_opens_by_key_follows_the_arrows_and_gives_the_focus_back(desk: Desk) -> None:  # noqa: F811
    page = desk.page
    page.focus("[data-theme-toggle]")
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    page.keyboard.type("51fb")
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.get_by_role("option")).to_contain_text("gpu-preemptible-dp-51fb")
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+a")
    page.keyboard.type("aurora")
    expect(page.get_by_role("option")).to_have_count(6)  # the cluster and its tabs
    first = field.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    second = field.get_attribute("aria-activedescendant")
    assert first != second
    assert page.locator(f"#{second}").get_attribute("aria-selected") == "true"
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    assert active(page) == "Switch between light and dark"
    page.keyboard.press("Control+k")
    page.keyboard.type("aurora nodes")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/nodes$"))


def test_keys_wait_while_one_types_are_listed_and_can_be_switched_off(desk: Desk) -> None:  # noqa: F811
    """WCAG 2.1.4: single keys can be turned off. DESIGN 13: keyboard for everything."""
    page, sheet = desk.page, desk.page.locator("dialog[data-keys]")
    page.focus("#want")
    page.keyboard.type("?/gn")
    expect(sheet).to_be_hidden()
    page.keyboard.press("Escape")
    page.locator("#want").blur()
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("To the target")
    assert "g p" not in sheet.inner_text().replace("\n", " ")  # olu is no fleet operator
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    expect(page.locator("#target")).to_be_focused()
    page.keyboard.press("?")
    sheet.get_by_label("Single keys work").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("dialog[data-palette]")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_text(", your account").locator("..").click()
    page.get_by_role("button", name="Keys on this page").click()
    sheet.get_by_label("Single keys work").check()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.wait_for_url(re.compile(r"/nodes$"))


def test_the_slider_says_what_it_is_and_its_keys_stay_on_whole_nodes(desk: Desk) -> None:  # noqa: F811
    """react-component/slider#408, davidchin/react-input-range#177, uswds/uswds PR#5413, fabric-ds/react PR#25."""
    page = desk.page
    page.clock.install()
    page.reload()
    page.wait_for_function("document.querySelector('#target').hasAttribute('aria-valuetext')")
    slider = page.get_by_role("slider", name="Preemptible GPUs wanted")
    slider.focus()
    page.clock.pause_at(timezone.now() + timedelta(seconds=5))  # however slow this machine is, no key settles by itself
    for key, value in (
        ("Home", "0"),
        ("ArrowUp", "8"),
        ("ArrowRight", "16"),
        ("PageUp", "32"),
        ("PageDown", "16"),
        ("End", "96"),
    ):
        page.keyboard.press(key)
        assert int(slider.input_value()) % 8 == 0
        if not key.startswith("Page"):  # how far a page goes is the browser's
            assert slider.input_value() == value
    assert slider.get_attribute("aria-valuetext") == "96 GPUs wanted, 12 nodes; 0 allocated"
    assert slider.get_attribute("aria-describedby") == "why"
    page.keyboard.press("Escape")
    assert slider.input_value() == "16"
    assert desk.posts == []


def test_the_title_and_the_icon_say_what_is_wrong_without_asking_anybody(desk: Desk) -> None:  # noqa: F811
    page = desk.page
    expect(page).to_have_title("aurora-train · Halftide")
    page.locator(".plot .chart").wait_for()
    desk.requests.clear()
    node = desk.cluster.nodes.get()
    world.a_drain(node)
    desk.send([desk.panel()])
    expect(page).to_have_title("● 1 draining – aurora-train · Halftide")
    assert "icon-amber" in (page.get_attribute("link[rel=icon]", "href") or "")
    desk.cluster.drains.update(state="removed")
    desk.send([desk.panel()])
    expect(page).to_have_title("aurora-train · Halftide")
    assert [url for url, _ in desk.requests if "icon" not in url] == []
    desk.sockets[-1].close(code=4403)
    expect(page).to_have_title("● Not live – aurora-train · Halftide")


def test_the_chart_is_readable_in_both_themes_at_once_and_on_paper(desk: Desk) -> None:  # noqa: F811
    """optuna/optuna-dashboard#426, plotly/plotly.py#5413: it kept the colours of the theme before until a reload."""
    page = desk.page
    page.locator(".plot .chart").wait_for()
    assert not [url for url, _ in desk.requests if "plotly" in url]  # 1.5 MB that nobody has asked for yet

    def least() -> float:
        texts = "[data-chart] :is(.xtick text, .ytick text, .annotation-text, .c-text)"
        found: list[float] = page.evaluate(LUMINANCE, texts)
        assert len(found) > 4
        return min(found)

    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert least() >= 4.5
    page.emulate_media(color_scheme="light")
    page.hover("[data-chart]")
    page.locator(".plot.js-plotly-plot").wait_for()
    assert least() >= 4.5
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(300)
    assert least() >= 4.5
    desk.send([desk.panel()])  # live data after the change
    page.wait_for_timeout(400)
    assert least() >= 4.5
    page.keyboard.press(".")  # to light by hand, against the system
    page.wait_for_timeout(300)
    assert least() >= 4.5
    page.keyboard.press(".")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(color_scheme="dark", media="print")
    assert least() >= 4.5
    assert page.evaluate("getComputedStyle(document.querySelector('.topbar')).display") == "none"


def test_paper_says_of_when_it_is_and_keeps_its_tables_on_a_sheet(desk: Desk) -> None:  # noqa: F811
    page = desk.page
    page.set_viewport_size({"width": 718, "height": 1015})  # A4 within a printer's margins
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    stamp = page.evaluate("getComputedStyle(document.body, '::before').content")
    assert re.fullmatch(r'"As of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"', stamp)
    row = page.locator("[data-nodes] tr").first
    expect(row).to_be_visible()
    assert row.evaluate("row => getComputedStyle(row).display") == "table-row"
    expect(page.locator("[data-badge]")).to_be_hidden()  # nothing is live there
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
