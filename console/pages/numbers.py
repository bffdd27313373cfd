"""Numbers with a fraction as people type them, refused with a sentence where they make no sense."""

import re

from console.http import BadInput

_PLAIN = re.compile(r"\d{1,12}(\.\d{1,6})?|\.\d{1,6}")


def decimal(typed: str, param: str, what: str, least: float, most: float) -> float:
    """`what` begins the sentence: "The size". The fraction stands behind a point: a comma means thousands to many."""
    text = typed.strip()
    if "," in text:
        raise BadInput(f"{what} has a comma in it. Write a fraction with a point, and no separator for thousands.", param=param)
    if not _PLAIN.fullmatch(text):
        raise BadInput(f"{what} is a number, such as 3.5.", param=param)
    found = float(text)
    if not least <= found <= most:
        raise BadInput(f"{what} is between {_said(least)} and {_said(most)}.", param=param)
    return found


def _said(number: float) -> str:
    return f"{number:,.6f}".rstrip("0").rstrip(".")
