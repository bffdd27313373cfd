"""What a long test found, for people: shown in the terminal whatever pytest captures, and kept as a file where one can be."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from console.env import ROOT


def report(config: pytest.Config, name: str, text: str) -> None:
    """Print, and keep under HALFTIDE_REPORTS, or else in `.halftide/reports` beside the code."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.ensure_newline()
        for line in text.splitlines():
            terminal.write_line(line)
    folder = Path(os.environ.get("HALFTIDE_REPORTS") or ROOT / ".halftide" / "reports")
    with suppress(OSError):  # a read-only checkout is no reason to fail
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def table(head: list[str], rows: list[list[str]]) -> str:
    """As Markdown, with columns that line up in a terminal too."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(head), line(["-" * width for width in widths]), *(line(row) for row in rows)])
