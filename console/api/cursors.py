"""The end of a page as a cursor: the place (instant, key) of its last row, which never moves, so newer rows shift nothing."""

import base64
import binascii
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from console.http import BadInput

Key = TypeVar("Key")


def cursor_of(at: datetime, key: object) -> str:
    return base64.urlsafe_b64encode(f"{at.isoformat()} {key}".encode()).decode()


def place_of(cursor: str, key_of: Callable[[str], Key]) -> tuple[datetime, Key]:
    """`key_of` reads the key and raises ValueError for what is none. Raises BadInput for what no answer ever said."""
    try:
        text, key = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode("ascii").split(" ")
        at, found = datetime.fromisoformat(text), key_of(key)
    except (binascii.Error, ValueError):
        raise _none_of_ours() from None
    if at.tzinfo is None:
        raise _none_of_ours()
    return at, found


def _none_of_ours() -> BadInput:
    return BadInput("This cursor is none of ours: take next_cursor of the page before.", param="after", code="bad_cursor")
