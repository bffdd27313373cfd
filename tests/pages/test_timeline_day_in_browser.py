"""A day of a timeline, scrolled back in real Chromium."""

import random
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone
from playwright.sync_api import Browser, expect

from console.clusters.models import Cluster
from console.timeline.models import Entry
from tests.pages import world
from tests.pages.test_in_browser import chromium  # noqa: F401  (a fixture)
from tests.pages.test_timeline_in_browser import KATHMANDU, MOST, Reader, cluster  # noqa: F401  (one is a fixture)


def a_day(of: Cluster, number: int) -> list[Entry]:
    """Entries over the last 24 hours, some of them at one instant, oldest first."""
    dice, now = random.Random(11), timezone.now()
    example = world.an_entry(of)
    ats = sorted(now - timedelta(seconds=dice.randrange(86_400)) for _ in range(number))
    made = [
        an_entry_like(example, at=at, message=f"{'odd' if n % 2 else 'even'} entry", severity=dice.choice(("info", "warning")))
        for n, at in enumerate(ats)
    ]
    example.delete()
    return sorted(Entry.objects.bulk_create(made), key=lambda entry: (entry.at, entry.pk))


def an_entry_like(entry: Entry, at: datetime, **fields: Any) -> Entry:
    row = {field.attname: getattr(entry, field.attname) for field in Entry._meta.concrete_fields if not field.primary_key}
    return Entry(**{**row, "at": at, "recorded_at": at, "first_at": at, "last_at": at, **fields})


def days_of(entries: list[Entry], zone: str) -> list[tuple[str, list[int]]]:
    """Each day's heading and its entries, newest first."""
    found: dict[str, list[int]] = {}
    for entry in reversed(entries):
        there = entry.at.astimezone(ZoneInfo(zone))
        found.setdefault(f"{there:%a} {there.day} {there:%b}", []).append(entry.pk)
    return list(found.items())


DAYS = """() => [...document.querySelectorAll("[data-day-head]")].map((head) => [
    head.querySelector("span").textContent,
    [...head.nextElementSibling.querySelectorAll(".ev")].map((row) => +row.dataset.id),
])"""


def test_a_day_scrolled_back_has_every_entry_once_in_order_under_its_own_day(
    chromium: Browser,  # noqa: F811
    cluster: Cluster,  # noqa: F811
    live_server: Any,
) -> None:
    """GSA/notifications-admin#2201, kubernetes-retired/dashboard#662: a day is the reader's; the page does not grow with it."""
    entries = a_day(cluster, 1200)
    for zone in ("UTC", KATHMANDU):
        reader = Reader(chromium, live_server.url, cluster, timezone_id=zone)
        page = reader.open()
        if zone != "UTC":
            page.get_by_role("button", name="Local").click()
        called = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
        expected = {f"{day}, {called}": ids for day, ids in days_of(entries, zone)}
        seen, older = reader.ids(), page.locator("[data-older]")
        while older.is_visible():
            place = reader.ids()[-1]
            older.click()
            expect(page.locator(".ev").last).not_to_have_attribute("data-id", str(place))
            shown = reader.ids()
            assert len(shown) <= MOST
            seen += shown[shown.index(place) + 1 :]
            for heading, ids in page.evaluate(DAYS):
                start = expected[heading].index(ids[0])
                assert ids == expected[heading][start : start + len(ids)]
        assert seen == [entry.pk for entry in reversed(entries)]
        reader.context.close()
