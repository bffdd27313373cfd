"""The gauge in real Chromium, by finger and in a hurry: what is held stays, a settled value is one request, the last one wins."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from playwright.sync_api import APIResponse, Browser, Route, expect

from console.accounts.models import Role
from console.capacity.models import Reclaim
from console.clusters.models import Cluster
from tests.pages import world
from tests.pages.test_in_browser import Desk, chromium, desk, somebody_else_sets  # noqa: F401  (two are fixtures)

SAID = "[data-gauge-said]"


class Finger:
    """One finger on the screen, as the browser hears it from the hardware."""

    def __init__(self, desk: Desk) -> None:  # noqa: F811
        self.desk = desk
        self.line = desk.page.context.new_cdp_session(desk.page)
        box = desk.page.locator("#target").bounding_box()
        assert box is not None
        self.box, self.x, self.y = box, 0.0, box["y"] + 20

    def _touch(self, kind: str, *points: dict[str, float]) -> None:
        self.line.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    def down(self, gpus: int) -> None:
        self.x = self.desk.at(self.box, gpus)
        self._touch("touchStart", {"x": self.x, "y": self.y})

    def along(self, gpus: int) -> None:
        self._move(self.desk.at(self.box, gpus), self.y)

    def across(self, pixels: int) -> None:
        """Over the slider and on, as a thumb does that scrolls the page."""
        self._move(self.x, self.y + pixels)

    def _move(self, x: float, y: float) -> None:
        start, over = self.x, self.y
        for step in range(1, 9):
            self.x, self.y = start + (x - start) * step / 8, over + (y - over) * step / 8
            self._touch("touchMove", {"x": self.x, "y": self.y})

    def up(self) -> None:
        self._touch("touchEnd")


class Answers:
    """What the console answers to a new target: asked of it at once, told to the page when the test says so."""

    def __init__(self, desk: Desk) -> None:  # noqa: F811
        self.desk = desk
        self.asked: list[Route] = []
        desk.page.route("**/target", self._heard)

    def _heard(self, route: Route) -> None:
        self.asked.append(route)

    def wait(self, number: int) -> Route:
        """Until so many have been asked for; the last of them."""
        for _ in range(1000):
            if len(self.asked) >= number:
                break
            self.desk.page.wait_for_timeout(20)
        return self.asked[number - 1]

    def ask(self, number: int) -> tuple[Route, APIResponse]:
        """The console has changed the target; its answer is still on its way."""
        route = self.wait(number)
        return route, route.fetch()


def desired(desk: Desk) -> int:  # noqa: F811
    return Cluster.objects.get(pk=desk.cluster.pk).desired_preemptible_gpus


@pytest.fixture
def phone(chromium: Browser, transactional_db: None, live_server: Any) -> Iterator[Desk]:  # noqa: F811
    world.an_installation()
    cluster = world.a_cluster(world.a_pool())
    client: Client = world.browser(world.a_person("olu", Role.OPERATOR, "aurora"))
    context = chromium.new_context(viewport={"width": 375, "height": 500}, has_touch=True, is_mobile=True)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
    made = Desk(context.new_page(), live_server.url, cluster)
    made.page.locator("#target").scroll_into_view_if_needed()
    yield made
    context.close()


def test_no_update_moves_the_thumb_under_a_finger_and_the_release_is_one_request(phone: Desk) -> None:
    """adobe/spectrum-web-components#2743, andreruffert/rangeslider.js#154."""
    finger = Finger(phone)
    finger.down(16)
    finger.along(56)
    for number in range(3):
        phone.send([phone.panel(), phone.entry(f"meanwhile {number}")])
    somebody_else_sets(phone, 24)
    phone.send([phone.panel()])
    expect(phone.page.locator(".ev")).to_have_count(3)
    assert phone.page.input_value("#target") == "56"
    assert "of 56 desired" in phone.page.inner_text(".figure")
    assert phone.posts == []
    finger.up()
    expect(phone.page.locator(SAID)).to_contain_text("set from 16 to 24 by ada while you moved it to 56")
    assert phone.posts == ["gpus=56&based_on=0"]
    assert desired(phone) == 24
    finger = Finger(phone)
    finger.down(24)
    finger.along(40)
    finger.up()
    expect(phone.page.locator(SAID)).to_contain_text("Target set to 40")
    assert [post.split("&")[0] for post in phone.posts] == ["gpus=56", "gpus=40"]
    assert desired(phone) == 40


def test_a_swipe_that_scrolls_the_page_over_the_slider_changes_nothing(phone: Desk) -> None:
    """adobe/spectrum-web-components#2743, andreruffert/rangeslider.js#154: a wrong target has a price."""
    before = phone.page.evaluate("scrollY")
    finger = Finger(phone)
    finger.down(72)
    finger.across(-120)
    finger.up()
    expect(phone.page.locator(".figure")).to_contain_text("of 16 desired")
    assert phone.page.evaluate("scrollY") != before
    assert phone.page.input_value("#target") == "16"
    assert phone.page.input_value("#want") == "16"
    somebody_else_sets(phone, 24)  # and it is not held either
    phone.send([phone.panel()])
    expect(phone.page.locator(".figure")).to_contain_text("of 24 desired")
    assert phone.posts == []


def test_a_thumb_taken_up_again_stays_in_the_hand_when_the_answer_comes(desk: Desk) -> None:  # noqa: F811
    """Clooos/Bubble-Card#852, openscad/openscad#1761."""
    answers = Answers(desk)
    desk.grab(32)
    desk.page.mouse.up()
    route, answer = answers.ask(1)
    assert desired(desk) == 32
    desk.grab(72)
    route.fulfill(response=answer)
    desk.send([desk.panel()])
    desk.send([desk.entry("the answer is there")])
    expect(desk.page.locator(".ev")).to_have_count(1)
    assert desk.page.input_value("#target") == "72"
    assert "of 72 desired" in desk.page.inner_text(".figure")
    desk.page.mouse.up()
    answers.wait(2).continue_()
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 72")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=32", "gpus=72"]
    assert desired(desk) == 72


def test_what_is_chosen_while_an_answer_is_under_way_is_sent_after_it_and_only_the_last(desk: Desk) -> None:  # noqa: F811
    """Clooos/Bubble-Card#852, openscad/openscad#1761."""
    answers = Answers(desk)
    desk.grab(32)
    desk.page.mouse.up()
    route, answer = answers.ask(1)
    for gpus in (72, 8):
        desk.page.fill("#want", str(gpus))
        desk.page.press("#want", "Enter")
    assert len(answers.asked) == 1
    route.fulfill(response=answer)
    answers.wait(2).continue_()
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 8")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=32", "gpus=8"]
    assert desired(desk) == 8
    expect(desk.page.locator(".figure")).to_contain_text("of 8 desired")


def test_back_to_where_it_was_while_an_answer_is_under_way_is_a_wish_too(desk: Desk) -> None:  # noqa: F811
    """openscad/openscad#1761: a quick re-grab lost the last value."""
    answers = Answers(desk)
    desk.grab(32)
    desk.page.mouse.up()
    route, answer = answers.ask(1)
    desk.grab(16)
    route.fulfill(response=answer)
    desk.send([desk.entry("the answer is there")])
    expect(desk.page.locator(".ev")).to_have_count(1)
    desk.page.mouse.up()
    answers.wait(2).continue_()
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 16")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=32", "gpus=16"]
    assert desired(desk) == 16


def test_a_number_is_sent_whole_and_not_digit_by_digit(desk: Desk) -> None:  # noqa: F811
    """Clooos/Bubble-Card#852, openscad/openscad#1761: typing 12 is no wish for 1."""
    desk.page.clock.install()
    desk.page.reload()
    desk.page.wait_for_function("document.querySelector('#target').hasAttribute('aria-valuetext')")
    desk.page.locator("#want").select_text()
    for digit in "12":
        desk.page.keyboard.press(digit)
        desk.page.clock.run_for(5000)
    assert desk.posts == []
    assert "of 12 desired" in desk.page.inner_text(".figure")
    desk.page.keyboard.press("Enter")
    desk.page.clock.run_for(1000)
    expect(desk.page.locator(SAID)).to_contain_text("8 or 16, not 12")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=12"]


def test_steps_of_the_number_box_settle_before_they_are_sent(desk: Desk) -> None:  # noqa: F811
    """Clooos/Bubble-Card#852, openscad/openscad#1761: an arrow in the box is a change each time it is pressed."""
    desk.page.clock.install()
    desk.page.reload()
    desk.page.wait_for_function("document.querySelector('#target').hasAttribute('aria-valuetext')")
    desk.page.focus("#want")
    desk.page.clock.pause_at(timezone.now() + timedelta(seconds=5))
    for _ in range(5):
        desk.page.keyboard.press("ArrowUp")
        desk.page.clock.run_for(20)
    assert desk.posts == []
    desk.page.clock.run_for(1000)
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 56")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=56"]


def test_a_number_that_is_typed_over_a_step_is_the_only_one_sent(desk: Desk) -> None:  # noqa: F811
    """Clooos/Bubble-Card#852."""
    desk.page.clock.install()
    desk.page.reload()
    desk.page.wait_for_function("document.querySelector('#target').hasAttribute('aria-valuetext')")
    desk.page.focus("#want")
    desk.page.clock.pause_at(timezone.now() + timedelta(seconds=5))
    desk.page.keyboard.press("ArrowUp")
    desk.page.locator("#want").select_text()
    desk.page.keyboard.type("48")
    desk.page.clock.run_for(5000)
    assert desk.posts == []
    desk.page.keyboard.press("Enter")
    desk.page.clock.run_for(100)
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 48")
    assert [post.split("&")[0] for post in desk.posts] == ["gpus=48"]


def test_digits_typed_while_an_answer_is_under_way_stay(desk: Desk) -> None:  # noqa: F811
    """Clooos/Bubble-Card#852: what comes late restores nothing."""
    answers = Answers(desk)
    desk.grab(32)
    desk.page.mouse.up()
    route, answer = answers.ask(1)
    desk.page.locator("#want").select_text()
    desk.page.keyboard.press("6")
    route.fulfill(response=answer)
    desk.send([desk.panel()])
    desk.send([desk.entry("the answer is there")])
    expect(desk.page.locator(".ev")).to_have_count(1)
    assert desk.page.input_value("#want") == "6"
    desk.page.keyboard.type("4")
    desk.page.keyboard.press("Enter")
    answers.wait(2).continue_()
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 64")
    assert desired(desk) == 64


def test_an_answer_that_never_comes_is_told_as_unknown_and_asking_again_does_no_harm(desk: Desk) -> None:  # noqa: F811
    answers = Answers(desk)
    desk.grab(32)
    desk.page.mouse.up()
    route, _ = answers.ask(1)
    route.abort()
    said = desk.page.locator(SAID)
    expect(said).to_contain_text("not known whether the target is 32 now")
    desk.send([desk.panel()])
    expect(desk.page.locator(".figure")).to_contain_text("of 32 desired")
    assert desk.page.get_attribute("#want", "aria-invalid") is None
    said.get_by_role("button", name="Ask for 32").click()
    expect(said).to_be_empty()
    assert desired(desk) == 32
    desk.grab(40)
    desk.page.mouse.up()
    answers.wait(2).fulfill(status=502, body="Bad Gateway")
    expect(said).to_contain_text("The console answered 502, so it is not known whether the target is 40 now")
    said.get_by_role("button", name="Ask for 40").click()
    answers.wait(3).continue_()
    expect(said).to_contain_text("Target set to 40")
    assert desired(desk) == 40


def test_a_form_without_an_answer_is_not_said_to_have_done_nothing(desk: Desk) -> None:  # noqa: F811
    """A reclaim that is pressed again would take back twice as much."""
    desk.page.route("**/cordon", lambda route: route.abort())
    desk.page.get_by_role("button", name="Cordon gpu-preemptible-dp-51fb").click()
    expect(desk.page.get_by_role("alert")).to_have_text(
        "No answer came. It may have been done all the same: look before you ask again."
    )


def test_a_reclaim_that_is_pressed_again_after_no_answer_takes_nothing_twice(
    chromium: Browser,  # noqa: F811
    transactional_db: None,
    live_server: Any,
) -> None:
    world.an_installation()
    cluster = world.a_cluster(world.a_pool())
    for name in ("gpu-preemptible-dp-51fb", "gpu-preemptible-dp-a3e8"):
        world.a_node(cluster, name)
    client: Client = world.browser(world.a_person("ada", Role.ADMIN, fleet=True))
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
    page = Desk(context.new_page(), live_server.url, cluster).page

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/reclaim", lose, times=1)
    page.get_by_text("Reclaim 8 GPUs now").click()
    button = page.get_by_role("button", name="Reclaim now")
    button.click()
    expect(page.get_by_role("alert")).to_have_text("No answer came. It is done once, so to press again does no harm.")
    assert Reclaim.objects.count() == 1
    button.click()
    expect(button).to_be_hidden()
    assert Reclaim.objects.count() == 1
    page.get_by_text("Reclaim 8 GPUs now").click()
    button.click()  # another wish
    expect(button).to_be_hidden()
    assert Reclaim.objects.count() == 2
    context.close()


def test_a_late_answer_does_not_take_back_what_came_after_it(desk: Desk) -> None:  # noqa: F811
    """openscad/openscad#1761, Clooos/Bubble-Card#852."""
    answers = Answers(desk)
    desk.grab(32)
    desk.page.mouse.up()
    route, answer = answers.ask(1)
    somebody_else_sets(desk, 64)
    desk.send([desk.panel()])
    route.fulfill(response=answer)
    expect(desk.page.locator(SAID)).to_contain_text("Target set to 32. ada has set it to 64 since.")
    expect(desk.page.locator(".figure")).to_contain_text("of 64 desired")
    assert desk.page.input_value("#target") == desk.page.input_value("#want") == "64"
    assert desired(desk) == 64
