"""Hears nudges from Redis, for ever.

The reader waits in `listen()` without a time-out of its own: wrapping a receive in one cancels it half-way through a message and
leaves a reader that is connected and deaf. A connection that dies silently costs no more than the hub's two-second look.
"""

import asyncio
import logging
from collections.abc import Callable

import redis.asyncio as redis
from redis.exceptions import RedisError

from console.live import CHANNEL

log = logging.getLogger(__name__)

PAUSE = 1.0  # seconds between two attempts to reach Redis


async def listen(url: str, heard: Callable[[str], None], again: Callable[[], None]) -> None:
    """Call `heard` with each nudge, and `again` after each connection, when some may have been missed. Ends by cancellation."""
    while True:
        try:
            async with (
                redis.Redis.from_url(url, health_check_interval=10) as client,
                client.pubsub() as pubsub,
            ):
                await pubsub.subscribe(CHANNEL)
                again()
                async for message in pubsub.listen():
                    if message["type"] == "message":
                        heard(message["data"].decode())
        except (RedisError, OSError) as error:
            log.warning("nudges_unheard", extra={"why": str(error)})
        await asyncio.sleep(PAUSE)
