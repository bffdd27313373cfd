"""`manage.py sim …`: make something go wrong in the demo, and see what Halftide makes of it (docs/simulator.md)."""

import argparse
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.demo import supply, troubles
from console.demo.control import Control, SimError

Does = Callable[[Control, argparse.Namespace], str]
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Command(BaseCommand):
    help = "Make something go wrong in the demo's simulator: machines, pools, Kubernetes APIs. `sim list` shows what is wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

        def command(name: str, does: Does) -> argparse.ArgumentParser:
            about = (does.__doc__ or "").splitlines()[0]
            added: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
            added.set_defaults(does=does)
            return added

        _supply(command)
        for name, does, more in FAULTS:
            added = command(name, does)
            more(added)
            added.add_argument("--cluster", default="", help="name or id; without it every cluster")
            added.add_argument("--times", type=_whole, help="how often, at most")
            added.add_argument("--for", dest="seconds", type=_seconds, metavar="SECONDS", help="for how long, at most")
        command("clear", troubles.clear)
        command("list", troubles.overview)

    def handle(self, *_args: Any, **options: Any) -> None:
        control = Control(settings.SIM_URL, settings.STATE_DIR / "control-token")
        try:
            said = options["does"](control, argparse.Namespace(**options))
        except SimError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(said)


def _supply(command: Callable[[str, Does], argparse.ArgumentParser]) -> None:
    for name, does in (("reclaim", supply.reclaim), ("capacity", supply.capacity)):
        added = command(name, does)
        added.add_argument("machines", type=_whole)
        added.add_argument("--pool", default="", metavar="REGION/GPU_TYPE", help="without it the first pool")
    command("lose", supply.lose).add_argument("node", help="a node's name")
    command("slow-boot", supply.slow_boot).add_argument("seconds", type=_seconds)
    never, late = command("never-registers", supply.never_registers), command("registers-late", supply.registers_late)
    late.add_argument("seconds", type=_seconds)
    for added in (never, late):
        added.add_argument("machines", type=_whole, nargs="?", default=1)


def _nothing(_parser: argparse.ArgumentParser) -> None:
    pass


def _forbidden(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verbs", nargs="+", choices=VERBS, metavar="VERB", help=", ".join(VERBS))
    parser.add_argument("--resource", action="append", default=[], help="nodes, pods, events, …; may be repeated")


FAULTS: tuple[tuple[str, Does, Callable[[argparse.ArgumentParser], object]], ...] = (
    ("410", troubles.expired, lambda parser: parser.add_argument("how", choices=("http", "stream"))),
    ("429", troubles.throttled, lambda parser: parser.add_argument("retry_after", type=_whole, nargs="?", default=5)),
    ("401", troubles.unauthorized, _nothing),
    ("403", troubles.forbidden, _forbidden),
    ("silent", troubles.silent, _nothing),
    ("cut", troubles.cut, _nothing),
    ("older-snapshot", troubles.older, lambda parser: parser.add_argument("changes", type=_whole, nargs="?", default=100)),
    ("partial-pages", troubles.partial, _nothing),
    ("api-down", troubles.down, _nothing),
    ("clock-shift", troubles.shifted, lambda parser: parser.add_argument("offset", type=int, metavar="SECONDS")),
)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError("a whole number that is not negative")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError("a number of seconds that is not negative")
    return found
