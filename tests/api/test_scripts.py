"""Startup scripts by the API: kinds, versions, If-Match, and the same bytes as by any other way in."""

from typing import Any

import pytest
from django.http import HttpResponse

from console.clusters.models import Cluster
from console.scripts.models import Version
from tests.api.world import Api, World, error

HEAD = "#!/bin/bash\n"


@pytest.fixture
def scripts(path: str) -> str:
    return f"{path}/startup_scripts"


def put(who: Api, scripts: str, script: object, kind: str = "node_init", **headers: str) -> HttpResponse:
    return who.put(f"{scripts}/{kind}", {"script": script}, **headers)


def test_a_script_is_put_listed_and_read(operator: Api, scripts: str) -> None:
    assert operator.get(scripts).json()["startup_scripts"][0]["current"] is None
    assert error(operator.get(f"{scripts}/node_init"), 404)["code"] == "no_script"
    answer = operator.put(f"{scripts}/node_init", {"script": f"{HEAD}\techo\n", "message": "First"})
    assert answer.status_code == 200, answer.content
    made = answer.json()
    assert (made["version"], made["bytes"], made["changed"], made["note"], made["message"]) == (1, 18, True, None, "First")
    assert (made["saved_by"], made["lines_added"], made["lines_removed"]) == ("operator key", 2, 0)
    read = operator.get(f"{scripts}/node_init")
    assert read.json()["script"] == f"{HEAD}\techo\n"
    assert read["ETag"] == answer["ETag"] == f'"1-{made["sha256"][:16]}"'
    [listed] = operator.get(scripts).json()["startup_scripts"]
    assert (listed["kind"], listed["current"]["version"]) == ("node_init", 1)
    assert "script" not in listed["current"]


def test_crlf_becomes_lf_and_the_note_says_so(operator: Api, scripts: str) -> None:
    """canonical/cloud-init#2183, coreos/coreos-cloudinit#289: the same bytes by form, by API and out of a file."""
    file = b"#!/bin/bash\r\nprintf 'a\\r\\n'\r\n"
    found = put(operator, scripts, file.decode()).json()
    assert Version.objects.get().text.encode() == b"#!/bin/bash\nprintf 'a\\r\\n'\n", "a written \\r stays"
    assert found["note"] == "2 lines ended in CRLF, as on Windows; kept with LF."
    assert put(operator, scripts, file.decode().replace("\r\n", "\n")).json()["changed"] is False


@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        ("a\rb", 422, "lone_cr"),
        ("a\x00b", 422, "nul"),
        ("\ud800", 400, "not_text"),
        ("x" * 65_537, 422, "too_long"),
        (7, 422, None),
        (None, 422, None),
        ("", 422, "empty"),
    ],
)
def test_what_is_no_script_is_refused(operator: Api, scripts: str, script: object, status: int, code: str | None) -> None:
    found = error(put(operator, scripts, script), status)
    assert found["param"] == "script"
    assert code is None or found["code"] == code
    assert not Version.objects.exists()


def test_bytes_that_are_no_utf_8_are_refused(operator: Api, scripts: str) -> None:
    assert error(operator.put(f"{scripts}/node_init", b'{"script": "\xff"}'), 400)["code"] == "not_json"


def test_if_match_takes_only_the_version_that_was_read(operator: Api, api: Any, scripts: str) -> None:
    """authgear/authgear-server#1364, NotYuSheng/TracePcap#444."""
    first = put(operator, scripts, f"{HEAD}one\n", **{"If-Match": '"0"'})
    assert first.status_code == 200
    put(api("admin"), scripts, f"{HEAD}two\n", **{"If-Match": first["ETag"]})
    for stale in (first["ETag"], '"0"', '"9-abc"'):
        found = error(put(operator, scripts, f"{HEAD}mine\n", **{"If-Match": stale}), 412)
        assert (found["version"], found["script"], found["param"]) == (2, f"{HEAD}two\n", "If-Match")
    assert put(operator, scripts, f"{HEAD}mine\n", **{"If-Match": found["etag"]}).json()["version"] == 3
    assert put(operator, scripts, f"{HEAD}any\n", **{"If-Match": "*"}).json()["version"] == 4
    assert [row.text for row in Version.objects.order_by("number")] == [
        f"{HEAD}{word}\n" for word in ("one", "two", "mine", "any")
    ]


def test_if_match_of_anything_fails_where_there_is_nothing(operator: Api, scripts: str) -> None:
    assert error(put(operator, scripts, HEAD, **{"If-Match": "*"}), 412)["version"] == 0


def test_five_unchanged_puts_are_no_version(operator: Api, scripts: str) -> None:
    assert [put(operator, scripts, HEAD).json()["version"] for _ in range(6)] == [1] * 6
    assert Version.objects.count() == 1


def test_versions_come_page_by_page_and_each_with_its_text(operator: Api, scripts: str) -> None:
    for number in range(5):
        put(operator, scripts, f"{HEAD}{number}\n")
    seen, after = [], ""
    for _ in range(3):
        found = operator.get(f"{scripts}/node_init/versions?limit=2{after}").json()
        seen += [one["version"] for one in found["versions"]]
        after = f"&after={found['next_cursor']}"
    assert (seen, found["next_cursor"]) == ([5, 4, 3, 2, 1], None)
    assert operator.get(f"{scripts}/node_init/versions/2").json()["script"] == f"{HEAD}1\n"
    assert error(operator.get(f"{scripts}/node_init/versions/9"), 404)["code"] == "no_such_version"
    assert error(operator.get(f"{scripts}/node_init/versions/{10**30}"), 404)
    assert error(operator.get(f"{scripts}/node_init/versions?after=x"), 400)["code"] == "bad_cursor"


def test_kinds_are_those_of_the_cluster(operator: Api, scripts: str, world: World) -> None:
    found = error(put(operator, scripts, HEAD, "worker_prolog"), 404)
    assert (found["code"], found["param"]) == ("no_such_kind", "kind")
    Cluster.objects.filter(pk=world.train.pk).update(kind=Cluster.Kind.SLURM)
    assert put(operator, scripts, HEAD, "worker_prolog").status_code == 200
    assert len(operator.get(scripts).json()["startup_scripts"]) == 8


def test_viewers_read_and_do_not_write_and_others_find_nothing(operator: Api, api: Any, scripts: str, world: World) -> None:
    put(operator, scripts, HEAD)
    viewer = api("viewer")
    for tail in ("", "/node_init", "/node_init/versions", "/node_init/versions/1"):
        assert viewer.get(f"{scripts}{tail}").status_code == 200
    assert error(put(viewer, scripts, "mine"), 403)
    there = f"/v1/compute/clusters/{world.other.pk}/startup_scripts"
    assert error(operator.get(there), 404)
    assert error(put(operator, there, HEAD), 404)
    assert error(operator.put(f"{scripts}/node_init", {"script": HEAD, "message": "a\nb"}), 422)["param"] == "message"
