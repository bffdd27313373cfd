"""Hears nudges from Redis, for ever.

The reader waits in `listen()` without a time-out of its own: wrapping a receive in one cancels it half-way through a message and
leaves a reader that is connected and deaf. A connection that dies silently is found by TCP's keep-alive (the library's default),
and until then costs no more than the hub's two-second look.
"""

import asyncio
import logging
from collections.abc import Callable

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from console.live import CHANNEL

log = logging.getLogger(__name__)

PAUSE = 1.0  # seconds between two attempts to reach Redis


async def listen(url: str, heard: Callable[[str], None], again: Callable[[], None]) -> None:
    """Call `heard` with each nudge, and `again` after each connection, when some may have been missed. Ends by cancellation.

    `again` waits for Redis to confirm the subscription: before that, a nudge would still be missed after the look.
    """
    while True:
        try:
            # No retries by the library: they reconnect without a word, and what was missed meanwhile would stay unread.
            async with (
                redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client,
                client.pubsub() as pubsub,
            ):
                await pubsub.subscribe(CHANNEL)
                async for message in pubsub.listen():
                    if message["type"] == "subscribe":
                        again()
                    elif message["type"] == "message":
                        heard(message["data"].decode(errors="replace"))
        except (RedisError, OSError) as error:
            log.warning("nudges_unheard", extra={"why": str(error)})
        await asyncio.sleep(PAUSE)
