"""One websocket: check the right, catch up since the page's revision, then pass on what the hub hands over.

It does no work of its own per event. What it sends is the same for all who may see the cluster.
"""

import asyncio
import logging
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error

from console.feed import reads
from console.feed.hub import Listener, hub
from console.feed.threads import in_thread

log = logging.getLogger(__name__)

DIGITS = 18  # a revision with more is no revision
TRY_AGAIN = 1013  # RFC 6455's registry: the server cannot serve now; the page comes back by itself


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """`/live/<cluster id>/?since=<revision>&epoch=<uuid>`; close codes 4401 not signed in, 4403 right lost, 4404 not found."""

    serving: "asyncio.Task[None] | None" = None

    async def connect(self) -> None:
        # Accepted first, because a browser is told the close code of an accepted socket only. The rest runs beside, because
        # a disconnect is noticed only after this returns, or never where a send fails here (django/channels#1466).
        await self.accept()
        self.serving = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        """The socket's whole life; it ends with a close code, or because the browser went."""
        code = TRY_AGAIN
        try:
            code = await self._talk()
        except Error as error:
            log.warning("feed_socket_failed", extra={"why": str(error)})
        except OSError:
            return  # the browser went while something was sent to it; its disconnect is on the way
        except Exception:  # a process door: a task that ended silently would leave the socket open and deaf
            log.exception("feed_socket_failed")
        with suppress(OSError, RuntimeError):  # gone meanwhile, or closed by the server's own stop
            await self.close(code=code)

    async def _talk(self) -> int:
        """Send until there is a reason to close; its code."""
        cluster_id: UUID = self.scope["url_route"]["kwargs"]["cluster_id"]
        since, epoch = _asked(self.scope["query_string"])
        with ExitStack() as leaving:
            # In one go, from the door to what was missed. Who waited between the two would only gather frames, and where a
            # thousand come at once so many that it is told to load the page again.
            async with hub().entrance:
                rights_as_of = asyncio.get_running_loop().time()
                door = await in_thread(reads.door, self.scope["cookies"], cluster_id, _address(self.scope))
                if isinstance(door, int):
                    return door
                listener = Listener(door.user_id, door.session_key, door.project_id, rights_as_of)
                leaving.callback(hub().leave, cluster_id, listener)
                await hub().join(cluster_id, listener)
                missed = await in_thread(reads.catch_up, cluster_id, since, epoch)
            while True:
                # What the hub said last comes before what was missed: a lost right, or word to load the page again.
                word = missed.pop(0) if missed and not listener.over else await listener.queue.get()
                if isinstance(word, int):
                    return word
                await self.send(word)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Browsers have nothing to say here; what they say is ignored."""

    async def disconnect(self, _code: int) -> None:
        if self.serving is not None:
            self.serving.cancel()


def _asked(query: bytes) -> tuple[int, str]:
    """The page's revision and epoch; nonsense is revision -1, which no page has: it is told to load again."""
    wanted = parse_qs(query.decode("latin-1"))
    since = wanted.get("since", [""])[0]
    epoch = wanted.get("epoch", [""])[0]
    return (int(since), epoch) if since.isascii() and since.isdigit() and len(since) <= DIGITS else (-1, epoch)


def _address(scope: dict[str, Any]) -> str | None:
    client = scope.get("client")
    return client[0] if client else None
