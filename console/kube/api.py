"""One API server, spoken to politely.

Every request goes through here: how many at once, how long at most, what a 429 means, which of our errors an answer is. Nothing
here knows nodes or pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import monotonic
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from console.kube.answers import Answer, error_of, is_budget, loads, retry_after
from console.kube.credentials import credentials, tls
from console.kube.errors import ReadOnly, Throttled, Unreachable
from console.kube.kubeconfig import Connection

MERGE_PATCH = "application/merge-patch+json"
JSON = "application/json"
READS = frozenset({"GET", "HEAD"})

# An HTTP Date has whole seconds, cut off; half a second more is right on average.
_DATE_ROUNDING = 0.5

# Seconds for which a connection that nobody uses is kept.
_KEPT = 60.0

# The one limit of a plain request is that of the caller, around all of it.
_UNTIMED = aiohttp.ClientTimeout(total=None)


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
        self._server = connection.server.rstrip("/")
        # Of plain http no certificates are read: that alone is 50 ms, each time somebody opens a connection.
        self._tls = tls(connection) if connection.server.startswith("https:") else True
        self._credentials = credentials(connection)
        self.clock_offset = 0.0

    async def __aenter__(self) -> Self:
        # Proxies in our environment are not asked: the kubeconfig says where to go. Watches are open beside the slots, so the
        # connector itself has no limit.
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, keepalive_timeout=_KEPT),
            headers={"User-Agent": "halftide", "Accept": JSON},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.close()

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
        until = None
        while True:
            async with self._slots:
                until = until or monotonic() + self._timeout  # from when it is sent: waiting for a slot is no fault of the API
                with _spoken_plainly():
                    async with asyncio.timeout(max(0, until - monotonic())):
                        answer = await self._send(method, self._url(path, params), headers, content)
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS or is_budget(answer):
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
        limits = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence)
        with _spoken_plainly():
            response = await self._open("GET", self._url(path, params), {}, None, limits)
        try:
            if response.status != HTTPStatus.OK:
                with _spoken_plainly():
                    body = await response.read()
                raise error_of(Answer(response.status, response.headers, body))
            yield _chunks(response, silence)
        finally:
            response.close()

    def _url(self, path: str, params: Mapping[str, str] | None) -> URL:
        """Paths come quoted (`resources`), and so does the query: nothing is left to a library's taste."""
        return URL(f"{self._server}{path}{f'?{urlencode(params)}' if params else ''}", encoded=True)

    async def _send(self, method: str, url: URL, headers: Mapping[str, str], content: bytes | None) -> Answer:
        response = await self._open(method, url, headers, content, _UNTIMED)
        async with response:
            return Answer(response.status, response.headers, await response.read())

    async def _open(
        self, method: str, url: URL, headers: Mapping[str, str], content: bytes | None, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """A request with our credentials, sent once more with newer ones where there are any after a 401."""
        token = await self._credentials.token(None)
        response = await self._signed(token, method, url, headers, content, limits)
        if response.status == HTTPStatus.UNAUTHORIZED and token:
            newer = await self._credentials.token(token)
            if newer is not None and newer != token:
                response.release()
                response = await self._signed(newer, method, url, headers, content, limits)
        self._note_date(response)
        return response

    async def _signed(
        self,
        token: str | None,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        content: bytes | None,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        return await self._http.request(
            method, url, data=content, headers={**headers, **bearer}, timeout=limits, allow_redirects=False
        )

    def _note_date(self, response: aiohttp.ClientResponse) -> None:
        try:
            told = parsedate_to_datetime(response.headers.get("Date", ""))
        except ValueError:
            return
        if told.tzinfo:
            self.clock_offset = (told - self._clock()).total_seconds() + _DATE_ROUNDING


@contextmanager
def _spoken_plainly() -> Iterator[None]:
    """The library's exceptions as our one: no usable answer."""
    try:
        yield
    except TimeoutError as error:
        raise Unreachable("The Kubernetes API did not answer in time.") from error
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise Unreachable("The Kubernetes API shows a certificate that this kubeconfig's authority did not sign.") from error
        raise Unreachable("The Kubernetes API cannot be reached.") from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable("The Kubernetes API cannot be reached.") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: an address that is none
        raise Unreachable("The connection to the Kubernetes API broke off.") from error


async def _chunks(response: aiohttp.ClientResponse, silence: float) -> AsyncIterator[bytes]:
    with _spoken_plainly():
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except TimeoutError as error:
            raise Unreachable(f"The Kubernetes API has said nothing for {silence:g} s.") from error
