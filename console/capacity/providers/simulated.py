"""The simulator's machines, through its control API on loopback."""

import ssl
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import httpx

from console.capacity.providers.base import Given, NewCluster, NoCapacity, Order, PoolState, Refused, Standing, Unclear

LIMIT = 3.0  # seconds for one answer: a run makes three rounds of requests at most and has 15

# Plain http on loopback needs no authorities, and loading them would cost 26 ms at each of the sweep's looks. It trusts nobody.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Simulated:
    """`url` is the simulator's; its token is read anew each time, because the simulator may be started after us."""

    def __init__(
        self, url: str, token_file: Path, limit: float = LIMIT, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url
        self._token_file = token_file
        self._limit = limit
        self._transport = transport

    async def __aenter__(self) -> Self:
        self._client = httpx.AsyncClient(
            base_url=f"{self._url}/control",
            headers={"Authorization": f"Bearer {self._token()}"},
            timeout=self._limit,
            trust_env=False,
            verify=NO_TLS,
            transport=self._transport,
            limits=httpx.Limits(max_connections=64),
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._client.aclose()

    def _token(self) -> str:
        try:
            return self._token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return "none"  # refused by the simulator, and said so, like any wrong token

    async def pools(self) -> list[PoolState]:
        return [_pool_state(each) for each in _items(await self._ask("GET", "/pools"), "pools")]

    async def pool(self, region: str, gpu_type: str) -> PoolState:
        return _pool_state({"region": region, "gpu_type": gpu_type, **await self._ask("GET", f"/pools/{region}/{gpu_type}")})

    async def launch(self, order: Order) -> Given:
        body = {
            "token": str(order.token),
            "region": order.region,
            "gpu_type": order.gpu_type,
            "cluster_id": str(order.cluster),
            "node_name": order.node_name,
            "compute_class": order.compute_class,
            "labels": dict(order.labels),
            "taints": [dict(taint) for taint in order.taints],
        }
        return _given(await self._ask("POST", "/machines", json=body))

    async def look_up(self, token: UUID) -> Given | None:
        found = await self._ask("GET", f"/machines/{token}", missing_is_none=True)
        return _given(found) if found is not None else None

    async def list(self, region: str, gpu_type: str) -> list[Given]:
        found = await self._ask("GET", "/machines", params={"region": region, "gpu_type": gpu_type})
        return [_given(each) for each in _items(found, "machines")]

    async def terminate(self, token: UUID) -> None:
        await self._ask("DELETE", f"/machines/{token}", missing_is_none=True)

    async def create_cluster(self, cluster: UUID, name: str, region: str) -> NewCluster:
        found = await self._ask("POST", "/clusters", json={"id": str(cluster), "name": name, "region": region})
        try:
            return NewCluster(str(found["server"]), str(found["kubeconfig"]))
        except (KeyError, TypeError):
            raise Unclear("the provider's answer about a new cluster cannot be read") from None

    async def _ask(self, verb: str, path: str, *, missing_is_none: bool = False, **more: Any) -> Any:
        try:
            response = await self._client.request(verb, path, **more)
            body = response.json() if response.content else {}
        except (httpx.HTTPError, ValueError) as error:
            raise Unclear(f"the provider does not answer ({type(error).__name__})") from error
        if response.is_success:
            return body
        reason = body.get("reason", "") if isinstance(body, dict) else ""
        if response.status_code == 404 and missing_is_none:
            return None
        if response.status_code == 409 and reason == "NoCapacity":
            raise NoCapacity("nothing is free")
        if response.status_code >= 500 or response.status_code in (408, 429):
            raise Unclear(f"the provider answers {response.status_code}")
        raise Refused(f"the provider answers {response.status_code} {reason}".strip())


def _items(found: Any, name: str) -> list[Any]:
    """A list, alone or under its name."""
    items = found.get(name) if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise Unclear(f"the provider's list of {name} cannot be read")
    return items


def _pool_state(found: Any) -> PoolState:
    try:
        numbers = [int(found[name]) for name in ("total", "free", "owed", "version")]
        return PoolState(str(found["region"]), str(found["gpu_type"]), *numbers)
    except (KeyError, TypeError, ValueError):
        raise Unclear("the provider's answer about a pool cannot be read") from None


def _given(found: Any) -> Given:
    try:
        return Given(_uuid(found["token"]), str(found["provider_id"]), Standing(found["state"]), _time(found.get("asked_at")))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unclear("the provider's answer about a machine cannot be read") from None


def _uuid(text: Any) -> UUID | None:
    try:
        return UUID(str(text))
    except ValueError:
        return None


def _time(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
