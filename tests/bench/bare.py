"""The peers: clients that do nothing but send bytes and wait for the answer, so that what they reach is what the API gives."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Call = tuple[str, str, Any]  # method, path, body

_KINDS = {"PATCH": "application/merge-patch+json"}


@dataclass(frozen=True)
class Bare:
    """One API server by its address with its path prefix; where it speaks https, with whom to trust and a token."""

    address: str
    authority: Path | str | None = None
    token: str = ""

    async def send(self, calls: Iterable[Call], connections: int = 64) -> list[int]:
        """Each call once, over so many connections; the statuses in the order of the answers."""
        waiting, statuses = iter(calls), []

        async def worker() -> None:
            reader, writer = await self._open()
            for method, path, body in waiting:
                writer.write(self._head(method, path, body))
                statuses.append(await _answer(reader))
            writer.close()

        await asyncio.gather(*(worker() for _ in range(connections)))
        return statuses

    async def paced(self, calls: Iterable[Call], per_second: float, sent: Callable[[int], None]) -> None:
        """One call after another at a steady pace, over one connection; `sent` hears the number of each as it goes out."""
        reader, writer = await self._open()
        began = time.monotonic()
        for number, (method, path, body) in enumerate(calls):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            sent(number)
            writer.write(self._head(method, path, body))
            await _answer(reader)
        writer.close()

    async def watch(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """The lines of a watch, for as long as it lasts."""
        reader, writer = await self._open()
        writer.write(self._head("GET", path, None))
        await reader.readuntil(b"\r\n\r\n")
        rest = b""
        while size := int(await reader.readline(), 16):
            *whole, rest = (rest + await reader.readexactly(size)).split(b"\n")
            await reader.readline()
            for line in whole:
                yield json.loads(line)
        writer.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        trust = ssl.create_default_context(cafile=self.authority) if self.authority else None
        return await asyncio.open_connection(self._host, self._port, limit=2**24, ssl=trust)

    @property
    def _host(self) -> str:
        return urlsplit(self.address).hostname or ""

    @property
    def _port(self) -> int:
        return urlsplit(self.address).port or 80

    def _head(self, method: str, path: str, body: Any) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {urlsplit(self.address).path}{path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nUser-Agent: bare\r\n"
            f"Content-Type: {_KINDS.get(method, 'application/json')}\r\nContent-Length: {len(content)}\r\n"
        )
        if self.token:
            head += f"Authorization: Bearer {self.token}\r\n"
        head += "\r\n"
        return head.encode() + content


async def _answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if "transfer-encoding: chunked" in head:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(head.partition("content-length:")[2].partition("\r\n")[0]))
    return int(head.split(" ", 2)[1])
