"""What a browser missed reaches it once and in order, whenever it comes back."""

import asyncio
import random

from console.capacity import frames
from console.feed import reads
from tests.feed.line import Page, Socket, World, a_page, connected, follow, happen, head, ledger, off, refill, repeat


async def a_writer(world: World, dice: random.Random, known: list[int]) -> None:
    """New entries and repeats of old ones, in transactions of all sizes."""
    for number in range(40):
        if known and dice.random() < 0.3:
            await off(repeat, world.cluster, dice.choice(known))
        else:
            known += await off(happen, world.cluster, *(f"pulled {number}.{part}" for part in range(dice.choice([1, 1, 5]))))
        await asyncio.sleep(dice.random() / 50)


async def stay(socket: Socket, page: Page, seconds: float) -> None:
    """Read for a while, then go without a word."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                page.take(await socket.text())
    except TimeoutError:
        return


async def test_each_row_comes_once_and_in_order_while_the_browser_comes_and_goes(world: World) -> None:
    """mastodon/mastodon PR#17981 (the gap is filled), pingdotgg/t3code PR#3174 (no doubles), django/channels_redis#89 (order)."""
    dice, known = random.Random(4), list[int]()
    page, steps = await a_page(world), list[int]()
    writing = asyncio.gather(*(a_writer(world, random.Random(seed), known) for seed in range(3)))
    while not writing.done():
        async with connected(world, page) as socket:
            await stay(socket, page, dice.random() / 3)
        steps.append(page.revision)
        await asyncio.sleep(dice.random() / 10)
    await writing
    last, _ = await off(head, world.cluster)
    async with connected(world, page) as socket:
        await follow(socket, page, lambda page: page.revision >= last)
    assert page.told == []
    assert page.entries == await off(ledger, world.cluster)
    assert len(page.added) == len(set(page.added)) == len(known)
    assert len(steps) > 3
    assert steps == sorted(steps)


async def test_an_unbroken_socket_gets_each_revision_once_and_never_an_older_frame(world: World) -> None:
    """django/channels_redis#89: progress never goes backwards, whoever writes at the same time."""
    page, seen, revisions = await a_page(world), list[tuple[str, int]](), list[int]()
    async with connected(world, page) as socket:
        page.take(await socket.text())
        writing = asyncio.gather(*(a_writer(world, random.Random(seed), []) for seed in range(3)))
        last = None
        while last is None or page.revision < last:
            frame = page.take(await socket.text())
            if frame["type"] == "rows":
                revisions.append(frame["revision"])
                seen += [(row["id"], row["revision"]) for row in frame["rows"] if row["kind"] == "entry"]
            if writing.done():
                last, _ = await off(head, world.cluster)
    assert page.entries == await off(ledger, world.cluster)
    assert revisions == sorted(revisions)
    assert len(seen) == len(set(seen))


async def test_a_long_absence_is_told_to_load_the_page_and_the_loaded_page_goes_on(world: World) -> None:
    """baserow/baserow#5355: a gap that is too large is said, not skipped."""
    page = await a_page(world)
    for _ in range(reads.FRAMES_BEHIND + 1):
        await off(happen, world.cluster, *("x" for _ in range(frames.STEP)))
    async with connected(world, page) as socket:
        assert (await socket.frame("reload"))["why"] == "too much has happened since"
    loaded = await a_page(world)
    async with connected(world, loaded) as socket:
        assert (await socket.frame("rows"))["revision"] == loaded.revision
        await off(happen, world.cluster, "after all that")
        await follow(socket, loaded, lambda page: len(page.added) == 1)
    assert loaded.told == []


async def test_a_page_of_another_time_is_told_to_load_again(world: World) -> None:
    page = await a_page(world)
    for since, epoch in (("-1", ""), ("9" * 5000, ""), ("٣", ""), ("", ""), ("999999", ""), ("0", "another")):
        odd = Page(since, epoch or page.epoch)  # type: ignore[arg-type]
        async with connected(world, odd) as socket:
            assert (await socket.frame("reload"))["why"] == "the page is of another time"


async def test_what_changes_in_the_pool_is_drawn_on_every_page_of_it(world: World) -> None:
    page = await a_page(world)
    async with connected(world, page) as socket:
        page.take(await socket.text())
        before = page.panel
        await off(refill, world.pool, 19)
        await follow(socket, page, lambda page: page.panel != before)


async def test_an_entry_does_not_hide_what_changed_in_the_pool_at_the_same_time(world: World) -> None:
    start = await off(reads.start, world.id)
    await off(refill, world.pool, 19)
    await off(happen, world.cluster, "pulled")
    news = await off(reads.news, world.id, start.streams, start.epoch)
    assert '"kind":"entry"' in news.frame
    assert '"kind":"panel"' in news.frame


async def test_a_page_that_comes_back_gets_the_pool_as_it_is_now(world: World) -> None:
    page = await a_page(world)
    await off(happen, world.cluster, "pulled")
    async with connected(world, page) as socket:
        kinds = {row["kind"] for row in (await socket.frame("rows"))["rows"]}
    assert kinds == {"entry", "panel"}
