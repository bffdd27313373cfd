"""The address of a webhook as a person typed it: read, refused with a sentence, resolved, and shown without its secret.

It is read by the same parser that sends to it (yarl), so that no two readings of one text can differ.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from yarl import URL

from console.http import BadInput
from console.webhooks.allowed import Allowed, judge, plain

LONGEST = 2000
SHOWN = 4  # last characters that everybody sees: enough to tell two apart, and no secret
LEAST_SECRET = 12  # characters of a path below which even four would say too much
ORDINARY_PORTS = (80, 443)
FIRST_FREE_PORT = 1024  # mail, SSH and the like are below
LOOKUP_LIMIT = 3.0  # seconds for a name at save

# Resolving has no time-out of its own. A run that gives up leaves its thread behind, so these outlive their loops.
_RESOLVERS = ThreadPoolExecutor(8, thread_name_prefix="resolve")

Lookup = Callable[[str, int], list[str]]


def read(text: str, allowed: Allowed) -> URL:
    """The address, looked at without asking any name server. Raises BadInput, which never repeats it."""
    text = text.strip()
    if not text:
        raise _bad("A webhook needs an address that begins with https://.")
    if len(text) > LONGEST:
        raise _bad(f"The address has {len(text)} characters; at most {LONGEST} are kept.")
    if not text.isprintable() or " " in text or "\\" in text:
        raise _bad("The address holds a blank, a backslash or a character that cannot be shown.")
    try:
        url = URL(text)
        host, port = url.raw_host, url.port
    except ValueError:
        raise _bad("This is not an address that can be read.") from None
    if url.scheme not in ("http", "https") or not host or port is None:
        raise _bad("The address begins with https:// and a host name.")
    if url.user is not None or url.password is not None:
        raise _bad("The address holds a name or a password before the @. Put what is secret into the path.")
    if url.fragment:
        raise _bad("The address holds a #: what stands after it is never sent.")
    if port not in ORDINARY_PORTS and port < FIRST_FREE_PORT and plain(host) not in allowed.names:
        raise _bad(f"Port {port} is not for web addresses. Use 443, or one from {FIRST_FREE_PORT} on.")
    return url


def lookup(host: str, port: int) -> list[str]:
    """All addresses that a name stands for now, or the address itself; none where there is no such name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def resolve(url: URL, find: Lookup = lookup) -> list[str]:
    """What the host stands for, asked for in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_RESOLVERS, find, url.raw_host or "", url.port or 0)


def check(text: str, allowed: Allowed, find: Lookup = lookup) -> URL:
    """Read an address and look where it leads now. Raises BadInput with why it cannot be used."""
    url = read(text, allowed)

    async def ask() -> list[str]:
        async with asyncio.timeout(LOOKUP_LIMIT):
            return await resolve(url, find)

    try:
        addresses = asyncio.run(ask())
    except TimeoutError:
        raise _bad(f"Asking for {url.host} took longer than {LOOKUP_LIMIT:g} s. Try again.") from None
    refused = judge(url.scheme, url.raw_host or "", addresses, allowed)
    if refused is not None:
        raise _bad(refused)
    return url


def shown(url: URL) -> tuple[str, str]:
    """Host (with its port where it is no ordinary one) and the last four characters: what everybody may see of it."""
    host = url.raw_host or ""
    if ":" in host:
        host = f"[{host}]"
    path = url.raw_path_qs
    port = "" if url.is_default_port() else f":{url.port}"
    return f"{host}{port}"[:253], path[-SHOWN:] if len(path) > LEAST_SECRET else ""


def _bad(sentence: str) -> BadInput:
    return BadInput(sentence, param="address")
