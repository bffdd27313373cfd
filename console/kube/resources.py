"""Where each kind lives in the API."""

from __future__ import annotations

from urllib.parse import quote

from console.kube.shapes import Kind

_ROOTS: dict[Kind, str] = {
    "nodes": "/api/v1",
    "pods": "/api/v1",
    "events": "/api/v1",
    "namespaces": "/api/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "leases": "/apis/coordination.k8s.io/v1",
}


def path(kind: Kind, namespace: str | None = None, name: str | None = None, sub: str | None = None) -> str:
    """The path of a collection, an object or its subresource. Names are quoted, so that no name can lead elsewhere."""
    parts = [_ROOTS[kind]]
    if namespace is not None:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind)
    parts += [quote(part, safe="") for part in (name, sub) if part is not None]
    return "/".join(parts)
