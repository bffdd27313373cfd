"""Everything a run asks its provider, side by side, outside of any transaction. What goes wrong comes back as an answer."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from console.capacity.inputs import Listing
from console.capacity.models import Pool
from console.capacity.providers.base import Given, Order, PoolState, Provider, ProviderError

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Heard:
    """`state` and `listing` are None where the provider did not answer. `known` says of each token asked for: there, or None."""

    state: PoolState | None
    listing: Listing | None
    known: Mapping[UUID, Given | ProviderError | None]
    silence: str = ""


@dataclass(frozen=True)
class Done:
    launched: Mapping[UUID, Given | ProviderError] = field(default_factory=dict)
    ended: Mapping[UUID, ProviderError | None] = field(default_factory=dict)


async def _tried(asking: Awaitable[Answer]) -> Answer | ProviderError:
    try:
        return await asking
    except ProviderError as error:
        return error


async def listen(provider: Provider, pool: Pool, tokens: Iterable[UUID]) -> Heard:
    """The pool's numbers, all machines, and each token one by one: the latter tells an unclear launch from one that never was."""
    wanted = list(tokens)
    async with provider:
        looking = asyncio.gather(*(_tried(provider.look_up(token)) for token in wanted))
        listing_all = asyncio.create_task(_tried(provider.list(pool.region_id, pool.gpu_type_id)))
        state = await _tried(provider.pool(pool.region_id, pool.gpu_type_id))
        listing, found = await listing_all, await looking
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
        launched = asyncio.gather(*(_tried(provider.launch(order)) for order in orders))
        ended = asyncio.gather(*(_tried(provider.terminate(token)) for token in ends))
        return Done(
            dict(zip([order.token for order in orders], await launched, strict=True)),
            dict(zip(ends, await ended, strict=True)),
        )
