"""The page of startup scripts without a browser's help: plain forms, roles, hostile text, and a text that always comes back."""

import re
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse

from console.accounts.models import Role
from console.accounts.services import actor_for_session
from console.capacity.models import Pool
from console.clusters.models import Cluster
from console.scripts.kinds import KINDS, NODE_INIT
from console.scripts.models import Version
from console.scripts.services import save
from tests.pages import world
from tests.pages.test_constant_queries import queries
from tests.pages.test_hostile_text import clean

FORM = "application/x-www-form-urlencoded"
HEAD = "#!/bin/bash\n"
JSON = {"Accept": "application/json"}


@pytest.fixture
def cluster(pool: Pool) -> Cluster:
    return world.a_cluster(pool)


def here(cluster: Cluster, name: str = "script", kind: str = "node_init") -> str:
    return reverse(name, kwargs={"cluster_id": cluster.pk, "kind": kind})


def post(client: Client, path: str, script: str | bytes | None, headers: dict[str, str] | None = None, **fields: object) -> Any:
    """As a browser encodes a form."""
    body = "&".join(f"{name}={quote(str(value))}" for name, value in fields.items())
    if script is not None:
        body += f"&script={quote(script)}"
    return client.post(path, body, content_type=FORM, headers=headers or {})


def held(page: str, name: str = "script-text") -> str:
    """What a textarea holds, as a browser reads it: one line end right after the tag is not part of it."""
    found = re.search(rf'<textarea[^>]*id="{name}"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def saved(cluster: Cluster, client_name: str, *texts: str) -> None:
    somebody = actor_for_session(world.a_person(client_name, Role.OPERATOR, "aurora"), None)
    for text in texts:
        save(somebody, cluster, NODE_INIT, text, f"about {len(text)}")


def test_the_tab_leads_to_the_kind_every_cluster_has(cluster: Cluster, vic: Client) -> None:
    overview = vic.get(f"/clusters/{cluster.pk}").content.decode()
    assert f'href="/clusters/{cluster.pk}/scripts"' in overview
    assert vic.get(f"/clusters/{cluster.pk}/scripts").headers["Location"] == here(cluster)
    assert vic.get(here(cluster, kind="worker_prolog")).status_code == 404


def test_a_form_saves_lf_whatever_the_browser_writes_and_tabs_stay(cluster: Cluster, olu: Client) -> None:
    """canonical/cloud-init#2183, hedyorg/hedy#4830: forms write CRLF by the standard."""
    text = f"{HEAD}cat <<-END\n\tkept\n\tEND\n"
    answer = post(olu, here(cluster), text.replace("\n", "\r\n"), based_on=0, message="First")
    assert answer.headers["Location"] == f"{here(cluster)}?saved=1"
    row = Version.objects.get()
    assert (row.text, row.message, row.saved_by) == (text, "First", "olu")
    assert b"\x09" in row.text.encode()
    page = olu.get(answer.headers["Location"]).content.decode()
    assert "Saved as v1." in page
    again = post(olu, here(cluster), held(page).replace("\n", "\r\n"), based_on=1)
    assert again.headers["Location"] == f"{here(cluster)}?same=1"
    assert "Nothing changed" in olu.get(again.headers["Location"]).content.decode()
    assert Version.objects.count() == 1


@pytest.mark.parametrize(
    "text", ["\n\n#!/bin/sh\n", "\ufeff#!/bin/sh\n", "\x0c\x01<&amp;>\n", "</textarea><script>alert(1)</script>", "no end"]
)
def test_what_was_saved_is_what_the_editor_holds(cluster: Cluster, olu: Client, text: str) -> None:
    post(olu, here(cluster), text, headers=JSON, based_on=0)
    assert held(olu.get(here(cluster)).content.decode()) == text


def test_a_script_of_our_own_says_what_crlf_became(cluster: Cluster, olu: Client) -> None:
    """OnionIoT/Onion-Console#54."""
    answer = post(olu, here(cluster), "#!/bin/bash\r\necho\r\n", headers=JSON, based_on=0).json()
    assert answer == {
        "made": True, "version": 1, "message": "Saved as v1. 2 lines ended in CRLF, as on Windows; kept with LF.",
    }  # fmt: skip
    assert post(olu, here(cluster), f"{HEAD}echo\n", headers=JSON, based_on=1).json()["made"] is False


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [(b"echo \xff\n", 400, "Line 1, byte 6"), ("a\x00b", 422, "NUL"), ("x" * 65537, 422, "65,537 bytes"), (None, 422, "missing")],
)
def test_a_refusal_keeps_what_was_typed(
    cluster: Cluster, olu: Client, script: bytes | str | None, status: int, words: str
) -> None:
    assert words in post(olu, here(cluster), script, headers=JSON, based_on=0).json()["error"]["message"]
    answer = post(olu, here(cluster), script, based_on=0, message="why")
    assert answer.status_code == status
    page = answer.content.decode()
    assert words in page
    if script is not None:
        typed = script.decode(errors="replace") if isinstance(script, bytes) else script
        assert held(page) == typed
        assert 'value="why"' in page
    assert not Version.objects.exists()


@pytest.mark.parametrize("fields", [{}, {"based_on": "-1"}, {"based_on": "1" * 12}, {"based_on": 0, "message": "a\nb"}])
def test_fields_that_make_no_sense_are_refused(cluster: Cluster, olu: Client, fields: dict[str, object]) -> None:
    assert post(olu, here(cluster), HEAD, headers=JSON, **fields).status_code == 400
    assert not Version.objects.exists()


def test_the_slower_of_two_gets_both_texts_and_loses_none(cluster: Cluster, olu: Client) -> None:
    """authgear/authgear-server#1364, NotYuSheng/TracePcap#444."""
    base = f"{HEAD}one\ntwo\nthree\n"
    saved(cluster, "ada", base, base.replace("one", "adas"))
    mine = base.replace("three", "olus")
    body = post(olu, here(cluster), mine, headers=JSON, based_on=1)
    assert body.status_code == 409
    found = body.json()
    assert (found["error"]["version"], found["error"]["saved_by"]) == (2, "ada")
    assert found["texts"] == {"theirs": base.replace("one", "adas"), "merged": f"{HEAD}adas\ntwo\nolus\n"}
    answer = post(olu, here(cluster), mine, based_on=1, message="mine")
    page = answer.content.decode()
    assert answer.status_code == 409
    assert held(page) == mine
    assert '<input type="hidden" name="based_on" value="2">' in page
    for words in ("ada saved v2", "adas", "olus", "Not saved yet: two texts"):
        assert words in page
    assert post(olu, here(cluster), mine, based_on=2).status_code == 302
    assert [row.saved_by for row in Version.objects.order_by("number")] == ["ada", "ada", "olu"]


def test_an_old_version_is_looked_at_compared_and_restored(cluster: Cluster, olu: Client) -> None:
    saved(cluster, "ada", f"{HEAD}one\n", f"{HEAD}two\n", f"{HEAD}two\nthree\n")
    page = olu.get(f"{here(cluster)}?version=2").content.decode()
    assert "v1 to v2" in page
    assert held(page) == f"{HEAD}two\nthree\n", "the editor holds the newest, whatever is looked at"
    assert "v1 to v3" in olu.get(f"{here(cluster)}?version=3&against=1").content.decode()
    assert olu.get(f"{here(cluster)}?version=99&against=x&before=").status_code == 200
    answer = post(olu, here(cluster, "script_restore"), None, version=1, based_on=3)
    assert answer.headers["Location"] == f"{here(cluster)}?saved=4"
    assert Version.objects.latest("number").text == f"{HEAD}one\n"
    stale = post(olu, here(cluster, "script_restore"), None, version=2, based_on=3)
    assert (stale.status_code, Version.objects.count()) == (409, 4)


def test_a_viewer_reads_and_is_offered_no_change(cluster: Cluster, vic: Client) -> None:
    saved(cluster, "ada", f"{HEAD}one\n", f"{HEAD}two\n")
    page = vic.get(f"{here(cluster)}?version=1").content.decode()
    assert held(page) == f"{HEAD}two\n"
    for control in ("data-save", "Restore v1", "data-insert", "data-use"):
        assert control not in page
    assert post(vic, here(cluster), "mine", based_on=2).status_code == 403
    assert post(vic, here(cluster, "script_restore"), None, version=1, based_on=2).status_code == 403
    assert post(vic, here(cluster, "script_check"), HEAD, headers=JSON).status_code == 200
    assert Version.objects.count() == 2


def test_another_projects_scripts_are_not_there(cluster: Cluster) -> None:
    saved(cluster, "ada", HEAD)
    stranger = world.browser(world.a_person("eve", Role.ADMIN, "borealis"))
    assert stranger.get(here(cluster)).status_code == 404
    assert post(stranger, here(cluster), "mine", based_on=1).status_code == 404
    assert post(stranger, here(cluster, "script_check"), "mine").status_code == 404


def test_a_save_without_a_session_says_so_and_gives_the_text_back(cluster: Cluster) -> None:
    """mozilla/mozilla-django-oidc#363, #348: a redirect swallowed the request, and the text was gone."""
    nobody = Client()
    answer = post(nobody, here(cluster), "typed for hours\n", headers=JSON, based_on=0)
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
    assert post(nobody, here(cluster, "script_check"), "x", headers={"HX-Request": "true"}).status_code == 401
    plain = post(nobody, here(cluster), "typed for hours & days\n", based_on=0)
    assert plain.status_code == 401
    page = plain.content.decode()
    assert "typed for hours &amp; days" in page
    assert f'href="{here(cluster)}"' in page


def test_a_form_of_an_earlier_sign_in_is_refused_with_the_text(cluster: Cluster) -> None:
    """mozilla/mozilla-django-oidc#348: signing in elsewhere changes the token; nothing goes round the check."""
    strict = world.browser(world.a_person("olu", Role.OPERATOR, "aurora"), enforce_csrf_checks=True)
    strict.get(here(cluster))
    answer = post(strict, here(cluster), "typed for hours <b>\n", based_on=0, csrfmiddlewaretoken="x" * 64)
    assert answer.status_code == 403
    assert "typed for hours &lt;b&gt;" in answer.content.decode()
    assert not Version.objects.exists()


def test_findings_are_said_and_the_newest_version_with_them(cluster: Cluster, olu: Client) -> None:
    saved(cluster, "ada", f"{HEAD}echo one\n")
    found = post(olu, here(cluster, "script_check"), f"\n{HEAD}echo $mine\nmore\n", headers=JSON).json()
    assert (found["bytes"], found["changed"], found["version"], found["saved_by"]) == (29, 3, 1, "ada")
    assert (found["findings"][0]["line"], found["findings"][0]["level"]) == (1, "error")
    assert "before #!" in found["html"]
    assert "SC2086" in found["html"]
    assert Version.objects.count() == 1


def test_hostile_text_is_text_wherever_it_stands(cluster: Cluster, ada: Client) -> None:
    hostile = world.HOSTILE
    evil = actor_for_session(world.a_person(hostile, Role.OPERATOR, "aurora"), None)
    save(evil, cluster, NODE_INIT, f"{HEAD}{hostile}\n", hostile)
    save(evil, cluster, NODE_INIT, f"{HEAD}{hostile}{hostile}\n", hostile)
    for address in (here(cluster), f"{here(cluster)}?version=1", f"/clusters/{cluster.pk}/timeline"):
        clean(ada.get(address).content.decode())
    clean(post(ada, here(cluster), f"{HEAD}mine {hostile}\n", based_on=1).content.decode())
    clean(post(ada, here(cluster), f"{HEAD}mine {hostile}\n", headers=JSON, based_on=1).json()["html"])
    clean(post(ada, here(cluster, "script_check"), f"{HEAD}{hostile}\n", headers=JSON).json()["html"])
    clean(post(Client(), here(cluster), hostile, based_on=1).content.decode())


def test_the_page_asks_as_much_for_one_version_as_for_forty(cluster: Cluster, pool: Pool, ada: Client) -> None:
    other = world.a_cluster(pool, "other")
    saved(other, "eve", HEAD, f"{HEAD}1\n")
    saved(cluster, "olu", *[f"{HEAD}{number}\n" for number in range(40)])
    assert queries(ada, here(cluster)) == queries(ada, here(other))
    page = ada.get(here(cluster)).content.decode()
    assert page.count("?version=") == 30, "the rest is a page further on"
    assert ada.get(f"{here(cluster)}?before=11").content.decode().count("?version=") == 10


def test_slurm_clusters_list_their_kinds_and_truth_is_told_of_where_it_runs(pool: Pool, olu: Client) -> None:
    slurm = world.a_cluster(pool, "slurm-train", kind=Cluster.Kind.SLURM)
    page = olu.get(here(slurm)).content.decode()
    for kind in KINDS:
        assert here(slurm, kind=kind.name) in page
    assert "nothing runs it on nodes yet" in page
    assert "SLURM_JOB_ID" in olu.get(here(slurm, kind="worker_prolog")).content.decode()
    conf = post(olu, here(slurm, "script_check", "extra_slurm_conf"), "PrologFlags=Alloc\n", headers=JSON).json()
    assert conf["findings"] == []
    assert "HALFTIDE_" not in olu.get(here(slurm, kind="extra_slurm_conf")).content.decode()


def test_ace_is_loaded_on_this_page_only(cluster: Cluster, olu: Client) -> None:
    assert "ace/ace.js" in olu.get(here(cluster)).content.decode()
    for address in ("/", f"/clusters/{cluster.pk}", f"/clusters/{cluster.pk}/nodes"):
        assert "ace.js" not in olu.get(address).content.decode()
