"""Kubernetes objects as an API server writes them, no bigger than a test needs."""

from __future__ import annotations

NODES, PODS, EVENTS = "/api/v1/nodes", "/api/v1/pods", "/api/v1/events"


def node(name: str = "gpu-dp-1", version: int = 5, **meta: object) -> dict[str, object]:
    """A Ready node with eight GPUs."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
        | {"creationTimestamp": "2026-11-30T10:00:00Z"}
        | meta,
        "spec": {},
        "status": {
            "allocatable": {"cpu": "96", "nvidia.com/gpu": "8"},
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "127.1.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T10:01:00Z", "reason": "KubeletReady"}
            ],
        },
    }


def listing(*items: object, kind: str = "NodeList", version: int = 100, more: str = "") -> dict[str, object]:
    """A list answer, or with `more` one page of it."""
    meta = {"resourceVersion": str(version)} | ({"continue": more} if more else {})
    return {"kind": kind, "apiVersion": "v1", "metadata": meta, "items": list(items)}


def change(type_: str, item: object) -> dict[str, object]:
    """One line of a watch."""
    return {"type": type_, "object": item}


def bookmark(version: int) -> dict[str, object]:
    """A bookmark: an object with nothing but a version."""
    return change("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(version)}, "spec": {}})


def status(code: int, message: str = "no", **more: object) -> dict[str, object]:
    """A refusal."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code} | more


GONE = change("ERROR", status(410, "too old resource version: 100 (200)", reason="Expired"))
