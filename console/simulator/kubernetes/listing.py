"""Lists: selectors, pages, and every page of one list from the same instant."""

import base64
from collections.abc import Mapping

from console.simulator.kubernetes.errors import ApiError, bad_request, expired_continue, too_large_version
from console.simulator.kubernetes.paths import Target
from console.simulator.kubernetes.render import Renderer
from console.simulator.kubernetes.selectors import matcher, parse_fields, parse_labels
from console.simulator.kubernetes.store import Store
from console.simulator.values import Json, dumps, loads
from console.simulator.web import Response


def number(text: str, name: str) -> int:
    """A version or limit from a query. Raises the API's answer for nonsense."""
    if not text.isdigit():
        why = f'{name}: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(500, "", why)
    return int(text)


def _token(version: int, start: str) -> str:
    return base64.urlsafe_b64encode(dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        body = loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(body["rv"]), str(body["start"])
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request("invalid continue token: continue key is not valid") from error


def respond(store: Store, target: Target, query: Mapping[str, str], renderer: Renderer) -> Response:
    """One page of a list."""
    resource = target.resource
    labels, fields = parse_labels(query.get("labelSelector", "")), parse_fields(resource, query.get("fieldSelector", ""))
    asked = number(query.get("resourceVersion") or "0", "resourceVersion")
    if asked > store.version:
        raise too_large_version(asked, store.version)
    limit = number(query.get("limit") or "0", "limit")
    version, start = store.version, ""
    if token := query.get("continue", ""):
        version, start = _read_token(token)
    elif query.get("resourceVersionMatch") == "Exact" and asked:
        version = asked
    if version < store.oldest(resource):
        raise expired_continue()
    matches = matcher(target.namespace, labels, fields)
    found = [(key, record) for key, record in store.at(resource, version) if key > start and matches(record.body)]
    page = found[:limit] if limit else found
    metadata: Json = {"resourceVersion": str(version)}
    if len(page) < len(found):
        metadata["continue"] = _token(version, page[-1][0])
        if not labels and not fields:
            metadata["remainingItemCount"] = len(found) - len(page)
    return Response(200, renderer.many([record for _, record in page], metadata))
