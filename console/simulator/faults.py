"""What can be made to go wrong between a cluster and those outside it, for tests. The machines inside are not touched:
a fault stands for the way to the API, not for the API's own world.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from console.simulator.kubernetes.errors import ApiError
from console.simulator.kubernetes.streams import error_line
from console.simulator.values import Json
from console.simulator.web import Request, Response

KINDS = {
    "down": "503 for every request, and open watches end",
    "status": "an error status of your choice (`code`, `reason`, `message`, `retry_after`)",
    "delay": "each request waits `seconds` before it is served",
    "garbage": "an answer that is no JSON; in a watch, such a line",
    "expired": "410: as HTTP status of a list, as ERROR event of a watch",
    "silent": "watches stay open and say nothing",
    "cut": "the next line of a watch stops in its middle and the stream ends",
    "older": "lists are as they were `behind` changes ago, as far as that is remembered",
    "partial": "lists come one object a page, and every page but the first fails with `code`",
    "skew": "the API's clock is `offset` seconds ahead of ours (or behind)",
}
NUMBERS = ("code", "retry_after", "seconds", "times", "behind")
DAY = 86_400


class BadFault(Exception):
    """A fault that makes no sense; its text says why."""


@dataclass
class Fault:
    """One fault; empty `verbs` or `resources` mean all, `times` counts down where it is set."""

    kind: str
    verbs: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    code: int = 500
    reason: str = "InternalError"
    message: str = "a fault was asked for"
    retry_after: int = 0
    seconds: float = 0.0
    behind: int = 100
    offset: int = 0
    times: int | None = None
    until: float = field(default=float("inf"))

    @property
    def spent(self) -> bool:
        """It has run out."""
        return (self.times is not None and self.times < 1) or time.monotonic() > self.until

    def shown(self) -> Json:
        """As the control API says it: what it was asked for, and how much of it is left."""
        found: Json = {"kind": self.kind, "verbs": sorted(self.verbs), "resources": sorted(self.resources)}
        found |= {"code": self.code} if self.kind in ("status", "partial") else {}
        found |= {"offset": self.offset} if self.kind == "skew" else {}
        found |= {"times": self.times} if self.times is not None else {}
        left = self.until - time.monotonic()
        return found | ({"for_seconds": round(left)} if left != float("inf") else {})

    def hits(self, verb: str, resource: str) -> bool:
        """Whether it concerns this request, and has not run out."""
        return not self.spent and (not self.verbs or verb in self.verbs) and (not self.resources or resource in self.resources)

    def spend(self) -> None:
        """Count one use."""
        if self.times is not None:
            self.times -= 1


def parse(body: Json) -> Fault:
    """A fault from a request. Raises BadFault."""
    kind = body.get("kind")
    if kind not in KINDS:
        raise BadFault(f"kind must be one of {', '.join(KINDS)}.")
    fault = Fault(str(kind), frozenset(body.get("verbs") or ()), frozenset(body.get("resources") or ()))
    for name in NUMBERS:
        value = body.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            raise BadFault(f"{name} must be a number that is not negative.")
    fault.code = int(body.get("code", fault.code))
    fault.reason, fault.message = str(body.get("reason", fault.reason)), str(body.get("message", fault.message))
    fault.retry_after, fault.seconds = int(body.get("retry_after", 0)), float(body.get("seconds", 0))
    fault.behind = int(body.get("behind", fault.behind))
    fault.offset = _offset(body) if kind == "skew" else 0
    fault.times = None if body.get("times") is None else int(body["times"])
    if body.get("for_seconds") is not None:
        fault.until = time.monotonic() + float(body["for_seconds"])
    return fault


def _offset(body: Json) -> int:
    offset = body.get("offset")
    if isinstance(offset, bool) or not isinstance(offset, int) or not -DAY <= offset <= DAY:
        raise BadFault("offset must be a whole number of seconds, a day at most.")
    return offset


class Faults:
    """The faults of one cluster."""

    def __init__(self) -> None:
        self._active: list[Fault] = []
        self._changed = asyncio.Event()

    def add(self, fault: Fault) -> None:
        """From now on."""
        self._active.append(fault)
        self._wake()

    def clear(self) -> None:
        """All well again."""
        self._active.clear()
        self._wake()

    def shown(self) -> list[Json]:
        """Those that have not run out, as the control API says them."""
        return [fault.shown() for fault in self._active if not fault.spent]

    @property
    def offset(self) -> int:
        """How far the API's clock is ahead, in seconds. The last word counts."""
        fault = next((fault for fault in reversed(self._active) if fault.kind == "skew" and not fault.spent), None)
        return fault.offset if fault else 0

    def asked(self, request: Request, resource: str, oldest: int, version: int) -> Request | Response:
        """A list as the API understands it: an older one, a page of one object, or instead of a later page an error.

        `oldest` is the first version that can still be shown, `version` the latest.
        """
        older = self._pick(("older",), "list", resource)
        if older and "continue" not in request.query:
            older.spend()
            exactly = {"resourceVersion": str(max(oldest, version - older.behind)), "resourceVersionMatch": "Exact"}
            return replace(request, query={**request.query, **exactly})
        partial = self._pick(("partial",), "list", resource)
        if partial is None:
            return request
        if "continue" not in request.query:
            return replace(request, query={**request.query, "limit": "1"})
        partial.spend()
        return ApiError(partial.code, partial.reason, partial.message).response()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _pick(self, kinds: Iterable[str], verb: str, resource: str) -> Fault | None:
        return next((fault for fault in self._active if fault.kind in kinds and fault.hits(verb, resource)), None)

    async def before(self, verb: str, resource: str) -> Response | None:
        """What comes instead of an answer, if anything does."""
        if delay := self._pick(("delay",), verb, resource):
            delay.spend()
            await asyncio.sleep(delay.seconds)
        kinds = ("down", "status") if verb == "watch" else ("down", "status", "garbage", "expired")
        fault = self._pick(kinds, verb, resource)
        if fault is None:
            return None
        fault.spend()
        if fault.kind == "garbage":
            return Response(200, b"<html><body>It works!</body></html>", "text/html")
        if fault.kind == "down":
            return ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request").response()
        if fault.kind == "expired":
            return ApiError(410, "Expired", "The resourceVersion for the provided list is too old.").response()
        error = ApiError(fault.code, fault.reason, fault.message).response()
        headers = {"retry-after": str(fault.retry_after)} if fault.retry_after else {}
        return Response(error.status, error.body, headers=headers)

    async def through(self, chunks: AsyncGenerator[bytes, None], resource: str) -> AsyncGenerator[bytes, None]:
        """A watch with its faults, those too that come while it is open."""
        waiting: asyncio.Future[Any] = asyncio.ensure_future(anext(chunks, None))
        changed: asyncio.Future[Any] = asyncio.ensure_future(self._changed.wait())
        try:
            while True:
                await asyncio.wait([waiting, changed], return_when=asyncio.FIRST_COMPLETED)
                if changed.done():
                    changed = asyncio.ensure_future(self._changed.wait())
                fault = self._pick(("down", "garbage", "expired", "silent", "cut"), "watch", resource)
                if fault is not None and fault.kind == "silent":
                    await self._until_changed(fault)
                elif fault is not None and (fault.kind != "cut" or waiting.done()):
                    fault.spend()
                    yield _last_words(fault, waiting.result() if waiting.done() else None)
                    return
                elif waiting.done():
                    chunk = waiting.result()
                    if chunk is None:
                        return
                    yield chunk
                    waiting = asyncio.ensure_future(anext(chunks, None))
        finally:
            waiting.cancel()
            changed.cancel()
            await asyncio.gather(waiting, changed, return_exceptions=True)
            await chunks.aclose()

    async def _until_changed(self, fault: Fault) -> None:
        limited = fault.until != float("inf")
        try:
            async with asyncio.timeout(max(0.0, fault.until - time.monotonic()) if limited else None):
                await self._changed.wait()
        except TimeoutError:
            return


def _last_words(fault: Fault, chunk: bytes | None) -> bytes:
    """What a watch says before a fault ends it."""
    if fault.kind == "cut":
        return (chunk or b"")[:20]
    if fault.kind == "expired":
        return error_line(ApiError(410, "Expired", "too old resource version: 1 (2)"))
    return b"<html>this is no JSON</html>\n" if fault.kind == "garbage" else b""
