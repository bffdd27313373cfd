"""Text in messages, found by the database exactly as the browser finds it in a live row.

Both fold the letters a to z and nothing else: what a database's own locale holds for equal differs from one installation to the
next, and from what JavaScript does, so a live page would not show what a reload shows. The index, where `pg_trgm` is there to
make one (migration 0002), is on the same expression; without it the same question is answered by reading.
"""

from typing import Any

from django.db.models import Lookup


def pattern(text: str) -> str:
    """`text` anywhere, taken literally."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


class Holds(Lookup):
    """`message__holds="oom"`: the text occurs, whatever the case of its ASCII letters."""

    lookup_name = "holds"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, params = self.process_lhs(compiler, connection)
        return f'({left} COLLATE "C") ILIKE %s', (*params, pattern(str(self.rhs)))
