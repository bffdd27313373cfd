"""One websocket: check the right, catch up since the page's revision, then pass on what the hub hands over.

It does no work of its own per event. What it sends is the same for all who may see the cluster.
"""

import asyncio
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer

from console.feed import reads
from console.feed.hub import Listener, hub
from console.feed.threads import in_thread

LARGEST = 2**62  # a revision beyond this is no revision


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """`/live/<cluster id>/?since=<revision>&epoch=<uuid>`; close codes 4401 not signed in, 4403 right lost, 4404 not found."""

    listener: Listener | None = None
    sender: "asyncio.Task[None] | None" = None

    async def connect(self) -> None:
        # Accepted first, because a browser is told the close code of an accepted socket only.
        await self.accept()
        cluster_id: UUID = self.scope["url_route"]["kwargs"]["cluster_id"]
        door = await in_thread(reads.door, self.scope["cookies"], cluster_id, _address(self.scope))
        if isinstance(door, int):
            await self.close(code=door)
            return
        self.cluster_id = cluster_id
        self.listener = Listener(door.user_id, door.session_key, door.project_id)
        await hub().join(cluster_id, self.listener)
        since, epoch = _asked(self.scope["query_string"])
        for frame in await in_thread(reads.catch_up, cluster_id, since, epoch):
            await self.send(frame)
        self.sender = asyncio.create_task(self._pass_on(self.listener))

    async def _pass_on(self, listener: Listener) -> None:
        while True:
            frame = await listener.queue.get()
            if isinstance(frame, int):
                await self.close(code=frame)
                return
            await self.send(frame)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Browsers have nothing to say here; what they say is ignored."""

    async def disconnect(self, _code: int) -> None:
        if self.sender is not None:
            self.sender.cancel()
        if self.listener is not None:
            hub().leave(self.cluster_id, self.listener)


def _asked(query: bytes) -> tuple[int, str]:
    """The page's revision and epoch; nonsense is revision -1, which no page has: it is told to load again."""
    wanted = parse_qs(query.decode("latin-1"))
    since = wanted.get("since", [""])[0]
    epoch = wanted.get("epoch", [""])[0]
    return (int(since), epoch) if since.isascii() and since.isdigit() and int(since) < LARGEST else (-1, epoch)


def _address(scope: dict[str, Any]) -> str | None:
    client = scope.get("client")
    return client[0] if client else None
