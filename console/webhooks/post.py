"""One message on its way: resolved once, judged, and sent to exactly the addresses that were judged.

The name is resolved here and never again: the connection is made to what was looked at, with the name still in TLS and in Host. A
name server that answers differently the second time (DNS rebinding) is not asked a second time. Nothing is followed, kept or
unpacked, and of an answer only its beginning is read. What goes wrong is said in words that never hold the address.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from console.webhooks.addresses import Lookup, lookup, resolve
from console.webhooks.allowed import Allowed, judge
from console.webhooks.tries import Answer, problem_of, retry_after

LIMIT = 5.0  # seconds for a whole try, name and answer included
MOST_READ = 4096  # bytes of an answer
MOST_SAID = 300  # characters of it that are kept
AGENT = "Halftide-Webhook/1"


class Pinned(AbstractResolver):
    """Answers with the addresses that were judged, whatever is asked."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:  # noqa: ARG002  (all that was judged is offered)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self.addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


async def post(
    url: URL, body: bytes, headers: Mapping[str, str], allowed: Allowed, now: datetime, find: Lookup = lookup
) -> Answer:
    """Send once and say what came of it; never raises for what a receiver or a network can do."""
    try:
        async with asyncio.timeout(LIMIT):
            addresses = await resolve(url, find)
            refused = judge(url.scheme, url.raw_host or "", addresses, allowed)
            if refused is not None:
                return Answer(None, f"Not sent. {refused}")
            return await _send(url, addresses, body, headers, now)
    except TimeoutError:
        return Answer(None, f"No answer within {LIMIT:g} s.")
    except aiohttp.ClientSSLError:
        return Answer(None, f"The certificate of {url.host} was not accepted, or it speaks no TLS.")
    except aiohttp.ClientConnectorError as error:
        return Answer(None, f"No connection to {url.host}: {error.os_error.strerror or 'it does not answer'}.")
    except (aiohttp.ClientError, OSError, ValueError):
        return Answer(None, f"{url.host} broke off before it had answered, or answered what is no HTTP.")


async def _send(url: URL, addresses: Sequence[str], body: bytes, headers: Mapping[str, str], now: datetime) -> Answer:
    connector = aiohttp.TCPConnector(resolver=Pinned(addresses), use_dns_cache=False, force_close=True)
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None),  # the one limit is around all of it
        headers={"User-Agent": AGENT, "Content-Type": "application/json", "Accept-Encoding": "identity"},
    )
    async with session, session.post(url, data=body, headers=headers, allow_redirects=False) as response:
        problem = problem_of(response.status)
        # A delivery is a delivery, however slowly its answer drips; of a refusal the words are worth waiting for.
        said = await _beginning(response) if problem else ""
        return Answer(response.status, problem, _clean(said, url), retry_after(response.headers.get("Retry-After"), now))


async def _beginning(response: aiohttp.ClientResponse) -> str:
    read = bytearray()
    try:
        async with asyncio.timeout(1):
            while len(read) < MOST_READ and (piece := await response.content.read(MOST_READ - len(read))):
                read += piece
    except (TimeoutError, aiohttp.ClientError):
        pass  # what has come so far is enough: the status is known
    return read.decode(errors="replace")


def _clean(said: str, url: URL) -> str:
    """One line without the address: many receivers repeat the path they do not know, and that is the secret."""
    for secret in (url.raw_path_qs, url.path_qs, url.raw_path, url.path):
        if len(secret) > 1:
            said = said.replace(secret, "/…")
    return " ".join("".join(char if char.isprintable() else " " for char in said).split())[:MOST_SAID]
