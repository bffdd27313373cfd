"""Where machines come from, as the engine sees it: one small Protocol, and the three ways in which an answer can be no.

An answer that did not arrive is `Unclear`: the thing may have happened. Whoever gets one looks the token up before asking again,
so an unclear launch never becomes two machines (kubernetes/autoscaler#687).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID


class ProviderError(Exception):
    """The provider did not do it; the text says why."""


class NoCapacity(ProviderError):
    """Nothing is free just now."""


class Refused(ProviderError):
    """It will not do this, and asking again changes nothing soon."""


class Unclear(ProviderError):
    """No answer, or one that cannot be read: it may have been done."""


class Standing(StrEnum):
    """What the provider says of a machine."""

    BOOTING = "booting"
    RUNNING = "running"
    LOST = "lost"
    TERMINATED = "terminated"


@dataclass(frozen=True)
class PoolState:
    """Whole machines. `owed`: standard demand of other tenants that waits for us. `version` rises whenever any of it changes."""

    region: str
    gpu_type: str
    total: int
    free: int
    owed: int
    version: int


@dataclass(frozen=True)
class Order:
    """A launch. `token` is the machine's id: the same token is the same machine, however often it is asked for."""

    token: UUID
    region: str
    gpu_type: str
    cluster: UUID
    node_name: str
    compute_class: str
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Given:
    """A machine of the provider's. `token` is None for one that was not launched by us."""

    token: UUID | None
    provider_id: str
    standing: Standing
    asked_at: datetime | None = field(default=None, compare=False)

    @property
    def there(self) -> bool:
        return self.standing is not Standing.TERMINATED


@dataclass(frozen=True)
class NewCluster:
    """A Kubernetes API, made. The kubeconfig is text, and secret."""

    server: str
    kubeconfig: str = field(repr=False)


class Provider(Protocol):
    """Used as `async with`. Every method raises Unclear where no answer came, Refused where it was no for good."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def pools(self) -> list[PoolState]:
        """All pools in one request: cheap enough for each second."""

    async def pool(self, region: str, gpu_type: str) -> PoolState: ...

    async def launch(self, order: Order) -> Given:
        """Raises NoCapacity too. A token known already gives the machine it has."""

    async def look_up(self, token: UUID) -> Given | None:
        """None where the provider knows nothing of it."""

    async def list(self, region: str, gpu_type: str) -> list[Given]:
        """All machines of ours in a pool, or an error: never a part of them."""

    async def terminate(self, token: UUID) -> None:
        """Begin to take it away; done when `look_up` says terminated or None. May be repeated, and asked of what is not there."""

    async def create_cluster(self, cluster: UUID, name: str, region: str) -> NewCluster:
        """The same id gives the same cluster."""
