"""What a request says beside its object: who writes, how strictly fields are meant, what an apply wants."""

from datetime import datetime
from typing import Any

import yaml

from console.simulator.kubernetes import protobuf, schemas, validation
from console.simulator.kubernetes.errors import ApiError, bad_request, unsupported_body
from console.simulator.kubernetes.managed import Writer
from console.simulator.kubernetes.paths import Target
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, loads
from console.simulator.web import Request

APPLY_TYPE = "application/apply-patch+yaml"
BODY_TYPES = ("application/json", "")


def decoded(request: Request, *, patch: bool = False) -> Any:
    """The body of a request. Raises the API's 400 or 415."""
    kind = request.headers.get("content-type", "").split(";")[0].strip()
    try:
        if kind == protobuf.CONTENT_TYPE and not patch:
            return protobuf.decode(request.body)
        if not patch and kind not in BODY_TYPES:
            raise unsupported_body()
        return loads(request.body)
    except ValueError as error:
        what = "error decoding patch" if patch else "the object provided is unrecognized: json parse error"
        raise bad_request(f"{what}: {error}") from error


def dry(request: Request) -> bool:
    """Whether nothing is to be written."""
    return request.query.get("dryRun") == "All"


def is_apply(request: Request) -> bool:
    """Whether a PATCH is a server-side apply."""
    return request.headers.get("content-type", "").split(";")[0].strip() == APPLY_TYPE


def writer(request: Request, target: Target, now: datetime) -> Writer:
    """Who writes: by the name they give, else by their program's."""
    program = request.headers.get("user-agent", "").split("/")[0]
    name = request.query.get("fieldManager") or program or "unknown"
    return Writer(name, now, target.subresource if target.subresource == "status" else "")


def checked(request: Request, resource: Resource, body: Json) -> Json:
    """The object without fields that its kind does not have; with `fieldValidation=Strict` they are refused."""
    schema = schemas.of(resource)
    if request.query.get("fieldValidation") == "Strict" and (extra := validation.unknown(body, schema)):
        listed = ", ".join(f'unknown field "{path}"' for path in extra)
        where = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise bad_request(f"{where}: strict decoding error: {listed}")
    return dict(validation.pruned(body, schema))


def config(request: Request, target: Target) -> Json:
    """What an apply wants. Raises what the real server answers to nonsense."""
    if not request.query.get("fieldManager"):
        cause = {
            "reason": "FieldValueRequired",
            "message": "Required value: is required for apply patch",
            "field": "fieldManager",
        }
        message = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
        raise ApiError(422, "Invalid", message, {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause]})
    try:
        body = yaml.safe_load(request.body)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: it is no object")
    metadata = body.setdefault("metadata", {})
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.setdefault("name", target.name) != target.name:
        name = metadata["name"]
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    namespace = metadata.get("namespace", "")
    if target.resource.namespaced:
        metadata.setdefault("namespace", target.namespace)
    if extra := validation.unknown(body, schemas.of(target.resource)):
        group = f"{target.resource.group}/{target.resource.version}"
        about = f"{namespace}/{target.name}; {group}, Kind={target.resource.kind}"
        why = f"failed to create typed patch object ({about}): .{extra[0]}: field not declared in schema"
        raise ApiError(500, "", why)
    return body
