"""A small HTTP server that answers as it is told, well or badly.

Real servers do not cut an answer, fall silent or forget a version on demand; this one does. It knows nothing of Kubernetes.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """What the server was asked; `tick` is what its `clock` said then."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    tick: float

    @property
    def sent(self) -> dict[str, object]:
        """The JSON object of the body."""
        loaded = json.loads(self.body)
        assert isinstance(loaded, dict)
        return loaded


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The body as it goes out: bytes as they are, everything else as JSON."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Stream:
    """A chunked answer: `parts`, then an orderly end, a cut connection, or silence."""

    parts: tuple[object, ...] = ()
    then: Literal["end", "cut", "silence"] = "end"

    def encoded(self) -> list[bytes]:
        """Each part as it goes out: bytes as they are, everything else as one JSON line."""
        return [part if isinstance(part, bytes) else json.dumps(part).encode() + b"\n" for part in self.parts]


Answer = Reply | Stream
Answerer = Answer | Callable[[Request], Answer]


class Faulty:
    """The server. Tell it with `on`; what it was asked is in `requests`. A watch is the method WATCH."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.clock: Callable[[], float] = lambda: 0.0
        self.under_way = self.most_under_way = 0
        self.hold: asyncio.Event | asyncio.Barrier | None = None
        self._script: dict[tuple[str, str], list[Answerer]] = defaultdict(list)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, method: str, path: str, *answers: Answerer) -> None:
        """From now on answer so, one after the other; the last one for ever."""
        self._script[method, path] = list(answers)

    def asked(self, method: str, path: str) -> list[Request]:
        """The requests of one kind so far."""
        return [r for r in self.requests if (r.method, r.path) == (method, path)]

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._server
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Faulty:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            while request := await self._read(reader):
                self.requests.append(request)
                self.under_way += 1
                self.most_under_way = max(self.most_under_way, self.under_way)
                if self.hold:
                    await self.hold.wait()
                self.under_way -= 1
                if not await self._answer(self._next(request), writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        line = (await reader.readline()).decode()
        if not line:
            return None
        method, target, _ = line.split(" ", 2)
        headers: dict[str, str] = {}
        while head := (await reader.readline()).decode().strip():
            name, _, value = head.partition(":")
            headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        return Request("WATCH" if "watch" in query else method, unquote(parts.path), query, headers, body, self.clock())

    def _next(self, request: Request) -> Answer:
        script = self._script[request.method, request.path]
        if not script:
            return Reply({"kind": "Status", "message": "not told what to say", "code": 404}, 404)
        answer = script.pop(0) if len(script) > 1 else script[0]
        return answer(request) if callable(answer) else answer

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        """Send it; whether the connection may be used again."""
        if isinstance(answer, Reply):
            body = answer.encoded()
            heads = {"Content-Length": str(len(body)), "Content-Type": "application/json"} | answer.headers
            writer.write(_head(answer.status, heads) + body)
            await writer.drain()
            return True
        writer.write(_head(200, {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}))
        for part in answer.encoded():
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        if answer.then == "silence":
            await asyncio.Event().wait()
        if answer.then == "end":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return answer.then == "end"


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()
