"""What a controller knows of its cluster: one list-then-watch for each kind, shared by all who need it."""

import asyncio
import logging
from collections.abc import Callable

import httpx

from console.simulator.machines.client import Client, Refused
from console.simulator.values import Json

log = logging.getLogger(__name__)
Key = tuple[str, str]
Listener = Callable[[str, Json], None]
PAUSE = 0.5  # seconds before the next try after the API went away


def key_of(body: Json) -> Key:
    """Namespace and name."""
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _version(body: Json) -> int:
    return int(body["metadata"].get("resourceVersion", "0"))


class View:
    """The objects of one kind as last heard of."""

    def __init__(self, client: Client, path: str) -> None:
        self.objects: dict[Key, Json] = {}
        self.listed = asyncio.Event()
        self._client, self._path = client, path
        self._listeners: list[Listener] = []
        self._heard = 0

    def listen(self, listener: Listener) -> None:
        """Be told of each change, as (ADDED, MODIFIED or DELETED, object)."""
        self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        """Be told no more."""
        self._listeners.remove(listener)

    def apply(self, kind: str, body: Json) -> None:
        """Take in a change, from the watch or from the answer to one's own write; an older one than known is ignored."""
        key, known = key_of(body), self.objects.get(key_of(body))
        if known is not None and _version(known) >= _version(body):
            return
        if kind == "DELETED":
            if known is None or known["metadata"]["uid"] != body["metadata"]["uid"]:
                return
            del self.objects[key]
        elif known is None and _version(body) <= self._heard:
            return  # the answer to a write came after the watch had told of its deletion
        else:
            self.objects[key] = body
        for listener in tuple(self._listeners):
            listener(kind, body)

    async def run(self) -> None:
        """Follow the API for ever."""
        while True:
            try:
                version = await self._list()
                async for kind, body in self._client.watch(self._path, version):
                    if kind == "ERROR":
                        break
                    if kind != "BOOKMARK":
                        self.apply(kind, body)
                    self._heard = max(self._heard, _version(body))
            except (httpx.HTTPError, Refused, ValueError) as error:
                log.debug("%s: %r", self._path, error)
            await asyncio.sleep(PAUSE)

    async def _list(self) -> str:
        listing = await self._client.get(self._path)
        found = {key_of(item): item for item in listing["items"]}
        for key in [key for key in self.objects if key not in found]:
            gone = self.objects.pop(key)
            for listener in tuple(self._listeners):
                listener("DELETED", gone)
        for item in found.values():
            self.apply("MODIFIED" if key_of(item) in self.objects else "ADDED", item)
        self._heard = int(listing["metadata"]["resourceVersion"])
        self.listed.set()
        return str(self._heard)
