"""What a URL under one cluster means: resource, namespace, name, subresource."""

from dataclasses import dataclass
from urllib.parse import unquote

from console.simulator.kubernetes.resources import BY_PATH, Resource


@dataclass(frozen=True)
class Target:
    """What a request is about; an empty name means the collection, an empty namespace all of them."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str) -> Target | None:
    """The target of `/api/v1/…` or `/apis/<group>/<version>/…`; None where the server has nothing there."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and (group or rest[2] not in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and not (subresource in resource.subresources or (subresource == "status" and resource.status)):
        return None
    if name and resource.namespaced and not namespace:
        return None
    return Target(resource, namespace, name, subresource)
