"""What a provider publishes: its endpoints and its signing keys, each kept for an hour.

A key that the provider withdrew stops working within that hour; a key it just began to use works at once, because a key id
we do not know makes us ask again, at most once a minute, so that forged ids cannot make us hammer the provider
(openfga/openfga#3099: keys cached at the start made every sign-in fail after a rotation).
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from time import monotonic
from typing import Any

import httpx
import jwt

from console.accounts.oidc.config import Provider
from console.accounts.oidc.refusal import ProviderDown

LIMIT = 5.0  # seconds that any request to a provider may take
KEEP = 3600.0  # seconds
ASK_AGAIN = 60.0  # seconds between two fetches that an unknown key id causes

Fetch = Callable[[str], Any]


@cache
def http() -> httpx.Client:
    """One for the process: making one reads every certificate of the machine. No redirects: an address is what was set up."""
    return httpx.Client(timeout=LIMIT, headers={"Accept": "application/json"})


def fetch_json(url: str) -> Any:
    """Raises ProviderDown, whatever went wrong: no connection, another status than 200, something that is not JSON."""
    try:
        response = http().get(url)
        response.raise_for_status()
        return response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise ProviderDown(
            "The identity provider does not answer as it should. Try again in a minute.",
            f"From the machine Halftide runs on, {url} must answer within {LIMIT:g} seconds with JSON ({type(error).__name__}).",
        ) from error


@dataclass
class Published:
    """Of one provider, in one process."""

    provider: Provider
    fetch: Fetch = fetch_json
    clock: Callable[[], float] = monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _endpoints: Mapping[str, Any] | None = None
    _endpoints_at: float = 0.0
    _keys: list[jwt.PyJWK] = field(default_factory=list)
    _keys_at: float | None = None
    _asked_at: float | None = None  # last fetch that an unknown key id caused

    def endpoints(self) -> Mapping[str, Any]:
        """The discovery document. Raises ProviderDown, also where it names another issuer than ours."""
        with self._lock:
            return self._fresh_endpoints()

    def _fresh_endpoints(self) -> Mapping[str, Any]:
        if self._endpoints is None or self.clock() - self._endpoints_at >= KEEP:
            found = self.fetch(self.provider.discovery_url)
            if not isinstance(found, dict) or found.get("issuer") != self.provider.issuer:
                named = found.get("issuer") if isinstance(found, dict) else None
                raise ProviderDown(
                    "The identity provider calls itself by another name than Halftide expects.",
                    f"HALFTIDE_OIDC_ISSUER is {self.provider.issuer}; the provider's own document says {named}.",
                )
            self._endpoints, self._endpoints_at = found, self.clock()
        return self._endpoints

    def keys_for(self, kid: str | None) -> list[jwt.PyJWK]:
        """The keys that may have signed a token with this key id; empty where the provider publishes none such."""
        with self._lock:
            if self._keys_at is None or self.clock() - self._keys_at >= KEEP:
                self._load_keys()
            found = self._matching(kid)
            if not found and (self._asked_at is None or self.clock() - self._asked_at >= ASK_AGAIN):
                self._asked_at = self.clock()
                self._load_keys()
                found = self._matching(kid)
            return found

    def _load_keys(self) -> None:
        published = self.fetch(str(self._fresh_endpoints().get("jwks_uri")))
        self._keys = [key for key in map(_signing_key, _listed(published)) if key is not None]
        self._keys_at = self.clock()

    def _matching(self, kid: str | None) -> list[jwt.PyJWK]:
        if kid is None:
            # Only a provider with a single key may leave the id out; trying several would accept a withdrawn use.
            return self._keys if len(self._keys) == 1 else []
        return [key for key in self._keys if key.key_id == kid]


def _listed(published: Any) -> list[Any]:
    keys = published.get("keys") if isinstance(published, dict) else None
    return keys if isinstance(keys, list) else []


def _signing_key(raw: Any) -> jwt.PyJWK | None:
    """None for keys of a kind we cannot use, and for encryption keys: providers publish both in one list."""
    if not isinstance(raw, dict) or raw.get("use", "sig") != "sig" or raw.get("kty") == "oct":
        return None
    try:
        return jwt.PyJWK(raw)
    except jwt.PyJWTError:
        return None


@cache
def published(provider: Provider) -> Published:
    """One cache for each provider as it is set up now; a changed setting starts a new one."""
    return Published(provider)
