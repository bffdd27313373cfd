"""Differences for people to read, and two edits in one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.scripts.diff import SHOWN, beside, difference
from console.scripts.merge import merge

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "\td", ""]), max_size=12).map("\n".join)
MARKS = ("<<<<<<<", ">>>>>>>", "=======")


def drawn(before: str, after: str) -> list[str]:
    return [f"{row.sign or ' '}{row.number or ''} {row.text}" for row in difference(before, after).rows]


def test_a_change_is_shown_with_three_lines_around_it() -> None:
    before = "".join(f"{number}\n" for number in range(1, 21))
    found = difference(before, before.replace("10\n", "ten\nand a half\n"))
    assert (found.added, found.removed, found.changed) == (2, 1, 2)
    assert drawn(before, before.replace("10\n", "ten\nand a half\n")) == [
        "  @@ lines 7 to 14 @@", " 7 7", " 8 8", " 9 9", "\u221210 10", "+10 ten", "+11 and a half", " 12 11", " 13 12", " 14 13",
    ]  # fmt: skip


def test_changes_far_apart_are_two_hunks_and_near_ones_are_one() -> None:
    before = "".join(f"{number}\n" for number in range(1, 31))
    assert sum(row.mark == "hunk" for row in difference(before, before.replace("5\n", "x\n", 1).replace("29\n", "y\n")).rows) == 2
    assert (
        sum(row.mark == "hunk" for row in difference(before, before.replace("5\n", "x\n", 1).replace("\n8\n", "\ny\n")).rows) == 1
    )


def test_the_first_version_is_all_new_and_the_same_text_is_no_difference() -> None:
    assert drawn("", "#!/bin/sh\n") == ["  @@ line 1 @@", "+1 #!/bin/sh"]
    assert difference("a\nb", "a\nb").rows == ()


def test_only_a_line_end_at_the_end_is_a_difference_too() -> None:
    assert difference("a", "a\n").added == 1


@given(TEXTS, TEXTS)
def test_counts_are_those_of_the_rows_and_the_columns_hold_both_texts(one: str, other: str) -> None:
    found = difference(one, other)
    assert sum(row.mark == "add" for row in found.rows) == found.added
    assert sum(row.mark == "del" for row in found.rows) == found.removed
    if one != other:
        columns = beside(one, other)
        assert len(columns.left) == len(columns.right)
        for text, side in ((one, columns.left), (other, columns.right)):
            assert "\n".join(row.text for row in side if row.mark != "gap") == text


def test_any_two_texts_take_no_longer_than_a_page_may() -> None:
    """64 KiB of short lines on both sides, nothing in common or everything in another order."""
    many = [f"{number:x}" for number in range(14_000)]
    before = time.monotonic()
    found = difference("\n".join(many), "\n".join(many[::-1]))
    assert len(found.rows) == SHOWN
    assert found.more > 20_000
    difference("a\n" * 32_000, "b\na\n" * 16_000)
    assert beside("\n".join(many), "\n".join(many[::-1])).more > 0
    assert time.monotonic() - before < 5


def test_what_only_one_changed_is_taken_from_that_one() -> None:
    """authgear/authgear-server#1364: the slower one's text replaced the other's."""
    base = "one\ntwo\nthree\nfour\nfive\n"
    assert merge(base, base.replace("one", "mine"), base.replace("five", "theirs"), "v9") == "mine\ntwo\nthree\nfour\ntheirs\n"


def test_what_both_changed_stands_there_twice() -> None:
    assert merge("a\nb\nc\n", "a\nmine\nc\n", "a\ntheirs\nc\n", "v9 by olu") == (
        "a\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> v9 by olu\nc\n"
    )


@given(TEXTS, TEXTS, TEXTS)
def test_a_merge_takes_a_lone_change_whole_and_never_loses_a_line(base: str, mine: str, theirs: str) -> None:
    assert merge(base, base, theirs, "v9") == theirs
    assert merge(base, mine, base, "v9") == mine
    assert merge(base, mine, mine, "v9") == mine
    merged = merge(base, mine, theirs, "v9").split("\n")
    for side in (mine, theirs):
        for line in set(side.split("\n")) - set(base.split("\n")):
            assert merged.count(line) >= 1


@pytest.mark.parametrize("base", ["", "a\nb\n"])
def test_two_first_versions_are_both_there(base: str) -> None:
    merged = merge(base, "mine\n", "theirs\n", "v1")
    assert all(mark in merged for mark in MARKS)
    assert "mine\n" in merged
    assert "theirs\n" in merged
