"""Rows of the table and of `bench.json`, and the few statistics they need."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One figure. `goal` is what it shall reach, as text; `ratio` is ours to the peer's."""

    name: str
    value: float
    unit: str
    peer: float | None
    ratio: float | None
    goal: str
    met: bool


@dataclass
class Book:
    """The rows so far. Each is printed as it is found, so that a bench that ends early has said what it knew."""

    rows: list[Row] = field(default_factory=list)
    load: float = 0.0

    def at_most(self, name: str, value: float, unit: str, goal: float, *, or_met: bool = False) -> None:
        """`or_met`: the design takes another figure for as good, and it was reached."""
        self._add(Row(name, round(value, 3), unit, None, None, f"≤ {goal:g} {unit}", value <= goal or or_met))

    def at_least(self, name: str, value: float, unit: str, goal: float) -> None:
        self._add(Row(name, round(value, 3), unit, None, None, f"≥ {goal:g} {unit}", value >= goal))

    def ratio_at_most(self, name: str, value: float, unit: str, peer: float, goal: float) -> None:
        ratio = value / peer
        self._add(Row(name, round(value, 3), unit, round(peer, 3), round(ratio, 2), f"≤ {goal:g} × peer", ratio <= goal))

    def ratio_at_least(self, name: str, value: float, unit: str, peer: float, goal: float, *, or_met: bool = False) -> None:
        """`or_met` as above."""
        ratio = value / peer
        met = ratio >= goal or or_met
        self._add(Row(name, round(value, 3), unit, round(peer, 3), round(ratio, 2), f"≥ {goal:g} × peer", met))

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        print(f"   {line(row)}", flush=True)

    def show(self) -> None:
        met = sum(row.met for row in self.rows)
        print(f"\n{len(self.rows)} figures, {met} reached; load {self.load:.1f}, {os.cpu_count()} cores")
        for row in self.rows:
            print(line(row))

    def write(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps([asdict(row) for row in self.rows], indent=1, ensure_ascii=False) + "\n")


def line(row: Row) -> str:
    peer = f"peer {row.peer:g}, ratio {row.ratio:g}" if row.peer is not None else ""
    return f"{'ok ' if row.met else 'NO '} {row.name:<66} {row.value:>9g} {row.unit:<10} {row.goal:<16} {peer}"


def share(values: Sequence[float], part: float) -> float:
    """The value that `part` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
