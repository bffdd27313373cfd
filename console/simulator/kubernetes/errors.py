"""Refusals in the API server's own words: each is a `v1.Status` body, asked of a real 1.36 first.

Clients branch on `reason` and `details`, people read `message`; both are part of what a simulator has to get right.
"""

from collections.abc import Sequence

from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json
from console.simulator.web import Response, answer


class ApiError(Exception):
    """A request that is answered with a failure Status."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> Json:
        """The Status object."""
        body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}

    def response(self) -> Response:
        """The whole answer."""
        return answer(self.status(), self.code)


def _details(resource: Resource, name: str, kind: str) -> Json:
    group: Json = {"group": resource.group} if resource.group else {}
    return {"name": name, **group, "kind": kind} if name else {**group, "kind": kind}


def _qualified(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def not_found(resource: Resource, name: str) -> ApiError:
    """404 for an object."""
    return ApiError(404, "NotFound", f'{_qualified(resource)} "{name}" not found', _details(resource, name, resource.plural))


def unknown_path() -> ApiError:
    """404 for a resource the server does not have."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> ApiError:
    """409 on create."""
    message = f'{_qualified(resource)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(resource, name, resource.plural))


def conflict(resource: Resource, name: str, why: str, *, kind: str | None = None) -> ApiError:
    """409: an older version, another uid, an assigned pod."""
    shown = kind or _qualified(resource)
    details = _details(resource, name, kind or resource.plural)
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {shown} "{name}": {why}', details)


def modified(resource: Resource, name: str) -> ApiError:
    """409: written against a version that is no longer the latest."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def invalid(resource: Resource, name: str, causes: Sequence[tuple[str, str, str]]) -> ApiError:
    """422; each cause is (reason, message, field)."""
    listed = [{"reason": reason, "message": message, "field": at} for reason, message, at in causes]
    texts = [f"{at}: {message}" for _, message, at in causes]
    whole = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(resource, name, resource.kind) | {"causes": listed}
    return ApiError(422, "Invalid", f'{resource.kind} "{name}" is invalid: {whole}', details)


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def unprocessable_patch() -> ApiError:
    """422 for a JSON patch that does not apply."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def method_not_allowed() -> ApiError:
    """405."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_patch() -> ApiError:
    """415 for a patch type."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_body() -> ApiError:
    """415 for a body."""
    known = "application/json, application/vnd.kubernetes.protobuf"
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable() -> ApiError:
    """406."""
    message = "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch"
    return ApiError(406, "NotAcceptable", message, {})


def expired(asked: int, oldest: int) -> ApiError:
    """410 inside a watch: the version asked for is no longer in memory."""
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def expired_continue() -> ApiError:
    """410 for a list's next page."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
        "the continue parameter."
    )
    return ApiError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """504: a version from the future."""
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}
    return ApiError(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details)


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(verb: str, resource: Resource, namespace: str, name: str) -> ApiError:
    """403, as RBAC says it."""
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    quoted = f' "{name}"' if name else ""
    about = f'resource "{resource.plural}" in API group "{resource.group}"{where}'
    message = f'{_qualified(resource)}{quoted} is forbidden: User "admin" cannot {verb} {about}'
    return ApiError(403, "Forbidden", message, _details(resource, name, resource.plural))
