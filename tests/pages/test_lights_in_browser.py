"""The two lights in real Chromium, by a clock that only the test moves: browser to console, and console to Kubernetes."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect

from console.clusters.models import Cluster
from console.pages.queries import STALE_AFTER
from tests.pages.test_in_browser import chromium  # noqa: F401  (a fixture)
from tests.pages.test_timeline_in_browser import Reader, cluster  # noqa: F401  (a fixture)

BEAT = 5  # seconds between two frames of a console that is there


class Lights:
    """A page whose clock stands still between two calls of `passes`; `now` is the console's own, a day ahead of it."""

    def __init__(self, reader: Reader) -> None:
        reader.page.clock.install(time=timezone.now())
        self.reader, self.page = reader, reader.open()
        soon = self.page.evaluate("new Date(Date.now() + 5000).toISOString()")  # before its socket has been silent for 12 s
        self.page.clock.pause_at(soon)
        self.now = timezone.now() + timedelta(days=1)
        self.heard = self.now
        for _ in range(2):  # the first tells the page the time
            self.beat()

    def beat(self) -> None:
        """A frame of the console, on the latest socket: up to when it heard Kubernetes."""
        self.reader.revision += 1
        frame = {"type": "rows", "revision": self.reader.revision, "at": self.now.isoformat(), "rows": [], "gone": []}
        self.reader.sockets[-1].send(json.dumps(frame | {"heard_at": self.heard.isoformat()}))
        expect(self.page.locator("main")).to_have_attribute("data-revision", str(self.reader.revision))

    def passes(self, seconds: int, *, beats: bool) -> None:
        """So much later; `beats`: with a console that goes on speaking."""
        for _ in range(0, seconds, BEAT):
            step = min(BEAT, seconds)
            seconds -= step
            self.now += timedelta(seconds=step)
            self.page.clock.run_for(step * 1000)
            if beats:
                self.beat()

    def kubernetes(self) -> tuple[str, str]:
        """What the line under the title says, and how it looks."""
        line = self.page.locator("[data-heard]")
        look = str(line.get_attribute("class"))
        assert self.page.get_attribute("main", "data-kube") == look.removeprefix("fresh ")
        return str(line.locator("[data-heard-text]").inner_text()), look

    def colour(self) -> str:
        return str(self.page.locator("[data-heard] .dot").evaluate("dot => getComputedStyle(dot).backgroundColor"))

    def badge(self) -> str:
        return str(self.page.locator("[data-badge-text]").inner_text())


@pytest.fixture
def lights(chromium: Browser, cluster: Cluster, live_server: Any) -> Iterator[Lights]:  # noqa: F811
    reader = Reader(chromium, live_server.url, cluster)
    yield Lights(reader)
    reader.context.close()


def test_a_console_that_does_not_hear_kubernetes_is_live_and_says_how_old_it_is(lights: Lights) -> None:
    """kubernetes-client/python#1148, nolar/kopf#810: green to 30 s, amber to 120 s, then red, and green by the next word."""
    assert STALE_AFTER.total_seconds() == 30
    colours, age = [], 0
    for seconds, look, says in (
        (29, "fresh ok", ("Heard from Kubernetes 29 s ago",)),
        (31, "fresh stale", ("Heard from Kubernetes 31 s ago",)),
        (119, "fresh stale", ("Heard from Kubernetes 1 min ago",)),
        (121, "fresh lost", (f"Last heard from Kubernetes at {lights.heard:%H:%M:%S} UTC",)),
    ):
        lights.passes(seconds - age, beats=True)
        age = seconds
        assert (lights.kubernetes(), lights.badge()) == ((*says, look), "Live")
        colours.append(lights.colour())
    assert len(set(colours)) == 3
    lights.heard = lights.now
    lights.beat()
    assert lights.kubernetes() == ("Heard from Kubernetes 0 s ago", "fresh ok")
    assert lights.colour() == colours[0]


def test_a_console_that_falls_silent_is_not_live_and_kubernetes_is_not_green_on_its_last_word(lights: Lights) -> None:
    """A socket that is open and dumb for 12 s is none; and nobody then knows how Kubernetes is."""
    lights.passes(11, beats=False)
    assert (lights.kubernetes()[1], lights.badge()) == ("fresh ok", "Live")
    lights.passes(2, beats=False)
    assert lights.badge().startswith("Reconnecting")
    lights.passes(18, beats=False)
    assert lights.kubernetes()[1] == "fresh stale"
    lights.passes(90, beats=False)
    assert lights.kubernetes()[1] == "fresh lost"
    assert lights.badge().startswith("Reconnecting")  # a socket is open again, and dumb
    lights.heard = lights.now
    lights.beat()
    assert (lights.kubernetes()[1], lights.badge()) == ("fresh ok", "Live")
