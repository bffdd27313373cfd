"""What a webhook may reach. A name is judged by what it stands for, at save and again at each try."""

import pytest
from yarl import URL

from console.env import SettingError
from console.http import BadInput
from console.webhooks import addresses
from console.webhooks.allowed import Allowed, judge, parse
from console.webhooks.post import Answer, post
from tests.webhooks.receiver import Receiver
from tests.webhooks.world import NOW

NOTHING = Allowed()
REFUSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.7", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
    "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.9", "203.0.113.5", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "2001::1",
    "3fff::1", "4000::1", "100::1", "64:ff9b:1::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1",  # IPv4-mapped
    "::127.0.0.1", "::10.0.0.1",  # IPv4-compatible
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:a00:1::1",  # 6to4
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1",  # NAT64
    "2600::5efe:a00:1", "2600::200:5efe:7f00:1",  # ISATAP
]  # fmt: skip
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "2600::1",
    "2606:4700::1111",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_inside_is_refused_as_itself_and_behind_a_name(address: str) -> None:
    assert judge("https", address, [address], NOTHING)
    said = judge("https", "hooks.example.com", ["8.8.8.8", address], NOTHING)
    assert said is not None
    assert said.startswith("hooks.example.com stands for ")
    assert "HALFTIDE_WEBHOOK_ALLOW" in said


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_not(address: str) -> None:
    assert judge("https", "hooks.example.com", [address], NOTHING) is None


def test_http_is_only_for_what_is_allowed() -> None:
    allowed = parse(["10.0.0.0/8", "receiver.internal"])
    assert "https" in (judge("http", "hooks.example.com", ["8.8.8.8"], allowed) or "")
    assert "https" in (judge("http", "hooks.example.com", ["10.0.0.1", "8.8.8.8"], allowed) or "")
    assert judge("http", "hooks.example.com", ["10.0.0.1"], allowed) is None
    assert judge("http", "Receiver.Internal.", ["192.168.0.1"], allowed) is None


def test_what_is_allowed_is_no_more_than_was_written() -> None:
    allowed = parse(["10.1.0.0/16", "fd00::/8", "receiver.internal"])
    assert judge("https", "a", ["10.1.2.3"], allowed) is None
    assert judge("https", "a", ["fd00::1"], allowed) is None
    assert judge("https", "a", ["10.2.0.1"], allowed)
    assert judge("https", "not-receiver.internal", ["192.168.0.1"], allowed)


@pytest.mark.parametrize(
    "word", ["10.0.0.0/33", "10.0.0.1/8", "http://a.example", "a.example:80", "*.example", "300.1.1.1", "täxt"]
)
def test_a_setting_that_makes_no_sense_is_refused_at_the_start(word: str) -> None:
    with pytest.raises(SettingError, match="HALFTIDE_WEBHOOK_ALLOW"):
        parse([word])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "https://"),
        ("hooks.example.com/x", "https://"),
        ("ftp://hooks.example.com/x", "https://"),
        ("https:///x", "https://"),
        ("javascript:alert(1)", "https://"),
        ("https://ada:pw@hooks.example.com/x", "before the @"),
        ("https://hooks.example.com/x#frag", "#"),
        ("https://hooks.example.com:22/x", "Port 22"),
        ("https://hooks.example.com:25/x", "Port 25"),
        ("https://hooks.example.com:99999/x", "cannot be read|can be read"),
        ("https://hooks.example.com/a b", "blank"),
        ("https://hooks.example.com\\@127.0.0.1/", "backslash"),
        ("https://hooks.example.com/\x00", "cannot be shown"),
        ("https://hooks.example.com/" + "a" * 2000, "at most 2000"),
        ("https://[::1", "can be read"),
        ("https://nowhere.example/x", "no address"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        addresses.check(text, NOTHING, lambda host, port: [])
    assert caught.value.param == "address"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:7f00:1]", "localhost"]
)
def test_other_ways_to_write_this_machine_are_refused_too(host: str) -> None:
    """Written as a number, in octal, with parts left out: judged by what the connection would go to."""
    with pytest.raises(BadInput):
        addresses.check(f"https://{host}/x", NOTHING)


def test_only_host_and_last_four_characters_are_shown() -> None:
    assert addresses.shown(URL("https://hooks.slack.com/services/T0/B0/abcdefgh")) == ("hooks.slack.com", "efgh")
    assert addresses.shown(URL("https://hooks.example.com:8443/short")) == ("hooks.example.com:8443", "")


async def test_a_name_that_changes_its_mind_reaches_nothing_inside(receiver: Receiver) -> None:
    """DNS rebinding: public when it was saved, this machine when it is sent to. What was judged is what is connected to."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    url = URL(f"https://hooks.example.com:{receiver.port}/x")
    answer = await post(url, b"{}", {}, NOTHING, NOW, rebinding)
    assert answer.status is None
    assert "stands for 127.0.0.1" in answer.problem
    assert receiver.got == []
    assert asked == ["hooks.example.com"]


async def test_the_connection_goes_to_what_was_judged_under_the_name_that_was_asked_for(receiver: Receiver) -> None:
    """The name is looked up once; nothing here resolves `hooks.example.com`, and the receiver still hears it in Host."""
    asked: list[str] = []

    def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    url = URL(f"http://hooks.example.com:{receiver.port}/x")
    answer = await post(url, b"{}", {}, parse(["hooks.example.com"]), NOW, once)
    assert answer == Answer(200)
    assert asked == ["hooks.example.com"]
    assert receiver.got[0].headers["Host"] == f"hooks.example.com:{receiver.port}"
