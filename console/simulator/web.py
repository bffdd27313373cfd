"""The little of HTTP that this room needs: a request, an answer, a stream.

Plain ASGI rather than a framework: a watch is one long answer whose client may leave at any moment, and that is the only
hard part here. Each answer carries a Date header of its own, because the clock of an API can be made wrong (`skew`).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from console.simulator.values import Json, dumps

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
MAX_BODY = 3 * 1024 * 1024  # the limit of the real API server


@dataclass(frozen=True)
class Request:
    """One request with its whole body."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """One complete answer."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """An answer that goes on until it has been said, or the client leaves."""

    chunks: AsyncGenerator[bytes, None]
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response | Stream]]


def answer(body: Json | list[Any], status: int = 200) -> Response:
    """A JSON answer."""
    return Response(status, dumps(body))


async def read(scope: MutableMapping[str, Any], receive: Receive) -> Request | None:
    """The whole request, or None when its client left or sent too much."""
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
        more = message.get("more_body", False)
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    return Request(scope["method"], scope["path"], dict(pairs), headers, b"".join(parts))


async def send_response(response: Response, send: Send) -> None:
    """Write a complete answer."""
    headers = [(b"content-type", response.content_type.encode()), (b"content-length", str(len(response.body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in response.headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


async def send_stream(stream: Stream, receive: Receive, send: Send, closing: asyncio.Event) -> None:
    """Write a stream and stop as soon as its client is gone or we are: an idle watch would otherwise live until its time-out."""

    async def pump() -> None:
        async for chunk in stream.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    headers = [(b"content-type", stream.content_type.encode()), (b"cache-control", b"no-cache, private")]
    headers += [(name.encode(), value.encode()) for name, value in stream.headers.items()]
    await send({"type": "http.response.start", "status": stream.status, "headers": headers})
    pumping, leaving, ending = (
        asyncio.ensure_future(pump()),
        asyncio.ensure_future(receive()),
        asyncio.ensure_future(closing.wait()),
    )
    tasks: list[asyncio.Future[Any]] = [pumping, leaving, ending]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if pumping.done():
            pumping.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await stream.chunks.aclose()
    if ending.done() and not ending.cancelled():
        await send({"type": "http.response.body", "body": b""})
