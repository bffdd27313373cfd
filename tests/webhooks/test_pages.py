"""The pages: who sees what, what a form says of a fault, and that neither address nor secret is ever shown again."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.accounts.models import AuditRow, Role
from console.accounts.sealing import opened
from console.webhooks import services
from console.webhooks.models import Delivery, Webhook
from tests.pages import world as pages
from tests.pages.world import HOSTILE
from tests.webhooks.receiver import Receiver
from tests.webhooks.world import NOW, SECRET, a_cluster, a_webhook, preempted, send, sweeps

ADDRESS = "https://hooks.example.com/services/T0/B0/a-secret-path"
FORM = {"name": "chat", "kind": "slack", "address": ADDRESS, "cluster": "", "groups": ["preemptions", "warnings"]}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is public here; what is written as an address is that."""

    def find(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (host if re.fullmatch(r"[\d.]+", host) else "1.1.1.1", port))]

    monkeypatch.setattr("console.webhooks.addresses.socket.getaddrinfo", find)


def look(name: str, role: Role, project: str = "aurora") -> Client:
    return pages.browser(pages.a_person(name, role, project))


@pytest.fixture
def admin(cluster: Any) -> Client:
    return look("ann", Role.ADMIN)


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:300]
    return answer.content.decode()


def test_an_administrator_adds_one_and_sees_its_secret_once(cluster: Any, admin: Client) -> None:
    answer = admin.post("/webhooks/new", {**FORM, "project": cluster.project.pk})
    webhook = Webhook.objects.get()
    assert answer.headers["Location"] == f"/webhooks/{webhook.pk}"
    assert opened(webhook.address) == ADDRESS
    first, second = text(admin, f"/webhooks/{webhook.pk}"), text(admin, f"/webhooks/{webhook.pk}")
    assert opened(webhook.secret) in first
    assert opened(webhook.secret) not in second
    assert "hooks.example.com …\u2060path" in second
    assert AuditRow.objects.get().after == {
        "name": "chat", "kind": "slack", "host": "hooks.example.com", "cluster": None, "groups": ["preemptions", "warnings"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"address": "http://hooks.example.com/x"}, "Only https is allowed"),
        ({"address": "https://10.0.0.7/x"}, "10.0.0.7 is private"),
        ({"address": "https://169.254.169.254/latest"}, "clouds serve metadata"),
        ({"address": "https://a:b@hooks.example.com/x"}, "before the @"),
        ({"address": ""}, "needs an address"),
        ({"name": " "}, "needs a name"),
        ({"name": "a\x00b"}, "needs a name"),
        ({"name": "x" * 81}, "at most 80"),
        ({"name": "ops"}, "has a webhook named ops already"),
        ({"groups": []}, "at least one"),
        ({"groups": ["nonsense"]}, "at least one"),
        ({"kind": "pigeon"}, "Choose what the receiver understands"),
        ({"cluster": "x"}, "Choose a cluster"),
        ({"cluster": "00000000-0000-4000-8000-00000000000f"}, "no such cluster"),
    ],
)
def test_a_fault_stands_beside_its_field_and_nothing_typed_is_lost(
    cluster: Any, admin: Client, change: dict[str, Any], says: str
) -> None:
    a_webhook(cluster, ADDRESS)
    answer = admin.post("/webhooks/new", {**FORM, "project": cluster.project.pk, **change})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert says in page
    assert "Nothing was saved." in page
    assert Webhook.objects.count() == 1
    if "name" not in change:
        assert 'value="chat"' in page


def test_a_project_has_twenty_at_most(cluster: Any, admin: Client) -> None:
    for number in range(services.MOST):
        a_webhook(cluster, ADDRESS, name=f"hook-{number}")
    answer = admin.post("/webhooks/new", {**FORM, "project": cluster.project.pk})
    assert answer.status_code == 422
    assert "has 20 webhooks" in answer.content.decode()


def test_an_edit_without_an_address_keeps_it(cluster: Any, admin: Client) -> None:
    webhook = a_webhook(cluster, ADDRESS)
    form = text(admin, f"/webhooks/{webhook.pk}/edit")
    assert "a-secret-path" not in form
    admin.post(f"/webhooks/{webhook.pk}/edit", {**FORM, "name": "renamed", "address": "", "cluster": cluster.pk})
    webhook.refresh_from_db()
    assert (webhook.name, webhook.cluster_id, opened(webhook.address)) == ("renamed", cluster.pk, ADDRESS)
    assert (webhook.groups, webhook.kind) == (["preemptions", "warnings"], "json")
    assert list(webhook.cursors.values_list("stream", flat=True)) == [cluster.pk]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_others_see_that_it_exists_and_change_nothing(cluster: Any, receiver: Receiver, role: Role) -> None:
    webhook = a_webhook(cluster, receiver.url)
    receiver.answers = [(500, {}, b"stack trace of the receiver")]
    preempted(cluster, 3)
    sweeps(12)
    send(12)
    message = webhook.deliveries.get()
    other = look("olu", role)
    shown = [
        text(other, path) for path in ("/webhooks", f"/webhooks/{webhook.pk}", f"/webhooks/{webhook.pk}/messages/{message.pk}")
    ]
    assert "MessageRow(" not in shown[1]
    for page in shown:
        assert "127.0.0.1 …\u2060path" in page
        for hidden in ("a-secret-path", SECRET, webhook.address, webhook.secret, "stack trace", '<button class="btn btn-red'):
            assert hidden not in page
    assert "3 nodes of aurora-train were preempted" in shown[1]
    assert 'href="/webhooks"' in text(other, "/")
    assert (other.get("/webhooks/new").status_code, other.get(f"/webhooks/{webhook.pk}/edit").status_code) == (403, 403)
    deeds = ["edit", "switch", "test", "secret", "delete", f"messages/{message.pk}/resend"]
    assert {other.post(f"/webhooks/{webhook.pk}/{deed}", FORM).status_code for deed in deeds} == {403}


def test_of_another_project_there_is_nothing(cluster: Any) -> None:
    webhook = a_webhook(a_cluster("borealis-eval", "borealis"), ADDRESS)
    message = Delivery.objects.create(webhook=webhook, summary="s", body="{}", made_at=NOW)
    admin = look("ann", Role.ADMIN)
    paths = ["", "/edit", f"/messages/{message.pk}"]
    assert {admin.get(f"/webhooks/{webhook.pk}{path}").status_code for path in paths} == {404}
    assert admin.get("/webhooks", {"project": str(webhook.project_id)}).status_code == 404
    assert admin.post("/webhooks/new", {**FORM, "project": webhook.project_id}).status_code == 404
    deeds = ["edit", "switch", "test", "secret", "delete", f"messages/{message.pk}/resend"]
    assert {admin.post(f"/webhooks/{webhook.pk}/{deed}", FORM).status_code for deed in deeds} == {404}
    mine = a_webhook(cluster, ADDRESS)
    assert admin.get(f"/webhooks/{mine.pk}/messages/{message.pk}").status_code == 404


def test_every_button_does_its_deed_and_is_in_the_trail(cluster: Any, admin: Client) -> None:
    webhook = a_webhook(cluster, ADDRESS)
    here = f"/webhooks/{webhook.pk}"
    page = text(admin, here)
    for words in ("Send a test", "Switch off", "Make a new secret", "Delete this webhook", "Nothing was sent yet"):
        assert words in page
    admin.post(f"{here}/test")
    message = webhook.deliveries.get()
    assert "On its way" in text(admin, here) or "Waits" in text(admin, here)
    admin.post(f"{here}/secret")
    assert "htwh_" in text(admin, here)
    admin.post(f"{here}/switch", {"on": "0"})
    message.refresh_from_db()
    assert (message.state, message.due_at) == ("failed", None)
    assert "switched off before this was sent" in text(admin, f"{here}/messages/{message.pk}")
    refused = admin.post(f"{here}/test")
    assert (refused.status_code, "Switch it on first" in refused.content.decode()) == (409, True)
    assert admin.post(f"{here}/messages/{message.pk}/resend").status_code == 409
    admin.post(f"{here}/switch", {"on": "1"})
    admin.post(f"{here}/messages/{message.pk}/resend")
    message.refresh_from_db()
    assert (message.state, message.resent_by) == ("waiting", "ann")
    assert admin.post(f"{here}/delete").headers["Location"] == f"/webhooks?project={cluster.project.pk}"
    assert admin.get(here).status_code == 404
    assert list(AuditRow.objects.order_by("pk").values_list("action", flat=True)) == [
        "webhook.test", "webhook.rotate", "webhook.switch", "webhook.switch", "webhook.resend", "webhook.delete",
    ]  # fmt: skip


def test_messages_come_in_pages_of_a_hundred_and_ask_as_much_for_one_as_for_many(cluster: Any, admin: Client) -> None:
    webhook = a_webhook(cluster, ADDRESS)
    here = f"/webhooks/{webhook.pk}"

    def made(number: int) -> None:
        Delivery.objects.bulk_create(
            Delivery(webhook=webhook, summary=f"message-{n}.", body="{}", made_at=NOW) for n in range(number)
        )

    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            text(admin, path)
        return len(seen)

    made(1)
    few, listed = queries(here), queries("/webhooks")
    made(249)
    for number in range(9):
        a_webhook(cluster, ADDRESS, name=f"more-{number}")
    assert (queries(here), queries("/webhooks")) == (few, listed)
    seen: list[str] = []
    path = here
    while path:
        page = text(admin, path)
        seen += re.findall(r"/messages/([0-9a-f-]{36})", page)
        older = re.search(r'href="\?before=([^"]+)"', page)
        path = f"{here}?before={older.group(1)}" if older else ""
    assert len(seen) == len(set(seen)) == 250
    assert "message" in text(admin, f"{here}?before=nonsense")


def test_hostile_text_is_text_on_every_page(cluster: Any, admin: Client) -> None:
    webhook = a_webhook(
        cluster, ADDRESS, name=HOSTILE[:80], host=HOSTILE[:60], failing_since=NOW, said_failing_at=NOW, problem=HOSTILE
    )
    message = Delivery.objects.create(
        webhook=webhook, summary=HOSTILE, body=f'{{"x": "{HOSTILE[:20]}\u202e"}}', made_at=NOW, problem=HOSTILE,
        log=[{"at": NOW.isoformat(), "status": 500, "ms": 3, "problem": HOSTILE, "said": HOSTILE}],
    )  # fmt: skip
    for path in (
        "/webhooks",
        f"/webhooks/{webhook.pk}",
        f"/webhooks/{webhook.pk}/edit",
        f"/webhooks/{webhook.pk}/messages/{message.pk}",
    ):
        page = text(admin, path)
        assert "<img" not in page
        assert "<svg onload" not in page
    assert "\\u202e" in page


def test_a_failing_webhook_says_so_on_both_pages(cluster: Any, admin: Client) -> None:
    webhook = a_webhook(
        cluster, ADDRESS, failing_since=NOW, said_failing_at=NOW, problem="The receiver has a fault of its own (500)."
    )
    assert "1 webhook fails." in text(admin, "/webhooks")
    page = text(admin, f"/webhooks/{webhook.pk}")
    assert "It fails since" in page
    assert "fault of its own" in page
    assert "not switched off" in page


def test_the_links_of_a_message_lead_to_what_it_tells(cluster: Any) -> None:
    a_webhook(cluster, ADDRESS)
    (entry,) = preempted(cluster, 1)
    sweeps(12)
    (listed,) = json.loads(Delivery.objects.get().body)["entries"]
    page = text(look("vic", Role.VIEWER), urlsplit(listed["link"]).path)
    assert f'id="e{entry.pk}"' in page


def test_an_empty_project_says_who_can_add_one(cluster: Any, admin: Client) -> None:
    assert "Add webhook" in text(admin, "/webhooks")
    page = text(look("vic", Role.VIEWER), "/webhooks")
    assert "An administrator of Aurora can add one." in page
    assert "Add webhook" not in page
