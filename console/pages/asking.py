"""What a request carries: who asks, and text and numbers as typed, refused with a sentence where they make no sense."""

import re
from collections.abc import Iterable
from uuid import UUID

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from console.accounts.access import Actor
from console.http import BadInput, Conflict, Unprocessable

MENDABLE = (BadInput, Conflict, Unprocessable)  # the page with what was typed, and the sentence beside it
BETWEEN_NAMES = re.compile(r"[\s,;]+")
MOST_DIGITS = 7  # ten million GPUs: more is a slip of the finger, and would not fit the column


def actor_of(request: HttpRequest) -> Actor:
    """Set by `AccessMiddleware` on every request; views here are never reached without."""
    actor: Actor = request.actor  # type: ignore[attr-defined]
    return actor


def whole_number(typed: str, param: str, what: str) -> int:
    """Digits only: "64", not "64.0", "６４" or "6e1". `what` begins the sentence: "The target"."""
    text = typed.strip()
    if text.startswith("-") and text[1:].isdigit():
        raise BadInput(f"{what} cannot be negative: 0 is the least.", param=param)
    if not (text.isascii() and text.isdigit()):
        raise BadInput(f"{what} is a whole number of GPUs, in digits.", param=param)
    if len(text.lstrip("0")) > MOST_DIGITS:
        raise BadInput(f"{what} is beyond any pool: at most {MOST_DIGITS} digits.", param=param)
    return int(text)


def optional_number(typed: str | None, param: str, what: str) -> int | None:
    return whole_number(typed, param, what) if typed else None


def id_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def names_of(typed: Iterable[str]) -> list[str]:
    """Names as people list them, with commas, blanks or line breaks between; each once, in their order."""
    return list(dict.fromkeys(name for text in typed for name in BETWEEN_NAMES.split(text) if name))


def line_of_text(typed: str, param: str, what: str, most: int) -> str:
    """One line a person typed. What the database cannot keep, or a page cannot show, is refused and not altered."""
    text = typed.strip()
    if len(text) > most:
        raise BadInput(f"{what} has {len(text)} characters; at most {most} are kept.", param=param)
    if any(not char.isprintable() for char in text):
        raise BadInput(f"{what} holds a character that cannot be shown, such as a line break or NUL.", param=param)
    return text


def way_back(request: HttpRequest, otherwise: str) -> str:
    """Where a form wants to return to, if that is here."""
    wanted = request.POST.get("next", "")
    return wanted if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else otherwise
