"""The timeline in real Chromium: live and loaded show the same rows, bounded, in its place, and in a zone that is named."""

import json
import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Browser, Page, Request, WebSocketRoute, expect

from console.accounts.models import Role
from console.clusters.models import Cluster
from console.timeline import queries
from console.timeline.filters import Filter, for_browser, narrow, query_of
from console.timeline.models import Entry, LastLook
from console.timeline.rows import render_entry
from tests.pages import world
from tests.pages.test_in_browser import chromium  # noqa: F401  (a fixture)

MOST = 500  # rows that stand on a page
KATHMANDU, LOS_ANGELES = "Asia/Kathmandu", "America/Los_Angeles"


class Reader:
    """A person with a cluster's timeline open, and the socket's other end."""

    def __init__(self, browser: Browser, address: str, cluster: Cluster, **more: Any) -> None:
        client = world.browser(world.a_person(f"reader-{timezone.now().timestamp()}", Role.VIEWER, "aurora"))
        name = settings.SESSION_COOKIE_NAME
        self.context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=address, **more)
        self.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": address}])
        self.context.set_default_timeout(60_000)  # how long things take is measured elsewhere
        self.page: Page = self.context.new_page()
        self.address, self.cluster, self.revision = f"/clusters/{cluster.pk}/timeline", cluster, 0
        self.sockets: list[WebSocketRoute] = []
        self.requests: list[str] = []
        self.page.route_web_socket("**/live/**", self._opened)
        self.page.route("**/updates?**", lambda route: route.fulfill(json={"type": "rows", "revision": 0, "rows": []}))
        self.page.on("request", self._asked)

    def _opened(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)

    def _asked(self, request: Request) -> None:
        """Not the poll: where the machine is slow the page thinks its socket silent, and asks instead."""
        if "/updates?" not in request.url:
            self.requests.append(request.url)

    def open(self, tail: str = "") -> Page:
        self.page.goto(self.address + tail)
        expect(self.page.locator("[data-zones]")).to_be_visible()
        self.send([])
        expect(self.page.locator("[data-badge]")).to_have_text("Live")
        self.requests.clear()
        return self.page

    def send(self, entries: list[Entry]) -> None:
        self.revision += 1
        rows = [{"kind": "entry", "id": str(entry.pk), "html": render_entry(entry)} for entry in entries]
        frame = {"type": "rows", "revision": self.revision, "at": timezone.now().isoformat(), "rows": rows, "gone": []}
        self.sockets[-1].send(json.dumps(frame))

    def ids(self) -> list[int]:
        return [int(pk) for pk in self.page.locator(".ev").evaluate_all("rows => rows.map((row) => row.dataset.id)")]


@pytest.fixture
def cluster(transactional_db: None) -> Cluster:
    world.an_installation()
    return world.a_cluster(world.a_pool())


@pytest.fixture
def reader(chromium: Browser, cluster: Cluster, live_server: Any) -> Iterator[Reader]:  # noqa: F811
    made = Reader(chromium, live_server.url, cluster)
    yield made
    made.context.close()


def some_entries(cluster: Cluster, number: int, dice: random.Random) -> list[Entry]:
    """Of all kinds, some of them at one instant, a few full of markup."""
    start = timezone.now() - timedelta(hours=3)
    return [
        world.an_entry(
            cluster,
            dice.choice(("OOM killed ünder 100% load", "oom again", "Back-off", "Ünder", world.HOSTILE)),
            at=start + timedelta(seconds=dice.randrange(10_000)),
            reason=dice.choice(("OOMKilling", "BackOff", "NodeReady")),
            severity=dice.choice(("info", "warning", "critical")),
            node_name=dice.choice(("", "gpu-1", "gpu-2")),
            compute_class=dice.choice(("", "standard", "preemptible")),
            actor_kind=dice.choice(("person", "key", "system", "kubernetes")),
            actor_name=dice.choice(("ada", "a: b", "kubelet")),
        )
        for _ in range(number)
    ]


def answer(cluster: Cluster, wish: Filter, now: datetime) -> list[int]:
    """What the database says."""
    rows = narrow(Entry.objects.filter(stream_id=cluster.stream), wish, now)
    return list(rows.order_by("-at", "-id").values_list("pk", flat=True))


def a_wish(dice: random.Random, entry: Entry) -> Filter:
    """One to three parts, most of them of an entry that is there."""
    parts: dict[str, Any] = {
        "text": dice.choice(("oom", "OOM", "100%", "ünder", "ÜNDER", "_", "<img", "back-")),
        "severity": entry.severity,
        "reason": entry.reason,
        "node": entry.node_name,
        "compute_class": entry.compute_class,
        "actor": dice.choice((entry.actor_kind, f"{entry.actor_kind}:{entry.actor_name}")),
    }
    chosen = {name: parts[name] for name in dice.sample(sorted(parts), dice.randrange(1, 4))}
    when = dice.choice(({}, {"last": "1h"}, {"since": entry.at}, {"until": entry.at}))
    return Filter(**chosen, **when)


ASK = """async ([wish, now]) => {
    const script = document.querySelector("script[src$='/cluster.js']").src;
    const { matches } = await import(new URL("filter.js", script));
    return [...document.querySelectorAll(".ev")].filter((row) => matches(row, wish, now)).map((row) => +row.dataset.id);
}"""


def test_a_filtered_live_page_shows_what_loading_it_again_shows(cluster: Cluster, reader: Reader) -> None:
    """dkron-io/dkron#921 too: what is markup in a message is text, and found as text, on the live path as on the page."""
    dice = random.Random(6)
    entries = some_entries(cluster, 90, dice)
    page = reader.open()
    assert len(reader.ids()) == 90
    now = timezone.now()
    for _ in range(60):
        wish = a_wish(dice, dice.choice(entries))
        found = page.evaluate(ASK, [for_browser(wish), now.timestamp() * 1000])
        assert found == answer(cluster, wish, now), wish
    wish = Filter(severity="warning", text="oom")
    reader.open(f"?{query_of(wish)}")
    reader.send(some_entries(cluster, 60, dice))
    expected = answer(cluster, wish, now)
    expect(page.locator(".ev")).to_have_count(len(expected))
    assert reader.ids() == expected
    assert reader.requests == []
    reader.open(f"?{query_of(wish)}")
    assert reader.ids() == expected
    assert page.locator(".ev img, .ev svg[onload]").count() == 0
    assert Axe().run(page).violations_count == 0


def test_a_long_flood_stays_bounded_keeps_the_readers_place_and_loses_nothing(cluster: Cluster, reader: Reader) -> None:
    """TheThingsNetwork/lorawan-stack#2887, kubernetes-retired/dashboard#662, kubeshop/monokle#3855."""
    start = timezone.now() - timedelta(hours=1)
    old = [world.an_entry(cluster, f"{'odd' if n % 2 else 'even'} entry", at=start + timedelta(seconds=n)) for n in range(130)]
    page = reader.open()
    new = [world.an_entry(cluster, f"{'odd' if n % 2 else 'even'} entry") for n in range(650)]
    for first in range(0, 650, 50):  # a second's worth in each frame
        reader.send(new[first : first + 50])
    expect(page.locator(".ev").first).to_have_attribute("data-id", str(new[-1].pk))
    assert reader.ids() == [entry.pk for entry in reversed(new)][:MOST]
    assert reader.requests == []  # no event asks the server
    # Read on into the past: what had gone from the window comes back, the other end goes, and every row comes once.
    seen = reader.ids()
    while page.locator("[data-older]").is_visible():
        place = reader.ids()[-1]
        page.locator("[data-older]").click()
        expect(page.locator(".ev").last).not_to_have_attribute("data-id", str(place))
        shown = reader.ids()
        assert len(shown) <= MOST
        seen += shown[shown.index(place) + 1 :]
    assert seen == [entry.pk for entry in reversed([*old, *new])]
    # Far from the newest, rows are only counted; the reader's row stays where it is, and upwards leads back to the newest.
    middle = page.locator(".ev").nth(200)
    middle.scroll_into_view_if_needed()
    place, pk = middle.bounding_box(), reader.ids()[200]
    late = [world.an_entry(cluster, "late") for _ in range(3)]
    reader.send(late)
    expect(page.locator("[data-new]")).to_have_text("3 new")
    assert page.locator(f"#e{pk}").bounding_box() == place
    while page.locator("[data-newer]").is_visible():
        first = reader.ids()[0]
        page.locator("[data-newer]").click()
        expect(page.locator(".ev").first).not_to_have_attribute("data-id", str(first))
        assert len(reader.ids()) <= MOST
    assert reader.ids()[:4] == [*(entry.pk for entry in reversed(late)), new[-1].pk]


def test_one_instant_reads_alike_in_every_zone_and_the_zone_is_named(
    chromium: Browser,  # noqa: F811
    cluster: Cluster,
    live_server: Any,
) -> None:
    """dbtrail/dbtrail#1354, GSA/notifications-admin#2201: UTC+5:45 and UTC−8, live row and loaded row."""
    at = timezone.now().replace(hour=20, minute=3, second=2) - timedelta(days=2)
    entry = world.an_entry(cluster, at=at)
    for name in (KATHMANDU, LOS_ANGELES):
        reader = Reader(chromium, live_server.url, cluster, timezone_id=name)
        page, there = reader.open(), at.astimezone(ZoneInfo(name))
        called = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")  # Kathmandu has two spellings
        utc = f"{at:%Y-%m-%d %H:%M:%S} UTC"
        clock = page.locator(f"#e{entry.pk} time").first
        expect(clock).to_have_text(f"{at:%H:%M:%S}")
        page.get_by_role("button", name="Local").click()
        for live in (False, True):
            if live:
                entry.revision += 1
                reader.send([entry])
            expect(clock).to_have_text(f"{there:%H:%M:%S}")
            expect(clock).to_have_attribute("title", f"{utc}, {there:%H:%M:%S} {called}")
            expect(page.locator(".day").last).to_contain_text(f"{there:%a} {there.day} {there:%b}, {called}")
        page.reload()
        expect(clock).to_have_text(f"{there:%H:%M:%S}")  # it is kept
        page.get_by_role("button", name="UTC", exact=True).click()
        expect(clock).to_have_text(f"{at:%H:%M:%S}")
        expect(clock).to_have_attribute("title", utc)
        reader.context.close()


def test_the_longest_names_and_messages_make_no_page_scroll_sideways(cluster: Cluster, reader: Reader) -> None:
    """Names as long as Kubernetes lets them be, in one word and in many, one that is markup; actors and reasons without end."""
    cluster.name = "a-very-long-name-" * 3
    cluster.save()
    for name in (("a-very-long-name-" * 18)[:253], "w" * 253, world.HOSTILE):
        node = world.a_node(cluster, name, ready=name.startswith("a"))
        drain = world.a_drain(node, name="p" * 60)
        world.an_entry(cluster, f"{name} goes back", subject_name=name, node_name=name, drain_id=drain.pk, severity="warning")
    for kind in ("person", "key"):
        world.an_entry(cluster, "x" * 300, reason="R" * 128, severity="critical", actor_kind=kind, actor_name="n" * 200)
    page = reader.open()
    for width in (1200, 375):
        page.set_viewport_size({"width": width, "height": 800})
        for tab in ("", "/nodes", "/timeline"):
            page.goto(f"/clusters/{cluster.pk}{tab}")
            expect(page.locator("h1")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, tab


NIGHT = """async () => {
    const load = (name) => import(new URL(name, document.querySelector("script[src$='/cluster.js']").src));
    const [{ stretch }, { ticks }] = [await load("bars.js"), await load("sketch.js")];
    const hours = [22, 23, 24, 25, 26].map((hour) => Date.UTC(2026, 9, 24, hour));
    return [hours.map(stretch), ticks(hours[0], hours[4], 4).map(({ word }) => word)];
}"""


def test_the_last_day_counts_live_rows_once_in_every_zone_and_an_hour_opens_by_key(
    chromium: Browser,  # noqa: F811
    cluster: Cluster,
    live_server: Any,
) -> None:
    """GSA/notifications-admin#2201: the hours of a night on which clocks are put back are 25, each once, each with its zone."""
    now = timezone.now()
    old = [world.an_entry(cluster, at=now - timedelta(hours=n), severity="warning" if n == 3 else "info") for n in (1, 3, 30)]
    reader = Reader(chromium, live_server.url, cluster, timezone_id="Europe/Berlin")
    page = reader.open()
    says, hours = page.locator("[data-lately-says]"), page.locator("[data-hour]")
    expect(says).to_have_text("2 in the last 24 hours")
    news = [world.an_entry(cluster, at=now - timedelta(hours=3), severity="critical"), world.an_entry(cluster, at=now)]
    for _ in range(2):
        for one in (*news, old[0]):
            one.revision += 1
        reader.send([*news, old[0]])  # a repeat is a row that has changed, and no second one
    expect(says).to_have_text("4 in the last 24 hours")
    assert reader.requests == []
    utc = timezone.now() - timedelta(hours=3)
    title = hours.locator("title", has_text="warning")
    expect(title).to_have_text(re.compile(rf"{utc:%H}:00 to .* UTC: 2 entries, 1 warning, 1 critical$"))
    drawn = page.locator("[data-bar]:has(.s-crit) rect").evaluate_all("parts => parts.map((part) => part.outerHTML)")
    page.get_by_role("button", name="Local").click()
    expect(title).to_have_text(re.compile(rf"{utc.astimezone(ZoneInfo('Europe/Berlin')):%H}:00 to .* Europe/Berlin: 2 entries"))
    tick = page.locator("[data-tick]").first
    at = datetime.fromisoformat(tick.get_attribute("data-tick") or "").astimezone(ZoneInfo("Europe/Berlin"))
    expect(tick).to_have_text(f"{at:%H:%M}")
    night = ("00:00 to 01:00", "01:00 to 02:00", "02:00 to 02:00", "02:00 to 03:00", "03:00 to 04:00")
    under_the_chart = [hour[:5] for hour in night]
    assert page.evaluate(NIGHT) == [[f"Sun 25 Oct, {hour} Europe/Berlin" for hour in night], under_the_chart]
    assert Axe().run(page).violations_count == 0
    page.reload()
    expect(title).to_have_text(re.compile("Europe/Berlin: 2 entries, 1 warning, 1 critical$"))
    assert page.locator("[data-bar]:has(.s-crit) rect").evaluate_all("parts => parts.map((part) => part.outerHTML)") == drawn
    hours.last.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".ev")).to_have_count(2)
    assert page.locator(".spark a[aria-current=true]").count() == 1
    reader.context.close()


def test_a_picture_that_cannot_be_drawn_anew_stays_and_is_asked_for_once_a_bar(
    cluster: Cluster, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.an_entry(cluster)
    page = reader.page
    page.clock.install(time=timezone.now())
    page.goto(reader.address)
    says, asked = page.locator("[data-lately-says]"), "**/timeline/lately"
    expect(page.locator("[data-zones]")).to_be_visible()
    drawn = page.locator("[data-bar]").count()
    monkeypatch.setattr(queries, "lately", lambda *_: None)
    for _ in range(2):
        with page.expect_response(asked) as answer:
            page.clock.fast_forward(20 * 60_000)  # a bar later, whichever part of one had gone
        assert answer.value.status == 204
        reader.requests.clear()
        page.clock.run_for(60_000)
        assert [url for url in reader.requests if url.endswith("/lately")] == []
    expect(says).to_have_text("1 in the last 24 hours")
    assert page.locator("[data-bar]").count() == drawn
    world.an_entry(cluster)
    monkeypatch.undo()
    page.clock.fast_forward(20 * 60_000)
    expect(says).to_have_text("2 in the last 24 hours")


TROUBLE = """() => {
    window.asked = 0;
    const real = window.fetch;
    const stub = (url) => (url.includes("/lately") ? Promise.resolve(new Response("", { status: 503 })) : new Promise(() => {}));
    window.fetch = (url) => { window.asked += url.includes("/lately"); return stub(url); };
    window.mend = () => { window.fetch = real; };
}"""


def test_a_console_in_trouble_is_asked_for_the_picture_less_and_less_often(cluster: Cluster, reader: Reader) -> None:
    world.an_entry(cluster)
    page = reader.page
    page.clock.install(time=timezone.now())
    page.goto(reader.address)
    expect(page.locator("[data-zones]")).to_be_visible()
    page.evaluate(TROUBLE)
    page.clock.fast_forward(20 * 60_000)
    page.clock.run_for(10 * 60_000)  # 60 looks at the clock
    assert 3 <= page.evaluate("window.asked") <= 8  # after 20, 40, 80, 160 and 320 s, each a fifth more or less
    expect(page.locator("[data-lately-says]")).to_have_text("1 in the last 24 hours")
    world.an_entry(cluster)
    page.evaluate("window.mend()")
    page.clock.fast_forward(20 * 60_000)
    expect(page.locator("[data-lately-says]")).to_have_text("2 in the last 24 hours")


def test_runs_fold_and_open_links_find_their_row_and_the_last_look_is_marked(cluster: Cluster, reader: Reader) -> None:
    start = timezone.now() - timedelta(minutes=10)
    run = [world.an_entry(cluster, f"Back-off in pod sweep-{n}", at=start + timedelta(seconds=n)) for n in range(12)]
    page = reader.open()
    button = page.get_by_role("button", name="12 entries alike")
    expect(button).to_have_text(f"×12, {run[0].at:%H:%M:%S}–{run[-1].at:%H:%M:%S}")
    assert page.locator(".ev:visible").count() == 1
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator(".ev:visible").count() == 12
    page.keyboard.press("Enter")
    reader.send([world.an_entry(cluster, f"Back-off in pod sweep-{n}") for n in (12, 13)])
    expect(page.get_by_role("button", name="14 entries alike")).to_be_visible()
    page.wait_for_timeout(2200)  # a page that was seen, and not only passed
    reader.open(f"/{run[5].pk}#e{run[5].pk}")
    expect(page.locator(f"#e{run[5].pk}")).to_be_in_viewport()
    expect(page.locator("[aria-current=true].ev")).to_have_attribute("id", f"e{run[5].pk}")
    newest = Entry.objects.order_by("-pk").first()
    assert newest is not None
    assert [look.entry_id for look in LastLook.objects.all()] == [newest.pk]
    world.an_entry(cluster, "news", severity="critical")
    page = reader.open()
    expect(page.locator(".since-mark")).to_contain_text("New since you last looked")
    order = page.locator("[data-day-rows] > li").evaluate_all("rows => rows.slice(0, 3).map((row) => row.dataset.id ?? 'mark')")
    assert order[1:] == ["mark", str(newest.pk)]
    page.emulate_media(media="print")
    assert page.locator(".ev:visible").count() == 15  # paper shows all
