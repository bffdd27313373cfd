"""One line a step: what is being done, how it ended, how long it took.

The first half is printed before the work, so that a cold start, which loads packages for half a minute, never looks
as if it hung.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Step:
    """A step that runs; `detail` may be set to say how it ended."""

    detail = "done"


@contextmanager
def step(label: str) -> Iterator[Step]:
    """Print the line of one step around its work."""
    print(f"  {label:<18} ", end="", flush=True)
    began = time.monotonic()
    current = Step()
    try:
        yield current
    except BaseException:
        print("stopped", flush=True)
        raise
    print(f"{current.detail} ({time.monotonic() - began:.1f} s)", flush=True)
