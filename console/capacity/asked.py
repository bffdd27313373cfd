"""What people may ask for: names and numbers, checked in pure functions whose refusals say what would be right."""

import re
import unicodedata

from console.http import Unprocessable

LONGEST_NAME = 63
MOST_GPUS = 1_000_000  # beyond, a number is a slip of the hand, whatever the quota
GPUS_PARAM = "num_preemptible_gpus"


def clean_name(text: str) -> str:
    """A cluster's name as a DNS label: trimmed, lower case, blanks and underscores as hyphens. Raises Unprocessable."""
    name = re.sub(r"[ _]+", "-", text.strip(" \t\r\n").lower())
    if not name:
        raise _bad_name("A cluster needs a name.")
    if len(name) > LONGEST_NAME:
        raise _bad_name(f"This name has {len(name)} characters; a cluster's name has at most {LONGEST_NAME}.")
    for character in name:
        if not re.fullmatch(r"[a-z0-9-]", character):
            raise _bad_name(f"A cluster's name has letters a to z, digits and hyphens; {_said(character)} cannot be in it.")
    if name.startswith("-") or name.endswith("-"):
        raise _bad_name("A cluster's name begins and ends with a letter or digit.")
    return name


def _bad_name(sentence: str) -> Unprocessable:
    return Unprocessable(sentence, param="name", code="bad_name")


def _said(character: str) -> str:
    """A character so that one can find it, even if it shows nothing."""
    title = unicodedata.name(character, "a control character").lower()
    shown = f"“{character}” " if character.isprintable() else ""
    return f"{shown}(U+{ord(character):04X}, {title})"


def whole_nodes(gpus: int, step: int, what: str, param: str) -> None:
    """Refuse what no number of whole nodes can give. `what` begins the sentence: "The preemptible target"."""
    if isinstance(gpus, bool) or not isinstance(gpus, int):
        raise Unprocessable(f"{what} is a whole number of GPUs.", param=param, code="not_a_number")
    if gpus < 0:
        raise Unprocessable(f"{what} cannot be negative; 0 gives all of them back.", param=param, code="negative")
    if gpus > MOST_GPUS:
        shown = f"{gpus:,}" if gpus < 10**15 else "that much"
        raise Unprocessable(f"{what} cannot be {shown}: no pool has as many.", param=param, code="too_many")
    if gpus % step:
        below = gpus - gpus % step
        raise Unprocessable(
            f"{what} moves in whole nodes of {step} GPUs: {below} or {below + step}, not {gpus}.",
            param=param,
            code="not_a_multiple",
            nearest=[below, below + step],
        )


def some_standard(gpus: int, step: int, param: str = "num_gpus") -> None:
    """A cluster keeps a standard node, on which runs what must never be taken back."""
    whole_nodes(gpus, step, "The number of standard GPUs", param)
    if gpus < step:
        raise Unprocessable(
            f"A cluster needs at least one standard node ({step} GPUs): what must never be taken back runs there.",
            param=param,
            code="no_standard_node",
            nearest=[step],
        )
