"""The editor in real Chromium: by keyboard alone, two people at once, and a session that ends in the middle. No text is lost."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from playwright.sync_api import Browser, BrowserContext, Page, expect

from console.accounts.models import Role, User
from console.accounts.services import actor_for_session
from console.clusters.models import Cluster
from console.scripts.kinds import NODE_INIT
from console.scripts.models import Version
from console.scripts.services import save
from tests.pages import world
from tests.pages.test_in_browser import chromium  # noqa: F401  (a fixture)

HEAD = "#!/bin/bash\n"
FIRST = f"{HEAD}one\ntwo\nthree\n"


class Desk:
    """One browser, in which people sign in and out, at the script of one cluster."""

    def __init__(self, context: BrowserContext, cluster: Cluster, base: str) -> None:
        self.context, self.cluster, self.base = context, cluster, base
        self.address = f"/clusters/{cluster.pk}/scripts/node_init"
        self.complaints: list[str] = []
        context.on("page", self._listen)

    def _listen(self, page: Page) -> None:
        page.on("console", lambda one: self.complaints.append(one.text) if one.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def sign_in(self, user: User) -> None:
        """As a sign-in in another tab does: another session, another form token."""
        cookie = world.browser(user).cookies[django_settings.SESSION_COOKIE_NAME].value
        self.context.clear_cookies(name=django_settings.CSRF_COOKIE_NAME)
        self.context.add_cookies([{"name": django_settings.SESSION_COOKIE_NAME, "value": cookie, "url": self.base}])

    def open(self) -> Page:
        page = self.context.new_page()
        page.goto(self.address)
        page.locator(".ace_editor .ace_text-input").wait_for(state="attached")
        return page


def text_of(page: Page) -> str:
    return str(page.input_value("#script-text"))


def at_end(page: Page, typed: str) -> None:
    page.locator(".ace_text-input").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type(typed)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.name || document.activeElement.className || document.activeElement.tagName"))


def texts() -> list[str]:
    return list(Version.objects.order_by("number").values_list("text", flat=True))


@pytest.fixture
def cluster(transactional_db: None) -> Cluster:
    world.an_installation()
    return world.a_cluster(world.a_pool())


@pytest.fixture
def olu(cluster: Cluster) -> User:
    return world.a_person("olu", Role.OPERATOR, "aurora")


@pytest.fixture
def ada(cluster: Cluster) -> User:
    return world.a_person("ada", Role.ADMIN)


@pytest.fixture
def desk(chromium: Browser, cluster: Cluster, live_server: Any, settings: Any) -> Iterator[Desk]:  # noqa: F811
    settings.PUBLIC_HOST = urlsplit(live_server.url).netloc
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, base_url=live_server.url)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_navigation_timeout(60_000)  # how long things take is measured elsewhere
    yield Desk(context, cluster, live_server.url)
    context.close()


def test_by_keyboard_alone_tabs_are_written_and_the_editor_is_left(desk: Desk, olu: User) -> None:
    """ajaxorg/ace#3149, swagger-api/swagger-ui#10442: a trap; hedyorg/hedy#4830: tabs became blanks."""
    desk.sign_in(olu)
    page = desk.open()
    for _ in range(40):
        page.keyboard.press("Tab")
        if "ace_text-input" in focused(page):
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "node_init, editor"
    described = page.evaluate("document.getElementById(document.activeElement.getAttribute('aria-describedby')).textContent")
    assert "Esc, then Tab, leaves the editor" in described
    page.keyboard.type("#!/bin/bash\n\techo $list\n")
    assert text_of(page) == "#!/bin/bash\n\techo $list\n\t", "a new line keeps its indentation"
    page.keyboard.press("Shift+Tab")
    assert "ace_text-input" in focused(page)
    page.keyboard.press("Escape")
    expect(page.locator("[data-leave]")).to_have_text("Now Tab leaves the editor.")
    page.keyboard.press("Tab")
    assert focused(page) == "message"
    page.keyboard.type("By hand")
    page.keyboard.press("Shift+Tab")
    assert "ace_text-input" in focused(page)
    page.evaluate("navigator.clipboard.writeText('all:\\r\\n\\tmake\\r\\n')")
    page.keyboard.press("Control+v")
    expect(page.locator("[data-said]")).to_contain_text("Here they end in LF")
    expect(page.locator(".ace_gutter-cell.ace_warning")).to_have_count(1)
    expect(page.locator("[data-findings]")).to_contain_text("SC2154")
    wanted = "#!/bin/bash\n\techo $list\nall:\n\tmake\n"
    assert page.locator("[data-bytes]").inner_text() == str(len(wanted))
    expect(page.locator("[data-state]")).to_contain_text("Not saved, 4 lines changed")
    page.keyboard.press("Control+s")
    expect(page.locator("[data-said]")).to_contain_text("Saved as v1.")
    row = Version.objects.get()
    assert (row.text, row.message, row.saved_by, row.size) == (wanted, "By hand", "olu", len(wanted))
    expect(page.locator("#versions")).to_contain_text("By hand")
    expect(page.locator("[data-save]")).to_have_text("Save as v2")
    assert "ace_text-input" in focused(page), "a save moves nobody away from the text"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        found = Axe().run(page).response["violations"]
        assert [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]] == []
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert desk.complaints == []


def test_the_slower_of_two_chooses_between_both_texts(desk: Desk, olu: User, ada: User) -> None:
    """authgear/authgear-server#1364, NotYuSheng/TracePcap#444: the last one won and nobody noticed."""
    writer = actor_for_session(ada, None)
    save(writer, desk.cluster, NODE_INIT, FIRST)
    desk.sign_in(olu)
    page = desk.open()
    save(writer, desk.cluster, NODE_INIT, FIRST.replace("one", "adas"), "Mirror moved")
    at_end(page, "olus\n")
    expect(page.locator("[data-said]")).to_contain_text("ada saved v2 meanwhile")
    page.keyboard.press("Control+s")
    clash = page.locator("#clash")
    expect(clash).to_contain_text("ada saved v2 of node_init while you wrote: Mirror moved")
    expect(clash.get_by_label("Theirs, v2")).to_contain_text("adas")
    expect(clash.get_by_label("Yours", exact=True)).to_contain_text("olus")
    expect(page.locator("#versions")).to_contain_text("Mirror moved")
    expect(page.locator("[data-save]")).to_have_text("Save as v3")
    assert len(texts()) == 2
    clash.get_by_role("button", name="Take theirs").click()
    assert text_of(page) == FIRST.replace("one", "adas")
    page.get_by_role("button", name="Bring mine back").click()
    assert text_of(page) == f"{FIRST}olus\n"
    page.keyboard.press("Control+s")
    clash.get_by_role("button", name="Edit both in one").click()
    assert text_of(page) == f"{HEAD}adas\ntwo\nthree\nolus\n"
    page.keyboard.press("Control+s")
    expect(page.locator("[data-said]")).to_contain_text("Saved as v3.")
    assert texts() == [FIRST, FIRST.replace("one", "adas"), f"{HEAD}adas\ntwo\nthree\nolus\n"]
    save(writer, desk.cluster, NODE_INIT, f"{HEAD}again\n")
    at_end(page, "more\n")
    page.keyboard.press("Control+s")
    clash.get_by_role("button", name="Save yours as v5").click()
    expect(page.locator("[data-said]")).to_contain_text("Saved as v5.")
    assert texts()[-2:] == [f"{HEAD}again\n", f"{HEAD}adas\ntwo\nthree\nolus\nmore\n"]
    assert [one for one in desk.complaints if "409" not in one] == []


def test_a_session_that_ends_loses_no_text_and_shows_it_to_nobody_else(desk: Desk, olu: User, ada: User) -> None:
    """mozilla/mozilla-django-oidc#363 and #348: signed out in the middle, signed in elsewhere, a closed tab."""
    save(actor_for_session(ada, None), desk.cluster, NODE_INIT, FIRST)
    desk.sign_in(olu)
    page = desk.open()
    Session.objects.all().delete()
    at_end(page, "typed for hours\n")
    said = page.locator("[data-said]")
    expect(said).to_contain_text("You are signed out. Your text is kept in this browser")  # the check in the background
    page.keyboard.press("Control+s")
    expect(page.locator("[data-save]")).to_be_enabled()
    assert text_of(page) == f"{FIRST}typed for hours\n"
    said.get_by_role("button", name="Sign in again").click()
    page.wait_for_url("**/sign-in/**")
    assert parse_qs(urlsplit(page.url).query)["next"] == [desk.address], "back to the page, not to a background request"

    desk.sign_in(ada)
    hers = desk.open()
    assert text_of(hers) == FIRST, "another person on the same browser is shown nothing of it"
    assert "typed for hours" not in hers.content()

    desk.sign_in(olu)
    page.goto(desk.address)
    expect(said).to_contain_text("Restored: what you wrote until")
    expect(said).to_contain_text("on top of v1. It is not saved yet.")
    assert text_of(page) == f"{FIRST}typed for hours\n"
    at_end(page, "and then the tab was closed\n")
    page.close()
    page = desk.open()
    assert text_of(page) == f"{FIRST}typed for hours\nand then the tab was closed\n"

    desk.sign_in(ada)  # in another tab, while his is open
    page.keyboard.press("Control+s")
    expect(page.locator("[data-said]")).to_contain_text("somebody else has signed in")
    assert texts() == [FIRST]
    desk.sign_in(olu)  # and back again: the form's token is an old one by now
    page.keyboard.press("Control+s")
    expect(page.locator("[data-said]")).to_contain_text("Saved as v2.")
    assert texts()[-1] == f"{FIRST}typed for hours\nand then the tab was closed\n"
    assert Version.objects.latest("number").saved_by == "olu"
    assert page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('halftide:draft:'))") == []
    assert [one for one in desk.complaints if "401" not in one and "403" not in one] == []
