"""The sections by name, in the order in which they run."""

from collections.abc import Callable

import console.celery  # noqa: F401  (so that what sections ask for goes to the queue of the settings)
from tests.bench import browser, drains, large, ledger, live, page, queues, supply
from tests.bench.report import Book
from tests.installation import Installation

SECTIONS: dict[str, Callable[[Installation, Book], None]] = {
    "one": drains.one_node,
    "twenty": drains.twenty,
    "supply": supply.run,
    "live": live.run,
    "page": page.run,
    "queues": queues.run,
    "wide": drains.at_once,
    "rate": drains.rate,
    "large": large.run,
    "browser": browser.run,
    "ledger": ledger.run,  # last: what it leaves behind is large
}
