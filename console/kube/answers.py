"""What an answer of an API server means.

Kubernetes says no with a Status object; proxies before it say no with pages. Both become one of our errors here, and the two
meanings of 429 are told apart: "slow down" and "a disruption budget forbids this".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import orjson

from console.kube.errors import (
    Broken,
    Conflict,
    Expired,
    Forbidden,
    Garbage,
    KubeError,
    NotFound,
    Refused,
    Throttled,
    Unauthorized,
)
from console.kube.fields import MESSAGE_CHARS, Json, mapping, mappings, text

# What a 429 asks for at least, in seconds, whatever its Retry-After says: what Kubernetes' own flow control sends.
_LEAST_RETRY = 1.0

# The only place where an eviction's answer names its budget is this sentence of its cause.
_BUDGET_NAME = re.compile(r"disruption budget (\S+) ")
_BUDGET_CAUSE = "DisruptionBudget"

_ERRORS: dict[int, type[KubeError]] = {
    HTTPStatus.UNAUTHORIZED: Unauthorized,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Expired,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer; header names are case-blind as the library gives them."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether it is a success (2xx)."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def loads(body: bytes) -> Json:
    """A JSON object out of bytes. Raises Garbage.

    The fast parser refuses lone surrogates and bytes that are no UTF-8; one such text must not hide a whole list, so those bodies
    go through the patient parser and are cleaned like all other text.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _patiently(body)
    if not isinstance(value, dict):
        raise Garbage("The answer is JSON, but no Kubernetes object.")
    return value


def _patiently(body: bytes) -> object:
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise Garbage("The answer is no JSON: something else than a Kubernetes API speaks there, or it was cut off.") from error


def error_of(answer: Answer) -> KubeError:
    """The error of an answer that is no success."""
    try:
        status = loads(answer.body)
    except Garbage:
        status = {}
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = retry_after(answer)
        return Throttled(f"The Kubernetes API asks us to wait {wait:g} s.", wait)
    return status_error(answer.status, status)


def status_error(code: int, status: Json) -> KubeError:
    """The error of a Status object, which may also come as an ERROR inside a watch."""
    message = text(status, "message", MESSAGE_CHARS) or f"It answered {code}."
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Broken(f"The Kubernetes API is in trouble: {message}")
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(f"The Kubernetes API asks us to wait: {message}", _LEAST_RETRY)
    if code == HTTPStatus.UNPROCESSABLE_ENTITY and _other_uid(status):
        # A patch that names another uid is answered so by Kubernetes 1.36 ("field is immutable"), not with 409.
        return Conflict(f"Kubernetes has another object of that name now: {message}")
    return _ERRORS.get(code, Refused)(f"Kubernetes says: {message}")


def _other_uid(status: Json) -> bool:
    return any(cause.get("field") == "metadata.uid" for cause in mappings(mapping(status, "details"), "causes"))


def retry_after(answer: Answer) -> float:
    """How many seconds a 429 asks us to wait: its header, and never less than one (0 would be asked again in a loop)."""
    told = answer.headers.get("Retry-After", "")
    return max(_LEAST_RETRY, float(told)) if re.fullmatch(r"\d{1,6}(\.\d+)?", told) else _LEAST_RETRY


def is_budget(answer: Answer) -> bool:
    """Whether a refusal comes from a disruption budget rather than from a busy server (kubernetes/kubernetes#106286)."""
    return budget_causes(answer) is not None


def budget_causes(answer: Answer) -> tuple[str, ...] | None:
    """The budgets an eviction was refused for, as far as the API names them; None where it was not a budget."""
    if answer.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR):
        return None
    try:
        status = loads(answer.body)
    except Garbage:
        return None
    causes = [c for c in mappings(mapping(status, "details"), "causes") if c.get("reason") == _BUDGET_CAUSE]
    if causes:
        names = (_BUDGET_NAME.search(text(cause, "message", MESSAGE_CHARS)) for cause in causes)
        return tuple(found[1] for found in names if found)
    # Two budgets over one pod are a 500 without a cause: only its sentence tells it from a broken server.
    return () if "more than one PodDisruptionBudget" in text(status, "message", MESSAGE_CHARS) else None
