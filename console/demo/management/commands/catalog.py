"""`manage.py catalog`: regions, GPU types, rates and pools from a file, for an installation that is not the demo."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.demo import load


class Command(BaseCommand):
    help = "Load regions, GPU types, rates and pools. A rate that is there is left as it is: rates change by new rows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, default=settings.BASE_DIR / "fixtures" / "catalog.json")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            load.catalogue(load.read(options["file"]))
        except (OSError, json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise CommandError(f"{options['file']} cannot be loaded: {type(error).__name__}: {error}") from error
