"""docs/webhooks.md: what it tells receivers to do works, and what it shows is what is sent."""

import json
import re
from typing import Any

from console.env import ROOT
from console.webhooks import allowed
from console.webhooks.groups import GROUPS
from console.webhooks.signing import SIGNATURE, signature
from tests.webhooks.receiver import Receiver
from tests.webhooks.world import NOW, SECRET, a_webhook, happens, send, sweeps

PAGE = (ROOT / "docs" / "webhooks.md").read_text()


def snippet(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def test_the_snippet_knows_a_message_of_halftides_from_others(cluster: Any, receiver: Receiver) -> None:
    space: dict[str, Any] = {}
    exec(snippet("python"), space)
    checks = space["is_from_halftide"]
    a_webhook(cluster, receiver.url)
    happens(cluster, "TargetChanged")
    sweeps(12)
    send(12)
    (got,) = receiver.got
    header, now = got.headers[SIGNATURE], NOW.timestamp() + 12
    assert checks(SECRET, header, got.body, now)
    assert checks(SECRET, signature(["htwh_newer", SECRET], NOW, got.body), got.body, now)
    assert not checks("htwh_another", header, got.body, now)
    assert not checks(SECRET, header, got.body + b" ", now)
    assert not checks(SECRET, header, got.body, now + 301)
    assert not checks(SECRET, header, got.body)
    for nonsense in ("", "v1=", "t=x,v1=y", "t=,v1", "=,="):
        assert not checks(SECRET, nonsense, got.body, now)


def test_the_example_has_the_fields_that_are_sent(cluster: Any, receiver: Receiver) -> None:
    example = json.loads(snippet("json"))
    a_webhook(cluster, receiver.url)
    happens(cluster, "TargetChanged")
    sweeps(12)
    send(12)
    body = json.loads(receiver.got[0].body)
    assert list(body) == list(example)
    assert list(body["entries"][0]) == list(example["entries"][0])


def test_every_reason_and_the_setting_are_in_it() -> None:
    assert [reason for group in GROUPS for reason in group.reasons if f"`{reason}`" not in PAGE] == []
    assert allowed.SETTING in PAGE
