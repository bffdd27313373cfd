"""A proxy in front that cuts what is silent for a minute has nothing to cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from console.feed import hub as feed_hub
from tests.feed.line import World, a_page, happen, off
from tests.feed.servers import a_browser, web

PROXY_CUTS = 60.0  # seconds of silence, the default of the common ones
SCALE = 25.0  # times faster than life


@asynccontextmanager
async def cutting_proxy(behind: int, silence: float) -> AsyncIterator[tuple[int, list[str]]]:
    """Passes bytes on and cuts both ends after so many seconds without any from the server; says so in the list."""
    cuts: list[str] = []
    running: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: float | None) -> None:
        try:
            while data := await asyncio.wait_for(reader.read(65536), limit):
                writer.write(data)
                await writer.drain()
        except TimeoutError:
            cuts.append("cut")
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, out = await asyncio.open_connection("127.0.0.1", behind)
        for work in (pump(reader, out, None), pump(up, writer, silence)):
            task = asyncio.create_task(work)
            running.add(task)
            task.add_done_callback(running.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], cuts
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_nothing_happens_for_minutes_and_the_socket_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """portainer/portainer#3506, rancher/rancher#1447, websockets/ws#2283: no ping in a quiet time, so proxies cut at 60 s."""
    monkeypatch.setattr(feed_hub, "BEAT_EVERY", feed_hub.BEAT_EVERY / SCALE)
    page = await a_page(world)
    async with web() as port, cutting_proxy(port, PROXY_CUTS / SCALE) as (entrance, cuts):
        browser = await a_browser(entrance, world, page)
        kinds = set()
        quiet_until = asyncio.get_running_loop().time() + 1.5 * PROXY_CUTS / SCALE
        while asyncio.get_running_loop().time() < quiet_until:
            kinds.add(page.take(str(await asyncio.wait_for(browser.recv(), PROXY_CUTS / SCALE)))["type"])
        assert "beat" in kinds
        (pk,) = await off(happen, world.cluster, "after a quiet time")
        while pk not in page.entries:
            page.take(str(await asyncio.wait_for(browser.recv(), 20)))
        assert cuts == []
        await browser.close()
    assert feed_hub.BEAT_EVERY * SCALE < PROXY_CUTS / 4
