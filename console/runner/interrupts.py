"""Ctrl-C, and being told to end: an exception where the work is, and remembered.

Python raises it wherever it happens to be. Inside a finalizer it is printed and lost, and a runner that lost it would go on for
ever (seen once, right after the start), so whoever waits asks here too.
"""

import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_heard: list[int] = []  # numbers of signals


def listen() -> None:
    """From now on. SIGINT too: a shell starts what it puts in the background with it ignored."""
    for name in SIGNALS:
        signal.signal(name, _hear)


def heed() -> None:
    """Raise KeyboardInterrupt where one was ever due."""
    if _heard:
        raise KeyboardInterrupt


def ignore() -> None:
    for name in SIGNALS:
        signal.signal(name, signal.SIG_IGN)


def _hear(number: int, _frame: FrameType | None) -> None:
    _heard.append(number)
    raise KeyboardInterrupt
