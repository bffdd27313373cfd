"""The lines that differ between two texts, for people to read. Pure, and bounded in time and length for any two texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

CONTEXT = 3  # unchanged lines shown around a change
WHOLE = 400  # lines a side up to which two texts stand beside each other whole
FINEST = 1500  # changed lines a side up to which they are matched; beyond, one side goes and the other comes
SHOWN = 600  # rows a page shows of a difference

Mark = Literal["", "add", "del", "hunk", "gap"]
Op = tuple[str, int, int, int, int]  # what, and the lines of both sides that it is about, as difflib says it


@dataclass(frozen=True)
class Row:
    mark: Mark
    number: int | None
    text: str

    @property
    def sign(self) -> str:
        return {"add": "+", "del": "\u2212"}.get(self.mark, "")


@dataclass(frozen=True)
class Difference:
    rows: tuple[Row, ...]
    added: int
    removed: int
    more: int = 0  # rows beyond those that are shown

    @property
    def changed(self) -> int:
        """Lines touched: a line that became another counts once."""
        return max(self.added, self.removed)


@dataclass(frozen=True)
class Beside:
    """Two texts in columns of equally many rows, so that lines which belong together stand side by side."""

    left: tuple[Row, ...]
    right: tuple[Row, ...]
    more: int = 0  # rows beyond those that are shown


GAP = Row("gap", None, "")


def difference(before: str, after: str) -> Difference:
    old, new = lines(before), lines(after)
    ops = opcodes(old, new)
    added = sum(high - low for what, _, _, low, high in ops if what != "equal")
    removed = sum(high - low for what, low, high, _, _ in ops if what != "equal")
    rows: list[Row] = []
    for group in _groups(ops, CONTEXT):
        rows += _hunk(group, old, new)
    return Difference(tuple(rows[:SHOWN]), added, removed, max(0, len(rows) - SHOWN))


def beside(one: str, other: str) -> Beside:
    """Whole where both are short, else what differs and its surroundings."""
    left, right = lines(one), lines(other)
    whole = max(len(left), len(right)) <= WHOLE
    pairs: list[tuple[Row, Row]] = []
    for group in _groups(opcodes(left, right), WHOLE if whole else CONTEXT):
        if not whole:
            pairs.append((Row("hunk", None, f"@@ line {group[0][1] + 1} @@"), Row("hunk", None, f"@@ line {group[0][3] + 1} @@")))
        for what, a, b, c, d in group:
            marks: tuple[Mark, Mark] = ("", "") if what == "equal" else ("del", "add")
            ours = [Row(marks[0], number + 1, left[number]) for number in range(a, b)]
            theirs = [Row(marks[1], number + 1, right[number]) for number in range(c, d)]
            pairs += zip_longest(ours, theirs, fillvalue=GAP)
    shown = pairs[:SHOWN]
    return Beside(tuple(row for row, _ in shown), tuple(row for _, row in shown), max(0, len(pairs) - SHOWN))


def lines(text: str) -> list[str]:
    """By LF only, so that joining them with it gives the text again: other characters that break lines elsewhere are text."""
    return text.split("\n")


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Op]:
    """difflib's opcodes. What both begin and end with is set aside first; that is nearly all of an edit."""
    head = _same(old, new)
    tail = _same(old[head:][::-1], new[head:][::-1])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old_middle), len(new_middle)) > FINEST:
        middle: list[Op] = [("replace", 0, len(old_middle), 0, len(new_middle))]
    else:
        middle = list(SequenceMatcher(None, old_middle, new_middle).get_opcodes())
    found: list[Op] = [("equal", 0, head, 0, head)] if head else []
    found += [(what, a + head, b + head, c + head, d + head) for what, a, b, c, d in middle]
    return [*found, ("equal", len(old) - tail, len(old), len(new) - tail, len(new))] if tail else found


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _groups(ops: list[Op], context: int) -> list[list[Op]]:
    """Changes with their surroundings; what is far from any change is left out."""
    groups: list[list[Op]] = [[]]
    for at, (what, a, b, c, d) in enumerate(ops):
        if what != "equal":
            groups[-1].append((what, a, b, c, d))
            continue
        before, after = at > 0, at < len(ops) - 1
        if before and after and b - a <= 2 * context:
            groups[-1].append((what, a, b, c, d))
            continue
        if before:
            size = min(context, b - a)
            groups[-1].append((what, a, a + size, c, c + size))
        if after:
            size = min(context, b - a)
            groups.append([(what, b - size, b, d - size, d)])
    return [group for group in groups if any(what != "equal" for what, *_ in group)]


def _hunk(group: list[Op], old: list[str], new: list[str]) -> list[Row]:
    end = len(new) - (new[-1] == "")  # what follows the last line end is no line to show
    first, last = group[0][3] + 1, min(group[-1][4], end)
    where = f"lines {first} to {last}" if last > first else f"line {first}"
    rows = [Row("hunk", None, f"@@ {where} @@")]
    for what, a, b, c, d in group:
        if what == "equal":
            rows += [Row("", number + 1, new[number]) for number in range(c, min(d, end))]
            continue
        rows += [Row("del", number + 1, old[number]) for number in range(a, b)]
        rows += [Row("add", number + 1, new[number]) for number in range(c, d)]
    return rows
