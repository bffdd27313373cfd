"""Two people's edits of one text in one: what only one of them changed is taken, what both changed stands there twice, marked.

The usual three-way merge by lines. Written here because the library for it is under the GPL, and the other one merges characters.
"""

from collections.abc import Iterator, Sequence

from console.scripts.diff import lines, opcodes

Sync = tuple[int, int, int, int]  # a run of lines that all three share: its start in base, mine and theirs, and its length


def merge(base: str, mine: str, theirs: str, their_name: str) -> str:
    """The merged text. Where both changed the same lines differently both stand between marks, as git writes them."""
    b, m, t = lines(base), lines(mine), lines(theirs)
    out: list[str] = []
    at_b = at_m = at_t = 0
    for in_b, in_m, in_t, length in _shared(b, m, t):
        out += _between(b[at_b:in_b], m[at_m:in_m], t[at_t:in_t], their_name)
        out += b[in_b : in_b + length]
        at_b, at_m, at_t = in_b + length, in_m + length, in_t + length
    return "\n".join(out)


def _between(base: list[str], mine: list[str], theirs: list[str], their_name: str) -> list[str]:
    if mine in (base, theirs):
        return theirs
    if theirs == base:
        return mine
    return ["<<<<<<< yours", *mine, "=======", *theirs, f">>>>>>> {their_name}"]


def _shared(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Sync]:
    """In order, and at the end an empty one, so that what follows the last is merged too."""
    ours = [(a, b, c) for what, a, b, c, _ in opcodes(base, mine) if what == "equal"]
    others = [(a, b, c) for what, a, b, c, _ in opcodes(base, theirs) if what == "equal"]
    at = other = 0
    while at < len(ours) and other < len(others):
        (low, high, in_mine), (other_low, other_high, in_theirs) = ours[at], others[other]
        start, end = max(low, other_low), min(high, other_high)
        if start < end:
            yield start, in_mine + start - low, in_theirs + start - other_low, end - start
        if high < other_high:
            at += 1
        else:
            other += 1
    yield len(base), len(mine), len(theirs), 0
