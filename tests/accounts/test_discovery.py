"""What a provider publishes is kept for an hour, and asked for again only where that can help."""

from collections import Counter
from typing import Any

import pytest
from jwt.algorithms import RSAAlgorithm

from console.accounts.oidc.config import Provider
from console.accounts.oidc.discovery import Published
from console.accounts.oidc.refusal import ProviderDown
from tests.accounts.stub import KEY, OTHER_KEY

PROVIDER = Provider("sso", "Okta", "https://corp.example/", "client", "hush")
DOCUMENT = "https://corp.example/.well-known/openid-configuration"
KEYS = "https://corp.example/keys"


def jwk(key, **more: Any) -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.asked: Counter[str] = Counter()
        self.answers: dict[str, Any] = {
            DOCUMENT: {"issuer": PROVIDER.issuer, "jwks_uri": KEYS},
            KEYS: {"keys": [jwk(KEY, kid="one", use="sig")]},
        }
        self.published = Published(PROVIDER, self.fetch, lambda: self.now)

    def fetch(self, url: str) -> Any:
        self.asked[url] += 1
        answer = self.answers[url]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def world() -> World:
    return World()


def test_keys_are_asked_for_once_an_hour(world):
    for seconds in (0, 1, 3598, 3599):
        world.now = 1000 + seconds
        assert len(world.published.keys_for("one")) == 1
    assert world.asked == {DOCUMENT: 1, KEYS: 1}
    world.now = 1000 + 3600
    world.published.keys_for("one")
    assert world.asked == {DOCUMENT: 2, KEYS: 2}


def test_a_withdrawn_key_stops_working_within_the_hour(world):
    world.published.keys_for("one")
    world.answers[KEYS] = {"keys": []}
    world.now += 3600
    assert world.published.keys_for("one") == []


def test_forged_key_ids_make_us_ask_at_most_once_a_minute(world):
    for second in range(119):
        world.now = 1000 + second
        assert world.published.keys_for(f"forged-{second}") == []
    assert world.asked[KEYS] == 3  # the first picture, then at 0 s and at 60 s


def test_a_new_key_works_at_once(world):
    world.published.keys_for("one")
    world.answers[KEYS] = {"keys": [jwk(OTHER_KEY, kid="two")]}
    assert len(world.published.keys_for("two")) == 1
    assert world.published.keys_for("one") == []


def test_without_a_key_id_only_a_single_key_may_fit(world):
    assert len(world.published.keys_for(None)) == 1
    world.answers[KEYS] = {"keys": [jwk(KEY, kid="one"), jwk(OTHER_KEY, kid="two")]}
    world.now += 3600
    assert world.published.keys_for(None) == []


@pytest.mark.parametrize(
    "odd",
    [{"kty": "oct", "k": "c2VjcmV0", "kid": "one"}, {"kty": "RSA", "kid": "one"}, {"kty": "new", "kid": "one"}, "one", None],
)
def test_keys_that_cannot_sign_for_us_are_left_out(world, odd):
    world.answers[KEYS] = {"keys": [odd, jwk(OTHER_KEY, kid="one", use="enc")]}
    assert world.published.keys_for("one") == []


@pytest.mark.parametrize("odd", [[], "keys", {"keys": "one"}, {}])
def test_an_odd_list_of_keys_has_none(world, odd):
    world.answers[KEYS] = odd
    assert world.published.keys_for("one") == []


@pytest.mark.parametrize("document", [[], {"issuer": "https://corp.example"}, {"jwks_uri": KEYS}])
def test_a_document_under_another_name_is_refused_and_says_both(world, document):
    world.answers[DOCUMENT] = document
    with pytest.raises(ProviderDown) as refused:
        world.published.endpoints()
    assert "https://corp.example/" in refused.value.look_at


def test_a_provider_that_is_down_is_said_to_be_down_and_asked_again_next_time(world):
    good = world.answers[DOCUMENT]
    world.answers[DOCUMENT] = ProviderDown("It does not answer.", "")
    with pytest.raises(ProviderDown):
        world.published.keys_for("one")
    world.answers[DOCUMENT] = good
    assert len(world.published.keys_for("one")) == 1
