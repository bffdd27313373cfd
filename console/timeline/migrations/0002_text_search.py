"""An index for text in messages, where the database has `pg_trgm`.

The extension is trusted, so the owner of a database may make it; where it is not there or not allowed, searching works all the
same, by reading, and docs/operations.md says what an administrator can run afterwards. It is on the expression of `timeline.text`.
"""

from django.apps.registry import Apps
from django.db import Error, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

INDEX = 'CREATE INDEX IF NOT EXISTS entry_message ON timeline_entry USING gin ((message COLLATE "C") gin_trgm_ops)'


def make(_: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    try:
        with transaction.atomic(), editor.connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            cursor.execute(INDEX)
    except Error as error:
        print(f"\n  No index for text in messages: {error}  See docs/operations.md, Production.")


class Migration(migrations.Migration):
    dependencies = [("timeline", "0001_initial")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
