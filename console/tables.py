"""Do the tables stand as this version wants them? Asked by a web process before it listens, and never again.

So it may be started while the database is still made or migrated, and loads meanwhile; and a new version that is started too
early answers nobody with an error, because its port opens when `manage.py migrate` is done.
"""

import logging
import time
from collections.abc import Callable

from django.db import DatabaseError, connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.loader import MigrationLoader

LOOK_EVERY = 0.25  # seconds; each look is a connection, beside a migration that wants the processor

log = logging.getLogger(__name__)


def missing() -> str | None:
    """What keeps this version from answering; None when nothing does."""
    wanted = MigrationLoader(None, load=False)
    wanted.load_disk()
    # A connection of its own: a pool that finds no server tries again at growing intervals.
    options = {name: value for name, value in connection.settings_dict["OPTIONS"].items() if name != "pool"}
    asked = DatabaseWrapper({**connection.settings_dict, "OPTIONS": options}, "tables")
    try:
        with asked.cursor() as cursor:
            cursor.execute("SELECT app, name FROM django_migrations")
            applied = set(cursor.fetchall())
    except DatabaseError as error:
        return f"the database says: {str(error).splitlines()[0]}"
    finally:
        asked.close()
    return None if wanted.disk_migrations.keys() <= applied else "migrations are not applied: `manage.py migrate` does it"


def wait(look: Callable[[], str | None] = missing, sleep: Callable[[float], None] = time.sleep) -> None:
    """Return once nothing is missing; what is, is logged once."""
    told = None
    while (why := look()) is not None:
        if why != told:
            log.warning("waits_for_tables", extra={"why": why})
        told = why
        sleep(LOOK_EVERY)
