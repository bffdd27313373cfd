"""One run at a time, without a lock service: a row, compare-and-set, and a fence that late writers stumble over.

`take` wins, extends or refuses in one statement. Whoever takes over an expired lease raises `fence`; `guard`, called first in
each transaction of a run, locks the lease row while it still carries the run's fence, so a run that was frozen for a
minute and wakes up cannot write (DESIGN 4; repository-service-tuf/repository-service-tuf-worker#151).
"""

from dataclasses import asdict, dataclass
from uuid import UUID

from django.db import connection

LENGTH = 15  # seconds
RENEW_EVERY = 5  # seconds


class LeaseLost(RuntimeError):
    """Another run has taken over; whatever this one still wants to write is void."""


@dataclass(frozen=True)
class Held:
    kind: str
    object_id: UUID
    owner: str
    fence: int
    length: int = LENGTH  # seconds that each extension lasts


# Database time, because the clocks of two workers may differ and a lease must not depend on which is right.
TAKE = """
INSERT INTO clusters_lease AS held (kind, object_id, owner, until, fence)
VALUES (%(kind)s, %(object_id)s, %(owner)s, clock_timestamp() + %(length)s * interval '1 second', 1)
ON CONFLICT (kind, object_id) DO UPDATE SET
  fence = CASE WHEN held.owner = excluded.owner AND held.until >= clock_timestamp() THEN held.fence ELSE held.fence + 1 END,
  owner = excluded.owner,
  until = excluded.until
WHERE held.owner = excluded.owner OR held.until < clock_timestamp()
RETURNING fence
"""

RENEW = """
UPDATE clusters_lease SET until = clock_timestamp() + %(length)s * interval '1 second'
WHERE kind = %(kind)s AND object_id = %(object_id)s AND owner = %(owner)s AND fence = %(fence)s AND until >= clock_timestamp()
"""

GUARD = """
SELECT fence FROM clusters_lease
WHERE kind = %(kind)s AND object_id = %(object_id)s AND owner = %(owner)s AND fence = %(fence)s FOR UPDATE
"""


def take(kind: str, object_id: UUID, owner: str, length: int = LENGTH) -> Held | None:
    """Take or extend; None while somebody else holds it. `owner` is unique to one run, not to a machine; `length` in seconds."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"kind": kind, "object_id": object_id, "owner": owner, "length": length})
        found = cursor.fetchone()
    return Held(kind, object_id, owner, found[0], length) if found else None


def renew(held: Held) -> None:
    """Extend by another length, or raise LeaseLost where it ran out or someone else took over."""
    with connection.cursor() as cursor:
        cursor.execute(RENEW, asdict(held))
        if cursor.rowcount == 0:
            raise LeaseLost(f"{held.kind} {held.object_id}")


def guard(held: Held) -> None:
    """First statement of each transaction of a run: lock the lease row, or raise LeaseLost."""
    with connection.cursor() as cursor:
        cursor.execute(GUARD, asdict(held))
        if cursor.fetchone() is None:
            raise LeaseLost(f"{held.kind} {held.object_id}")


def release(held: Held) -> None:
    """Give back at once, keeping the fence. Somebody else's lease is left alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_lease SET until = clock_timestamp() "
            "WHERE kind = %(kind)s AND object_id = %(object_id)s AND owner = %(owner)s AND fence = %(fence)s",
            asdict(held),
        )
