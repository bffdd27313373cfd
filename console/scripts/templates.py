"""Scripts to begin with, kept as files that run (`fixtures/scripts/`), so that a test can give each of them to ShellCheck."""

import json
from dataclasses import dataclass
from functools import cache

from django.conf import settings

from console.scripts.kinds import Kind

FOLDER = settings.BASE_DIR / "fixtures" / "scripts"


@dataclass(frozen=True)
class Template:
    """`about` is a sentence; `kinds` are those it is for."""

    name: str
    title: str
    about: str
    kinds: tuple[str, ...]
    text: str


@cache
def templates() -> tuple[Template, ...]:
    """In the order of the list in `index.json`."""
    listed = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    return tuple(
        Template(one["name"], one["title"], one["about"], tuple(one["kinds"]), (FOLDER / f"{one['name']}.sh").read_text("utf-8"))
        for one in listed
    )


def templates_for(kind: Kind) -> list[Template]:
    return [one for one in templates() if kind.name in one.kinds]
