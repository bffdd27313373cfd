"""Everything a run asks its provider, side by side, outside of any transaction. What goes wrong comes back as an answer."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from console.capacity.models import Pool
from console.capacity.pools.inputs import Listing
from console.capacity.providers.base import Given, Order, PoolState, Provider, ProviderError, Unclear

LONGEST = 4.0  # seconds for each of the two times in a round that the provider is asked; the lease lasts 15

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Heard:
    """`state` and `listing` are None where the provider did not answer. `known` says of each token asked for: there, or None."""

    state: PoolState | None
    listing: Listing | None
    known: Mapping[UUID, Given | ProviderError | None]
    silence: str = ""

    @property
    def doubtful(self) -> set[UUID]:
        """Tokens that were looked up in vain: the provider did not say whether they are there."""
        return {token for token, found in self.known.items() if isinstance(found, ProviderError)}


@dataclass(frozen=True)
class Done:
    launched: Mapping[UUID, Given | ProviderError] = field(default_factory=dict)
    ended: Mapping[UUID, ProviderError | None] = field(default_factory=dict)


async def _tried(asking: Awaitable[Answer]) -> Answer | ProviderError:
    try:
        async with asyncio.timeout(LONGEST):
            return await asking
    except ProviderError as error:
        return error
    except TimeoutError:
        return Unclear(f"the provider has not answered within {LONGEST:g} s")


async def _all(askings: Iterable[Awaitable[Answer]]) -> list[Answer | ProviderError]:
    return await asyncio.gather(*(_tried(asking) for asking in askings))


async def listen(provider: Provider, pool: Pool, tokens: Iterable[UUID]) -> Heard:
    """The pool's numbers, all machines, and each token one by one: the latter tells an unclear launch from one that never was."""
    wanted = list(tokens)
    async with provider:
        state, listing, found = await asyncio.gather(
            _tried(provider.pool(pool.region_id, pool.gpu_type_id)),
            _tried(provider.list(pool.region_id, pool.gpu_type_id)),
            _all(provider.look_up(token) for token in wanted),
        )
    silence = next((str(each) for each in (state, listing) if isinstance(each, ProviderError)), "")
    return Heard(
        state=state if isinstance(state, PoolState) else None,
        listing=Listing({each.token: each for each in listing if each.token}) if isinstance(listing, list) else None,
        known=dict(zip(wanted, found, strict=True)),
        silence=silence,
    )


async def carry_out(provider: Provider, orders: Iterable[Order], ends: Iterable[UUID]) -> Done:
    """Send launches and terminations."""
    orders, ends = list(orders), list(ends)
    async with provider:
        launched, ended = await asyncio.gather(
            _all(provider.launch(order) for order in orders), _all(provider.terminate(token) for token in ends)
        )
    return Done(dict(zip([order.token for order in orders], launched, strict=True)), dict(zip(ends, ended, strict=True)))
