"""A proxy between Halftide and the API that misbehaves on request, with TLS before and behind it.

It shows the API server's own certificate, since both are on 127.0.0.1. A fault is armed for a while (`with proxy.fault(…)`) and
reaches what is under way too: an open watch is frozen, cut or ended where it stands.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from tests.controlplane.plane import Plane

HOPS = {"host", "content-length", "transfer-encoding", "connection", "content-encoding", "accept-encoding"}


@dataclass(frozen=True)
class Request:
    """One that came: `verb` as Kubernetes calls it."""

    at: datetime
    verb: str
    path: str


@dataclass
class Fault:
    """What is done to requests of these verbs whose path ends so; `times` None: until it is lifted."""

    kind: str
    verbs: frozenset[str]
    ends: str = ""
    times: int | None = None
    seconds: float = 0.0
    hits: int = 0

    def takes(self, verb: str, path: str) -> bool:
        spent = self.times is not None and self.hits >= self.times
        return verb in self.verbs and path.endswith(self.ends) and not spent


@dataclass
class Proxy:
    """On a thread with a loop of its own. `port` 0: any."""

    plane: Plane
    asked: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    accepts: str = ""  # the only token that is let through, where one is named
    url: str = ""
    _kept: dict[str, bytes] = field(default_factory=dict)  # the first list of each path, to be shown again when it is old

    def __enter__(self) -> "Proxy":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(20)
        return self

    def __exit__(self, *_: object) -> None:
        self.faults.clear()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        self._turned = asyncio.Event()  # a fault was armed or lifted
        behind = ssl.create_default_context(cafile=self.plane.authority)
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=behind, limit=0))
        before = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        before.load_cert_chain(self.plane.home / "tls.crt", self.plane.home / "tls.key")
        self._runner = web.AppRunner(_app(self._answer), shutdown_timeout=0.5, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=before)
        await site.start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _close(self) -> None:
        await self._runner.cleanup()
        await self._http.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    @contextmanager
    def fault(self, kind: str, *verbs: str, **more: Any) -> Iterator[Fault]:
        """Misbehave so until the end of the block."""
        armed = Fault(kind, frozenset(verbs), **more)
        self.faults.append(armed)
        self._loop.call_soon_threadsafe(self._turn)
        try:
            yield armed
        finally:
            self.lift(armed)

    def lift(self, fault: Fault) -> None:
        """End it before its block does."""
        if fault in self.faults:
            self.faults.remove(fault)
            self._loop.call_soon_threadsafe(self._turn)

    def _turn(self) -> None:
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    def since(self, at: datetime, verb: str, ends: str) -> list[datetime]:
        """When requests of this verb came, from `at` on."""
        return [one.at for one in list(self.asked) if one.at >= at and one.verb == verb and one.path.endswith(ends)]

    def _fault(self, verb: str, path: str) -> Fault | None:
        return next((fault for fault in self.faults if fault.takes(verb, path)), None)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        verb = verb_of(request)
        self.asked.append(Request(datetime.now(UTC), verb, request.path))
        if self.accepts and request.headers.get("authorization") != f"Bearer {self.accepts}":
            return status(401, "Unauthorized", "Unauthorized")
        if (fault := self._fault(verb, request.path)) and (instead := await self._instead(request, fault)) is not None:
            return instead
        url = URL(self.plane.url + request.raw_path, encoded=True)
        if fault and fault.kind == "expired":
            url = url.update_query(limit="1")  # so that a short list has pages
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOPS}
        headers["Accept-Encoding"] = "identity"
        answer = await self._http.request(request.method, url, headers=headers, data=await request.read(), allow_redirects=False)
        async with answer:
            if verb == "watch":
                return await self._stream(request, answer)
            body = await answer.read()
        if verb == "list":
            self._kept.setdefault(request.path_qs, body)
        if fault and fault.kind == "lost":
            fault.hits += 1
            request.transport.abort()  # type: ignore[union-attr]  # it was done, and nobody hears of it
        return web.Response(status=answer.status, body=body, headers=kept(answer))

    async def _instead(self, request: web.Request, fault: Fault) -> web.StreamResponse | None:
        """What is answered without asking the API, if anything."""
        match fault.kind:
            case "delay":
                fault.hits += 1
                await asyncio.sleep(fault.seconds)
            case "freeze":
                while fault in self.faults:
                    await self._turned.wait()
            case "refuse":
                fault.hits += 1
                request.transport.abort()  # type: ignore[union-attr]
            case "throttle":
                fault.hits += 1
                late = {"Retry-After": f"{fault.seconds:g}"}
                return status(429, "TooManyRequests", "Too many requests, please try again later.", late)
            case "forbidden":
                fault.hits += 1
                return status(403, "Forbidden", f"{request.path} is forbidden by the proxy")
            case "gone":
                fault.hits += 1
                return status(410, "Expired", "too old resource version: 1 (2)")
            case "expired" if "continue" in request.query:
                fault.hits += 1
                if fault.hits % 2 == 0:  # the third page: the second that continues
                    return status(410, "Expired", "The provided continue parameter is too old")
            case "older" if request.path_qs in self._kept:
                fault.hits += 1
                return web.Response(body=self._kept[request.path_qs], content_type="application/json")
        return None

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """A watch, line by line, as long as both want it and no fault ends it."""
        response = web.StreamResponse(status=answer.status, headers=kept(answer))
        await response.prepare(request)
        await response.write(b"\n")  # so that the headers go, which the library else keeps until there is something to say
        lines = answer.content.__aiter__()
        waiting: asyncio.Future[bytes] | None = None
        try:
            while True:
                if request.transport is None:
                    return response  # whoever asked has gone, and a fault is for those who are there
                fault = self._fault("watch", request.path)
                if fault and fault.kind in ENDINGS:
                    fault.hits += 1
                    await ENDINGS[fault.kind](request, response)
                    return response
                frozen = fault is not None and fault.kind == "freeze"
                waiting = waiting or asyncio.ensure_future(lines.__anext__())
                turned = asyncio.ensure_future(self._turned.wait())
                await asyncio.wait({turned} if frozen else {waiting, turned}, return_when=asyncio.FIRST_COMPLETED)
                turned.cancel()
                if not frozen and waiting.done():
                    line, waiting = waiting.result(), None
                    await response.write(line)
        except (StopAsyncIteration, ConnectionError, aiohttp.ClientError):
            return response
        finally:
            if waiting:
                waiting.cancel()


async def _cut(request: web.Request, response: web.StreamResponse) -> None:
    await response.write(b'{"type":"MODIFIED","object":{"kind":"Node","metadata":{"name":"gpu')
    await asyncio.sleep(0.05)
    request.transport.abort()  # type: ignore[union-attr]


async def _gone(request: web.Request, response: web.StreamResponse) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (2)"}
    await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")


async def _refuse(request: web.Request, response: web.StreamResponse) -> None:
    request.transport.abort()  # type: ignore[union-attr]


ENDINGS: dict[str, Callable[[web.Request, web.StreamResponse], Awaitable[None]]] = {
    "cut": _cut,
    "gone in stream": _gone,
    "refuse": _refuse,
    "gone": _refuse,
    "forbidden": _refuse,
}


def _app(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def verb_of(request: web.Request) -> str:
    """As the audit log names it."""
    if request.method == "GET":
        parts = request.path.strip("/").split("/")
        collection = parts[-1] in {"nodes", "pods", "events", "poddisruptionbudgets"}
        return "watch" if "watch" in request.query else "list" if collection else "get"
    return {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[request.method]


def status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)


def kept(answer: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers that go on."""
    return {key: value for key, value in answer.headers.items() if key.lower() not in HOPS}
