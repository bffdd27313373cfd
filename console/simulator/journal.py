"""What outlives the process: one SQLite file, written before anything is told.

`synchronous=OFF` with a write-ahead log: what was committed survives a killed process (the kernel has it), and a commit
costs some tens of microseconds. A machine that loses power loses its simulator; that is not what this is for.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from console.simulator.values import Json, dumps, loads

SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (cluster TEXT, resource TEXT, key TEXT, version INTEGER, body BLOB,
    PRIMARY KEY (cluster, resource, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (cluster TEXT PRIMARY KEY, version INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (kind TEXT, key TEXT, body BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID;
"""


class Journal:
    """Objects of every cluster, their versions, and the provider's own facts (clusters, machines)."""

    def __init__(self, path: Path | None) -> None:
        """`path` None keeps it in memory, for tests."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._db = sqlite3.connect(str(path) if path else ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.executescript(SCHEMA)

    def put(self, cluster: str, resource: str, key: str, version: int, body: bytes) -> None:
        """One object as it is now."""
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", (cluster, resource, key, version, body))
            self._db.execute("INSERT OR REPLACE INTO versions VALUES (?, ?)", (cluster, version))

    def remove(self, cluster: str, resource: str, key: str, version: int) -> None:
        """One object is gone, as of `version`."""
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute("DELETE FROM objects WHERE cluster = ? AND resource = ? AND key = ?", (cluster, resource, key))
            self._db.execute("INSERT OR REPLACE INTO versions VALUES (?, ?)", (cluster, version))

    def version(self, cluster: str) -> int:
        """The last version given out in a cluster; 0 for a new one."""
        row = self._db.execute("SELECT version FROM versions WHERE cluster = ?", (cluster,)).fetchone()
        return row[0] if row else 0

    def objects(self, cluster: str) -> Iterator[tuple[str, str, int, bytes]]:
        """(resource, key, version, body) of all objects of a cluster."""
        yield from self._db.execute("SELECT resource, key, version, body FROM objects WHERE cluster = ?", (cluster,))

    def forget(self, cluster: str) -> None:
        """Everything of one cluster but its version counter: the same id may be made again."""
        self._db.execute("DELETE FROM objects WHERE cluster = ?", (cluster,))

    def note(self, kind: str, key: str, fact: Json | None) -> None:
        """Keep a fact of the provider's, or with None forget it."""
        if fact is None:
            self._db.execute("DELETE FROM facts WHERE kind = ? AND key = ?", (kind, key))
        else:
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (kind, key, dumps(fact)))

    def facts(self, kind: str) -> dict[str, Json]:
        """All facts of a kind."""
        return {key: loads(body) for key, body in self._db.execute("SELECT key, body FROM facts WHERE kind = ?", (kind,))}

    def close(self) -> None:
        """Close the file."""
        self._db.close()
