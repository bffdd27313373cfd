"""Whatever goes wrong at an API address, as one envelope: `{"error": {"message", "type", "param", "code"}}` (DESIGN 12)."""

import json
import logging
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import HttpError, ValidationError

from console.api.requests import REFUSALS
from console.http import BadInput, DomainError, NotFound, Unprocessable, answer

log = logging.getLogger(__name__)

SHOWN = 40  # characters of a wrong value that an answer repeats


class NotAllowed(DomainError):
    status = 405
    title = "Not here"


class TooLarge(DomainError):
    status = 413
    title = "Too large"


class OurFault(DomainError):
    status = 500
    type = "server_error"
    title = "A fault of Halftide"


def unknown_address(path: str) -> NotFound:
    """The most likely reason is said: the client's base address is the root, and every path carries its version."""
    hint = ""
    if path.startswith(("/v1/v1/", "/v1/v3/", "/v3/v1/", "/v3/v3/")):
        hint = " The client's base address is the root of Halftide, without /v1."
    return NotFound(f"There is nothing at this address.{hint} All there is stands in /api/openapi.json.", code="unknown_address")


def unknown_name(what: str, name: str, known: Collection[str]) -> Unprocessable:
    close = get_close_matches(name, known, 1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return Unprocessable(f"There is no {what} {shown(name)}.{meant}", param=name[:SHOWN], code="unknown_field")


def sentence_of(error: Mapping[str, Any]) -> Unprocessable:
    """One finding of the validator, in our words. `input` is what was sent."""
    name = str(error["loc"][-1])
    kind, sent = error["type"], error.get("input")
    if kind == "extra_forbidden":
        return unknown_name("field", name, error.get("known", ()))
    if name in REFUSALS and kind in {"none_required", "literal_error"}:
        return Unprocessable(f"{name} cannot be {shown(sent)}. {REFUSALS[name]}", param=name, code="not_offered")
    if kind == "missing":
        return Unprocessable(f"{name} is missing.", param=name, code="missing")
    if kind.startswith("int_"):
        return Unprocessable(f"{name} is a whole number, such as 64, not {shown(sent)}.", param=name, code="not_a_number")
    if kind.startswith("string_type"):
        return Unprocessable(f"{name} is a text, not {shown(sent)}.", param=name, code="not_a_text")
    if kind == "string_pattern_mismatch":
        return Unprocessable(f"{name} cannot be {shown(sent)}: no such name is written so.", param=name, code="bad_name")
    return Unprocessable(f"{name} cannot be {shown(sent)}: {error['msg']}.", param=name, code=kind)


def shown(value: object) -> str:
    """A wrong value as JSON writes it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    return answer(request, sentence_of(error.errors[0]))


def refused(request: HttpRequest, error: HttpError) -> HttpResponse:
    """The library's own refusal: a body that it could not read, for the reason that our parser gave."""
    why = error.__cause__
    return answer(request, why if isinstance(why, DomainError) else BadInput(f"{error.message}.", code="unreadable"))


def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:  # noqa: ARG001  (the library's shape)
    return answer(request, TooLarge("This request is too large: at most 2.5 MB are read.", code="too_large"))


def ours(request: HttpRequest, error: Exception) -> HttpResponse:
    """The door of the process: what nobody foresaw is logged whole and answered without a word of it."""
    log.error("api.fault", exc_info=error, extra={"path": request.path, "method": request.method})
    return answer(request, OurFault("This is a fault of Halftide, and it was logged. Asking again may help.", code="fault"))


def nowhere(request: HttpRequest, error: Http404) -> HttpResponse:  # noqa: ARG001
    return answer(request, unknown_address(request.path))


HANDLERS: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    DomainError: answer,
    ValidationError: invalid,
    HttpError: refused,
    RequestDataTooBig: too_large,
    Http404: nowhere,
    Exception: ours,
}
