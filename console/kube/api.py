"""One API server, spoken to politely.

Every request goes through here: how many at once, how long at most, what a 429 means, which of our errors an answer is. Nothing
here knows nodes or pods.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import cycle
from time import monotonic
from types import TracebackType
from typing import Self

import httpx2
import orjson

from console.kube.answers import Answer, error_of, is_budget, loads, retry_after
from console.kube.credentials import auth, tls
from console.kube.errors import ReadOnly, Throttled, Unreachable
from console.kube.kubeconfig import Connection

MERGE_PATCH = "application/merge-patch+json"
JSON = "application/json"
READS = frozenset({"GET", "HEAD"})

# An HTTP Date has whole seconds, cut off; half a second more is right on average.
_DATE_ROUNDING = 0.5


def utc_now() -> datetime:
    """Our clock."""
    return datetime.now(UTC)


class Api:
    """The connection to one API server; use it as `async with`.

    At most `max_in_flight` requests are under way (open watches not counted); each may take `timeout` seconds in all, waiting for
    a throttling server included. `clock_offset` is the API's clock minus ours in seconds, as its last answer's Date header told.
    """

    def __init__(
        self,
        connection: Connection,
        max_in_flight: int = 64,
        timeout: float = 10,
        *,
        clock: Callable[[], datetime] = utc_now,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._read_only = connection.read_only
        self._timeout = timeout
        self._clock = clock
        self._pause = pause
        self._slots = asyncio.Semaphore(max_in_flight)
        # Proxies in our environment are not asked: the kubeconfig says where to go.
        self._http = httpx2.AsyncClient(
            base_url=connection.server,
            auth=auth(connection),
            timeout=timeout,
            trust_env=False,
            headers={"User-Agent": "halftide", "Accept": JSON},
            transport=_Spread(tls(connection), max_in_flight),
        )
        self.clock_offset = 0.0

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.__aexit__(kind, error, trace)

    def now(self) -> datetime:
        """Our clock, as this connection was given it."""
        return self._clock()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> Answer:
        """One request and its answer, a refusal included. Raises Unreachable, Unauthorized (no token) or Throttled only,
        and ReadOnly, before anything is sent, for a write on a connection that is for reading only.

        A throttling server is asked again after what it says, at least, while that fits into the time-out
        (kubernetes/client-go#222). A disruption budget's 429 is no throttling and comes back as the answer it is.
        """
        if self._read_only and method not in READS:
            raise ReadOnly("This cluster is only observed: nothing is ever sent to it.")
        content = None if body is None else orjson.dumps(body)
        headers = {} if content is None else {"Content-Type": content_type}
        request = self._http.build_request(method, path, params=params, content=content, headers=headers)
        until = None
        while True:
            async with self._slots:
                until = until or monotonic() + self._timeout  # from when it is sent: waiting for a slot is no fault of the API
                answer = await self._send(request, until - monotonic())
            if answer.status != httpx2.codes.TOO_MANY_REQUESTS or is_budget(answer):
                return answer
            wait = retry_after(answer)
            if monotonic() + wait >= until:
                raise Throttled(f"The Kubernetes API asks us to wait {wait:g} s.", wait)
            await self._pause(wait)

    async def ask_json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> Mapping[str, object]:
        """As `ask`, for when only success will do: the object answered. Raises any KubeError."""
        answer = await self.ask(method, path, params=params, body=body, content_type=content_type)
        if not answer.ok:
            raise error_of(answer)
        return loads(answer.body)

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str], silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """An open answer as it comes in. `silence` is how many seconds without a byte are believed. Raises any KubeError."""
        request = self._http.build_request("GET", path, params=params, timeout=httpx2.Timeout(self._timeout, read=silence))
        with _spoken_plainly():
            response = await self._http.send(request, stream=True)
        try:
            self._note_date(response)
            if response.status_code != httpx2.codes.OK:
                with _spoken_plainly():
                    body = await response.aread()
                raise error_of(Answer(response.status_code, response.headers, body))
            yield _chunks(response, silence)
        finally:
            await response.aclose()

    async def _send(self, request: httpx2.Request, seconds: float) -> Answer:
        with _spoken_plainly():
            async with asyncio.timeout(max(0, seconds)):
                response = await self._http.send(request)
        self._note_date(response)
        return Answer(response.status_code, response.headers, response.content)

    def _note_date(self, response: httpx2.Response) -> None:
        try:
            told = parsedate_to_datetime(response.headers.get("Date", ""))
        except ValueError:
            return
        if told.tzinfo:
            self.clock_offset = (told - self._clock()).total_seconds() + _DATE_ROUNDING


class _Spread(httpx2.AsyncBaseTransport):
    """Connections for `width` requests at once, in several pools that take turns.

    The library looks at every idle connection of a pool before and after each request, with a system call each: with 64 in one
    pool that was the largest part of a request's cost. And it keeps 20 by default, so most would close after each burst.
    """

    _WIDTH = 8

    def __init__(self, context: ssl.SSLContext, width: int) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=self._WIDTH, keepalive_expiry=60)
        self._pools = [
            httpx2.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits) for _ in range(-(-width // self._WIDTH))
        ]
        self._turns = cycle(self._pools)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await next(self._turns).handle_async_request(request)

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


@contextmanager
def _spoken_plainly() -> Iterator[None]:
    """The library's exceptions as our one: no usable answer."""
    try:
        yield
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise Unreachable("The Kubernetes API did not answer in time.") from error
    except httpx2.ConnectError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise Unreachable("The Kubernetes API shows a certificate that this kubeconfig's authority did not sign.") from error
        raise Unreachable("The Kubernetes API cannot be reached.") from error
    except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise Unreachable("The connection to the Kubernetes API broke off.") from error


async def _chunks(response: httpx2.Response, silence: float) -> AsyncIterator[bytes]:
    with _spoken_plainly():
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx2.ReadTimeout as error:
            raise Unreachable(f"The Kubernetes API has said nothing for {silence:g} s.") from error
