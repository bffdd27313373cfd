"""How machines and controllers reach their cluster: over HTTP, like anyone else.

They get no way around the API, so that what they can do is what a real kubelet or controller could do, and the order in
which others see it is the real one.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from console.simulator.values import Json, dumps, loads

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
AGENT = "halftide-simulator"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_NODE_STATUS = re.compile(r"/api/v1/nodes/[^/]+/status$")
AT_ONCE = 8  # requests under way: the API they go to is one loop, this one


class Refused(Exception):
    """The API said no, or something that is no JSON."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason = status, reason


@dataclass(frozen=True)
class Call:
    """One write, as data: what the pure parts decide and the client does."""

    method: str
    path: str
    body: Json
    content_type: str = "application/json"


def collection(plural: str, namespace: str = "", group: str = "") -> str:
    """The path of a collection."""
    base = f"/apis/{group}" if group else "/api/v1"
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


def pod_path(pod: Json, subresource: str = "") -> str:
    """The path of a pod or one of its subresources."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    return f"{path}/{subresource}" if subresource else path


class Lanes(httpx.AsyncBaseTransport):
    """Watches and heartbeats on connections of their own, everything else through a few.

    The library looks at every connection and every waiting request it has, for each request:
    a hundred machines whose pods all start at once kept it at nothing else for minutes. A real machine's heartbeat, its Lease and
    its Node's status, does not wait for what the others have to say of their pods.
    """

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        def lane() -> httpx.AsyncHTTPTransport:
            return httpx.AsyncHTTPTransport(verify=trust or True, trust_env=False, limits=httpx.Limits(max_connections=None))

        self._watches, self._heartbeats, self._others = lane(), lane(), lane()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if "watch" in request.url.params:
            return await self._watches.handle_async_request(request)
        if LEASES in request.url.path or _NODE_STATUS.search(request.url.path):
            return await self._heartbeats.handle_async_request(request)
        async with self._slots:
            return await self._others.handle_async_request(request)

    async def aclose(self) -> None:
        await self._watches.aclose()
        await self._heartbeats.aclose()
        await self._others.aclose()


class Client:
    """One cluster's API."""

    def __init__(self, http: httpx.AsyncClient, server: str) -> None:
        self._http, self._server = http, server

    async def do(self, call: Call) -> Json:
        """Send a write. Raises Refused, or httpx.HTTPError when nobody answers."""
        headers = {"content-type": call.content_type, "user-agent": AGENT}
        response = await self._http.request(call.method, self._server + call.path, content=dumps(call.body), headers=headers)
        return _body(response)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""
        response = await self._http.get(self._server + path, params=params, headers={"user-agent": AGENT})
        return _body(response)

    async def watch(self, path: str, version: str) -> AsyncGenerator[tuple[str, Json], None]:
        """The changes after a version, until the server ends the stream."""
        params = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "600"}
        timeout = httpx.Timeout(10, read=60)
        headers = {"user-agent": AGENT}
        async with self._http.stream("GET", self._server + path, params=params, headers=headers, timeout=timeout) as response:
            if response.status_code != 200:
                raise Refused(response.status_code, "", "the watch was refused")
            async for line in response.aiter_lines():
                change = loads(line)
                yield change["type"], change["object"]


def _body(response: httpx.Response) -> Json:
    try:
        body: Any = loads(response.content)
    except ValueError:
        raise Refused(response.status_code, "", "no JSON") from None
    if response.status_code >= 400:
        raise Refused(response.status_code, body.get("reason", ""), body.get("message", ""))
    return dict(body)
