"""Plotly's files among the static ones, made from the installed package and never committed.

Plotly writes its global style into the page at load, which a strict CSP refuses; but it leaves that out where an element with
the id `plotly.js-style-global` and the class `no-inline-styles` stands (`chart.js` makes one). So the same rules are taken out
of the shipped bundle into a linked file. Made once for each version, beside a compressed copy (4.8 MB become 1.5 MB).
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

BUNDLE, STYLE = "plotly.min.js", "plotly.css"
PREFIX = "vendor/plotly"
RULES = re.compile(r'=(\{"X,X div":.*?\});for\(', re.DOTALL)
RULE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'):("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def style_of(bundle: str) -> str:
    """The global rules inside a Plotly bundle as a style sheet. Raises ValueError where the bundle has none we can find."""
    found = RULES.search(bundle)
    if found is None:
        raise ValueError("this Plotly bundle keeps its global style in an unknown place")
    rules = [(_text(selector), _text(body)) for selector, body in RULE.findall(found[1])]
    return "".join(f"{_selector(selector)}{{{body}}}\n" for selector, body in rules)


def _text(literal: str) -> str:
    if literal.startswith("'"):
        literal = '"' + literal[1:-1].replace('"', '\\"') + '"'
    return str(json.loads(literal))


def _selector(short: str) -> str:
    """As the bundle itself spells them out."""
    return re.sub("^,", " ,", short).replace("X", ".js-plotly-plot .plotly").replace("Y", ".plotly-notifier")


def make(source: Path, folder: Path) -> None:
    """Write bundle, style sheet and compressed copies. Each appears whole, so that two processes may do it at once."""
    folder.mkdir(parents=True, exist_ok=True)
    bundle = (source / BUNDLE).read_bytes()
    for name, content in ((STYLE, style_of(bundle.decode()).encode()), (BUNDLE, bundle)):
        _write(folder / f"{name}.gz", gzip.compress(content, 6, mtime=0))
        _write(folder / name, content)


def _write(target: Path, content: bytes) -> None:
    draft = target.with_name(f".{target.name}.{id(content)}.new")
    draft.write_bytes(content)
    draft.replace(target)


class PlotlyFinder(BaseFinder):
    """Lets staticfiles and the static file server see the made folder under `vendor/plotly/`."""

    def __init__(self) -> None:
        source = settings.PLOTLY_FILES / BUNDLE
        stamp = source.stat()
        folder = settings.STATE_DIR / "made" / f"plotly-{stamp.st_size}-{int(stamp.st_mtime)}"
        if not (folder / BUNDLE).exists():  # written last
            make(settings.PLOTLY_FILES, folder)
        self.storage = FileSystemStorage(location=folder)
        self.storage.prefix = PREFIX  # type: ignore[attr-defined]  # staticfiles reads it by name

    def check(self, **_options: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **_options: Any) -> Any:
        name = path.removeprefix(f"{PREFIX}/")
        found = self.storage.path(name) if path.startswith(PREFIX) and self.storage.exists(name) else None
        return ([found] if found else []) if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Any]]:  # noqa: ARG002
        _, files = self.storage.listdir("")
        return ((name, self.storage) for name in sorted(files) if not name.startswith("."))
