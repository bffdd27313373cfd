"""Three ways to change an object in place: JSON merge patch, JSON patch, strategic merge patch.

Pure: object and patch in, new object out. Of strategic merge patch it knows the merge keys of the kinds served here, which
is what kubectl needs to taint, cordon and edit; lists it does not know are replaced whole, as the real one does.
"""

from typing import Any

from console.simulator.kubernetes.errors import ApiError, bad_request, unprocessable_patch
from console.simulator.values import Json, copy

MERGE_KEYS = {
    "containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "volumeMounts": "mountPath",
    "ports": "containerPort", "conditions": "type", "ownerReferences": "uid", "addresses": "type",
    "imagePullSecrets": "name", "hostAliases": "ip", "podIPs": "ip",
}  # fmt: skip
SET_LISTS = frozenset({"finalizers", "podCIDRs"})


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target: Json, patch: Json) -> Json:
    """Kubernetes' own merge: lists of named things merge by their key, `$patch` and its kin direct it."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: copy(value) for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    result = dict(target)
    for key, value in patch.items():
        if key in ("$patch", "$retainKeys") or key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.split("/", 1)[1]
            result[name] = [item for item in result.get(name) or [] if item not in value]
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            current = result.get(key)
            result[key] = strategic(current if isinstance(current, dict) else {}, value)
        elif isinstance(value, list):
            result[key] = _strategic_list(key, result.get(key) or [], value)
        else:
            result[key] = value
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    order = {key.split("/", 1)[1]: value for key, value in patch.items() if key.startswith("$setElementOrder/")}
    for key, wanted in order.items():
        result[key] = _ordered(key, result.get(key) or [], wanted)
    return result


def _strategic_list(key: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if key in SET_LISTS:
        return [*current, *(item for item in patch if item not in current)]
    merge_key = MERGE_KEYS.get(key)
    if merge_key is None or {"$patch": "replace"} in patch:
        return [copy(item) for item in patch if item != {"$patch": "replace"}]
    result = list(current)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {merge_key}")
        at = next((n for n, old in enumerate(result) if old.get(merge_key) == item[merge_key]), None)
        if item.get("$patch") == "delete":
            result = [old for old in result if old.get(merge_key) != item[merge_key]]
        elif at is None:
            result.append(copy(item))
        else:
            result[at] = strategic(result[at], item)
    return result


def _ordered(key: str, items: list[Any], wanted: list[Any]) -> list[Any]:
    merge_key = MERGE_KEYS.get(key)

    def identity(item: Any) -> Any:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    places = {identity(item): at for at, item in enumerate(wanted)}
    return sorted(items, key=lambda item: places.get(identity(item), len(places)))


def apply_operations(target: Json, operations: Any) -> Json:
    """RFC 6902. Raises 400 for what is no patch, 422 for one that does not apply."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    document: Any = copy(target)
    for operation in operations:
        try:
            document = _operate(document, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise unprocessable_patch() from error
    if not isinstance(document, dict):
        raise unprocessable_patch()
    return document


def _operate(document: Any, operation: Json) -> Any:
    verb, path = operation["op"], _pointer(operation["path"])
    if verb == "add":
        return _insert(document, path, operation["value"])
    if verb == "remove":
        _take(document, path)
    elif verb == "replace":
        _look(document, path)
        return _replace(document, path, operation["value"])
    elif verb == "test":
        if _look(document, path) != operation["value"]:
            raise ValueError("test failed")
    elif verb in ("move", "copy"):
        source = _pointer(operation["from"])
        value = copy(_look(document, source))
        if verb == "move":
            _take(document, source)
        return _insert(document, path, value)
    else:
        raise ValueError(f"unknown operation {verb}")
    return document


def _pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise ValueError("a pointer starts with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _index(items: list[Any], part: str, *, end: bool = False) -> int:
    if end and part == "-":
        return len(items)
    if not part.isdigit() or int(part) > len(items) - (0 if end else 1):
        raise IndexError(part)
    return int(part)


def _look(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(document, part)] if isinstance(document, list) else document[part]
    return document


def _insert(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return copy(value)
    parent = _look(document, path[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, path[-1], end=True), copy(value))
    else:
        parent[path[-1]] = copy(value)
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return copy(value)
    parent = _look(document, path[:-1])
    parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]] = copy(value)
    return document


def _take(document: Any, path: list[str]) -> None:
    parent = _look(document, path[:-1])
    del parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]]


def patched(content_type: str, target: Json, patch: Any) -> Json:
    """The object after the patch of that media type. Raises ApiError; 415 for another type."""
    kind = content_type.split(";")[0].strip()
    if kind == "application/json-patch+json":
        return apply_operations(target, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: the patch is no JSON object")
    if kind == "application/merge-patch+json":
        return dict(merge(target, patch))
    if kind == "application/strategic-merge-patch+json":
        return strategic(target, patch)
    raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
