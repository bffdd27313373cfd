"""An object on its way in: created, replaced, and what a writer may not touch. Pure; raises ApiError."""

from datetime import datetime
from typing import Any

from console.simulator.kubernetes import defaults, validation
from console.simulator.kubernetes.errors import bad_request, conflict, invalid, modified
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, copy

SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")
# What may change in a running pod; the rest of its spec is fixed.
POD_FREE = frozenset({"containers", "initContainers", "activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"})


def accepted(resource: Resource, body: Any) -> Json:
    """The object of a request's body, without the two fields that storage leaves out."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized: it is no JSON object")
    kind, version = body.get("kind"), body.get("apiVersion")
    if kind and kind != resource.kind:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: no kind registered for it here')
    if version and version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
    for key in ("metadata", "spec", "status"):
        if body.get(key) is not None and not isinstance(body[key], dict):
            raise bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled: {key} is no JSON object')
    kept = {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}
    kept["metadata"] = dict(kept.get("metadata") or {})
    return kept


def created(resource: Resource, body: Json, namespace: str, now: datetime) -> Json:
    """A new object, complete and checked."""
    given = body["metadata"].get("namespace")
    if given and resource.namespaced and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    fresh: Json = copy(body)
    metadata = fresh["metadata"]
    causes = validation.object_causes(resource, fresh) if metadata.get("name") else []
    if not metadata.get("name") and not metadata.get("generateName"):
        causes = validation.name_causes(resource, "")
    if causes:
        raise invalid(resource, metadata.get("name", ""), causes)
    defaults.identify(resource, fresh, namespace, now)
    if late := validation.object_causes(resource, fresh):
        raise invalid(resource, metadata["name"], late)
    defaults.complete(resource, fresh)
    return fresh


def replaced(resource: Resource, old: Json, new: Json, *, subresource: str = "", put: bool = False) -> Json:
    """`new` as the next state of `old`: preconditions held, foreign parts kept, the rest checked."""
    before, after = old["metadata"], new["metadata"]
    name = before["name"]
    if after.get("name", "") != name:
        raise bad_request(f"the name of the object ({after.get('name', '')}) does not match the name on the URL ({name})")
    if after.get("uid") not in (None, "", before["uid"]):
        raise _other_uid(resource, name, before["uid"], str(after["uid"]), put=put)
    if after.get("resourceVersion") not in (None, "", before["resourceVersion"]):
        raise modified(resource, name)
    metadata = {key: value for key, value in after.items() if key not in SERVER_OWNED and key != "managedFields"}
    metadata |= {key: before[key] for key in (*SERVER_OWNED, "managedFields") if key in before}
    if "namespace" in before:
        metadata["namespace"] = before["namespace"]
    metadata["resourceVersion"] = before["resourceVersion"]
    if subresource == "status":
        result = {**old, "metadata": metadata, "status": new.get("status", {})}
    else:
        result = {**new, "metadata": metadata}
        if resource.status and "status" in old:
            result["status"] = old["status"]
    if causes := validation.object_causes(resource, result) + _fixed(resource, old, result):
        raise invalid(resource, name, causes)
    if resource.generation and result.get("spec") != old.get("spec"):
        metadata["generation"] = before.get("generation", 0) + 1
    return result


def _fixed(resource: Resource, old: Json, new: Json) -> list[validation.Cause]:
    if resource.plural != "pods":
        return []
    before, after = ({key: value for key, value in body["spec"].items() if key not in POD_FREE} for body in (old, new))
    if before == after:
        return []
    message = "Forbidden: pod updates may not change fields other than `spec.containers[*].image` and a few more"
    return [("FieldValueForbidden", message, "spec")]


def _other_uid(resource: Resource, name: str, have: str, given: str, *, put: bool) -> Exception:
    """The real one answers a PUT with a conflict, a patch with 422 (and says it twice)."""
    if put:
        where = f"StorageError: invalid object, Code: 4, Key: /registry/{resource.plural}/{name}, ResourceVersion: 0"
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {have}"
        return conflict(resource, name, f"{where}, AdditionalErrorMsg: {why}")
    cause = ("FieldValueInvalid", f'Invalid value: "{given}": field is immutable', "metadata.uid")
    return invalid(resource, name, [cause, cause])
