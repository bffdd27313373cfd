"""Wait until PostgreSQL answers and make the databases that are missing; runs inside the virtual environment.

`python -m console.runner.databases URL…`: the console's database and, in the demo, the identity provider's.
"""

import sys
import time
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

ANSWER_SECONDS = 30.0


def connect(url: str) -> psycopg.Connection:
    """A connection to `url`, as soon as the server takes one."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return psycopg.connect(url, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            if "does not exist" in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def ensure(url: str) -> None:
    """Make the database of `url` if the server has none of that name."""
    parts = urlsplit(url)
    try:
        connect(url).close()
    except psycopg.OperationalError as error:
        if "does not exist" not in str(error):
            raise
        with connect(urlunsplit(parts._replace(path="/postgres"))) as server:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(parts.path.lstrip("/"))))


if __name__ == "__main__":
    try:
        for argument in sys.argv[1:]:
            ensure(argument)
    except psycopg.Error as problem:
        sys.exit(f"{problem}".strip())
