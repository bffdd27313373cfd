"""`manage.py demo`: the demo's fleet, people and keys. Refuses to run anywhere but in the demo, whose keys are public."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from console.demo import load


class Command(BaseCommand):
    help = "Load the demo: projects, people, API keys and clusters. Can be run again; what is there is left as it is."
    requires_system_checks = ()  # they load every page, and a start waits for this

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--migrate", action="store_true", help="Bring the tables up to date first.")

    def handle(self, *_args: Any, migrate: bool = False, **_options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("The demo's API keys are public, so it is loaded only where HALFTIDE_DEMO=1 is set.")
        if migrate:
            call_command("migrate", verbosity=0)
        fixtures = settings.BASE_DIR / "fixtures"
        load.catalogue(load.read(fixtures / "catalog.json"))
        made = load.demo(load.read(fixtures / "demo.json"), timezone.now())
        self.stdout.write(f"demo: {len(made)} clusters asked for")
