"""The timeline page: one filter for page, pieces, files and API; links that hold; nothing typed is lost."""

import csv
import html
import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync  # noqa: TID251  (a file is read on the test's own thread and connection)
from django.db import connection
from django.http import HttpResponseBase
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.capacity.models import Pool
from console.clusters.models import Cluster
from console.pages import exports
from console.timeline import queries
from console.timeline.models import LastLook
from console.timeline.retention import prune
from tests.pages import world

ROW = re.compile(r'<li class="ev[^"]*" id="e(\d+)"')
NODE = "gpu-preemptible-dp-7f2c"


@pytest.fixture
def cluster(pool: Pool) -> Cluster:
    """Entries of all kinds, a minute apart, newest last."""
    made = world.a_cluster(pool)
    kinds = [
        {"message": f"{NODE} boots", "reason": "NodeBooting", "node_name": NODE, "compute_class": "preemptible"},
        {"message": "Target from 8 to 16", "reason": "TargetChanged", "actor_kind": "person", "actor_name": "ada"},
        {"message": "OOM killed ünder 100% load", "reason": "OOMKilling", "severity": "warning", "actor_kind": "kubernetes"},
        {"message": "gpu-dp-1 is gone", "reason": "NodeLost", "severity": "critical", "node_name": "gpu-dp-1"},
        {"message": "=1+1 by a key", "reason": "TargetChanged", "actor_kind": "key", "actor_name": "ci: sweeps"},
    ]
    for number in range(20):
        kind = kinds[number % len(kinds)]
        about = {"subject_kind": "Node", "subject_name": kind["node_name"]} if kind.get("node_name") else {}
        world.an_entry(made, at=timezone.now() - timedelta(minutes=60 - number), **{**kind, **about})
    return made


def ids(page: str) -> list[int]:
    return [int(found) for found in ROW.findall(page)]


def read(answer: HttpResponseBase) -> str:
    """A streamed file, as a browser gets it."""

    async def whole() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])  # type: ignore[attr-defined]

    return async_to_sync(whole)().decode()


WISHES = {
    "": 20,
    "severity=warning": 4,
    "reason=TargetChanged": 8,
    f"node={NODE}": 4,
    "class=preemptible": 4,
    "actor=person": 4,
    "actor=key%3Aci%3A+sweeps": 4,
    "actor=system": 8,
    "q=oom": 4,
    "q=100%25": 4,
    "q=%C3%9CNDER": 0,  # only the letters a to z are the same in both cases, in the database and in the browser
    "q=1%25load": 0,  # taken literally
    "last=24h": 20,
    "reason=TargetChanged&actor=person&last=1h": 4,
    "reason=Nothing": 0,
}


def test_a_wish_that_makes_no_sense_keeps_what_was_typed_and_shows_no_rows(cluster: Cluster, vic: Client) -> None:
    path = f"/clusters/{cluster.pk}/timeline"
    answer = vic.get(path, {"q": "oom", "reason": "OOMKilling", "from": "tomorrow"})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "such as 2026-11-12T14:03" in page
    assert 'value="oom"' in page
    assert 'value="tomorrow" aria-invalid="true"' in page
    assert "<option selected>OOMKilling</option>" in page
    assert ids(page) == []
    for tail in ("/rows?before=2026-01-01T00:00:00%2B00:00~1&severity=x", ".csv?severity=x", ".json?last=1y"):
        answer = vic.get(path + tail, headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_page_pieces_and_files_answer_a_filter_alike_and_chips_say_it(
    cluster: Cluster, vic: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PIECE", 3)  # rows at a time: what is longer than memory goes on from place to place
    path = f"/clusters/{cluster.pk}/timeline"
    for query, number in WISHES.items():
        page = vic.get(f"{path}?{query}").content.decode()
        shown = ids(page)
        assert len(shown) == number, query
        assert page.count("Take away: ") == len([part for part in query.split("&") if part]), query
        assert ("No entry matches" in page) == (number == 0)
        end = "before=9999-01-01T00:00:00%2B00:00~1"
        assert ids(vic.get(f"{path}/rows?{end}&{query}").content.decode()) == shown
        start = "after=2001-01-01T00:00:00%2B00:00~1"
        assert ids(vic.get(f"{path}/rows?{start}&{query}").content.decode()) == shown
        lines = list(csv.DictReader(io.StringIO(read(vic.get(f"{path}.csv?{query}")), newline="")))
        assert [int(line["id"]) for line in lines] == shown
        assert all(not line["message"].startswith("=") for line in lines)
        entries = json.loads(read(vic.get(f"{path}.json?{query}")))["entries"]
        assert [entry["id"] for entry in entries] == shown


def test_an_hour_of_the_picture_is_a_link_that_keeps_the_filter_and_nothing_typed_is_lost(cluster: Cluster, vic: Client) -> None:
    path = f"/clusters/{cluster.pk}/timeline"
    page = vic.get(f"{path}?severity=critical&last=7d").content.decode()
    assert "4 in the last 24 hours" in page
    hours = [html.unescape(href) for href in re.findall(r'<a href="([^"]+)" data-hour', page)]
    assert len(hours) in (25, 26)
    assert sum(len(ids(vic.get(hour).content.decode())) for hour in hours) == 4
    chosen = vic.get(hours[-2]).content.decode()
    assert chosen.count("data-hour=") == len(hours)
    assert re.search(r'data-hour="[^"]+" aria-current="true"', chosen)
    assert re.search(r'type="text" step="any" name="to" value="[^"]+59:59\.999999"', chosen)  # a field for dates cannot hold it
    assert vic.get(f"{path}/lately?severity=critical").content.decode().count("data-hour=") == len(hours)
    assert "data-hour" not in vic.get(f"{path}?severity=none").content.decode()


def test_a_day_that_takes_too_long_to_count_is_no_picture_and_no_number(
    cluster: Cluster, vic: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "lately", lambda *_: None)
    path = f"/clusters/{cluster.pk}/timeline"
    page = vic.get(f"{path}?q=oom").content.decode()
    assert "in the last 24 hours</span>" not in page
    assert "data-lately" not in page
    answer = vic.get(f"{path}/lately?q=oom")
    assert (answer.status_code, answer.content) == (204, b"")


def test_the_api_reads_the_same_filter(cluster: Cluster, vic: Client) -> None:
    found = vic.get(f"/v1/compute/clusters/{cluster.pk}/node_lifecycle_events", {"node": NODE}).json()["node_lifecycle_events"]
    shown = ids(vic.get(f"/clusters/{cluster.pk}/timeline", {"node": NODE}).content.decode())
    assert [int(event["id"]) for event in found] == shown


def test_one_instant_is_the_same_in_list_tooltip_files_and_api(pool: Pool, vic: Client) -> None:
    """dbtrail/dbtrail#1354, datalust/seq-tickets#561, GSA/notifications-admin#2201: the zone named, nothing rounded."""
    at = datetime(2026, 11, 12, 14, 3, 2, 123000, UTC)
    made = world.a_cluster(pool)
    world.an_entry(made, at=at, subject_kind="Node", subject_name=NODE, node_name=NODE)
    path = f"/clusters/{made.pk}/timeline"
    page = vic.get(path).content.decode()
    assert f'<time datetime="{at.isoformat()}" data-clock title="2026-11-12 14:03:02 UTC">14:03:02</time>' in page
    assert "12 Nov, UTC</span>" in page
    (line,) = csv.DictReader(io.StringIO(read(vic.get(f"{path}.csv"))))
    (entry,) = json.loads(read(vic.get(f"{path}.json")))["entries"]
    (event,) = vic.get(f"/v1/compute/clusters/{made.pk}/node_lifecycle_events").json()["node_lifecycle_events"]
    told = {line["at"], entry["at"], event["timestamp"]}
    assert {datetime.fromisoformat(instant) for instant in told} == {at}
    assert all(instant.endswith(("Z", "+00:00")) for instant in told)


def test_a_file_is_named_by_cluster_and_range(pool: Pool, vic: Client) -> None:
    made = world.a_cluster(pool, world.HOSTILE[:63])
    answer = vic.get(f"/clusters/{made.pk}/timeline.csv", {"from": "2026-11-12T14:03", "to": "2026-11-12T15:00"})
    name = "img-src-x-onerror-alert-1-svg-onload-alert-2-script_timeline_2026-11-12T1403Z_to_2026-11-12T1500Z.csv"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer["Content-Type"] == "text/csv; charset=utf-8"


def test_a_link_opens_an_entry_among_its_neighbours(pool: Pool, vic: Client) -> None:
    made = world.a_cluster(pool)
    at = timezone.now()
    rows = [world.an_entry(made, f"entry {number}", at=at - timedelta(minutes=number)) for number in range(300)]
    found = rows[150]
    path = f"/clusters/{made.pk}/timeline/{found.pk}"
    assert f'href="{path}#e{found.pk}"' in vic.get(f"/clusters/{made.pk}/timeline/{rows[120].pk}").content.decode()
    page = vic.get(path).content.decode()
    assert ids(page) == [row.pk for row in rows[110:211]]
    assert f'data-linked="e{found.pk}"' in page
    assert "data-gap" in page  # there are newer ones, which the page fetches as one goes up
    assert "data-gap" not in vic.get(f"/clusters/{made.pk}/timeline/{rows[3].pk}").content.decode()


def test_a_link_to_a_pruned_entry_says_when_it_went(pool: Pool, vic: Client) -> None:
    made, other = world.a_cluster(pool), world.a_cluster(pool, "other")
    now = timezone.now()
    gone = world.an_entry(made, at=now - timedelta(days=91))
    prune(now)
    answer = vic.get(f"/clusters/{made.pk}/timeline/{gone.pk}")
    assert answer.status_code == 410
    assert f"was pruned on {now:%-d %b %Y %H:%M} UTC" in answer.content.decode()
    assert vic.get(f"/clusters/{other.pk}/timeline/{gone.pk}").status_code == 404
    assert vic.get(f"/clusters/{made.pk}/timeline/{10**18}").status_code == 404


def test_what_one_has_seen_is_marked_for_oneself_alone_and_only_forward(cluster: Cluster, vic: Client, olu: Client) -> None:
    path = f"/clusters/{cluster.pk}/timeline"
    newest, *_, oldest = ids(vic.get(path).content.decode())
    assert vic.post(f"{path}/looked", {"entry": newest}).json() == {"moved": True}
    assert vic.post(f"{path}/looked", {"entry": oldest}).json() == {"moved": False}
    assert vic.post(f"{path}/looked", {"entry": 10**17}).json() == {"moved": False}
    assert vic.post(f"{path}/looked", {"entry": "x"}).status_code == 400
    assert f'data-seen="{newest}"' in vic.get(path).content.decode()
    assert f'data-seen="{newest}"' in vic.get(f"/clusters/{cluster.pk}").content.decode()
    assert "data-seen=" not in olu.get(path).content.decode()
    assert LastLook.objects.count() == 1


def test_the_page_asks_as_much_for_nothing_as_for_much_whatever_the_filter(pool: Pool, ada: Client) -> None:
    empty, full = world.a_cluster(pool, "empty"), world.a_busy_cluster(pool, "full", 30)
    for number in range(120):
        name = f"gpu-{number}"
        who = {"actor_kind": "person", "actor_name": name}
        world.an_entry(full, f"entry {number}", node_name=name, severity="warning", reason=name, **who)

    def asked(made: Cluster, query: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert ada.get(f"/clusters/{made.pk}/timeline?{query}").status_code == 200
        return len(seen)

    asked(empty, "")
    for query in ("", "severity=warning", "reason=NodeReady&class=standard&last=7d", "actor=person&node=gpu-1", "q=entry"):
        assert asked(empty, query) == asked(full, query), query


def test_a_search_that_takes_too_long_says_what_makes_it_quick(
    cluster: Cluster, vic: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LONGEST", 1)
    monkeypatch.setattr(queries, "before", lambda rows, _: rows.extra(where=["pg_sleep(1) IS NOT NULL"]))
    answer = vic.get(f"/clusters/{cluster.pk}/timeline", {"q": "oom", "before": "2026-01-01T00:00:00+00:00~1"})
    assert answer.status_code == 422
    assert "A shorter time, a node or a reason" in answer.content.decode()
    assert 'value="oom"' in answer.content.decode()
