"""A file of entries is data wherever it is opened."""

import csv
import io

import pytest

from console.timeline.export import csv_lines

FORMULAS = ('=HYPERLINK("http://x","y")', "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_begins_as_a_formula(text: str) -> None:
    """kubernetes-retired/dashboard#1361: text of a cluster is anybody's, and a spreadsheet runs what begins like a formula."""
    (cell,) = next(csv.reader(io.StringIO(csv_lines([[text]]), newline="")))
    assert cell == f"'{text}"


def test_other_text_is_as_it_was() -> None:
    row = ['a, "b"', "c\nd", "ünï=c+d", "", "5"]
    assert next(csv.reader(io.StringIO(csv_lines([row]), newline=""))) == row
