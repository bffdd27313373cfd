"""A wrong clock at the door: everything that Kubernetes tells carries another time, and what it is told is read by that clock.

The world inside keeps its own time, so that graces and leases go on undisturbed; for those outside the server's clock is wrong.
"""

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from console.simulator.web import Request, Response, Stream

# metav1.Time and MicroTime, as JSON writes them.
STAMP = re.compile(rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d{1,9})?Z")')


def shifted(body: bytes, seconds: int) -> bytes:
    """JSON with every instant in it moved."""

    def moved(found: re.Match[bytes]) -> bytes:
        try:
            at = datetime.fromisoformat(found[1].decode()) + timedelta(seconds=seconds)
        except (ValueError, OverflowError):
            return found[0]  # looks like an instant and is none
        return b'"' + at.isoformat().encode() + found[2]

    return STAMP.sub(moved, body)


def heard(request: Request, seconds: int) -> Request:
    """A request as a server hears it whose clock is so far ahead."""
    return replace(request, body=shifted(request.body, -seconds)) if seconds and request.body else request


def told(response: Response | Stream, seconds: int, now: datetime) -> Response | Stream:
    """Its answer. `now` is the right time; the Date header says the server's."""
    date = {"date": http_date(now + timedelta(seconds=seconds))}
    if isinstance(response, Stream):
        chunks = _moved(response.chunks, seconds) if seconds else response.chunks
        return replace(response, chunks=chunks, headers=date)
    return replace(
        response, body=shifted(response.body, seconds) if seconds else response.body, headers={**response.headers, **date}
    )


async def _moved(chunks: AsyncGenerator[bytes, None], seconds: int) -> AsyncGenerator[bytes, None]:
    """Chunks are whole lines, so no instant is cut in two."""
    try:
        async for chunk in chunks:
            yield shifted(chunk, seconds)
    finally:
        await chunks.aclose()


def http_date(at: datetime) -> str:
    return format_datetime(at.astimezone(UTC), usegmt=True)
