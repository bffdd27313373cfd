"""kubeconfigs: one for each cluster, and one of all of them for people."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from console.kube.kubeconfig import Connection, encoded
from console.simulator.values import Json


def render(clusters: Mapping[str, Connection]) -> str:
    """A kubeconfig of clusters by name, whole in itself."""
    body: Json = {
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": name, "cluster": _cluster(at)} for name, at in clusters.items()],
        "users": [{"name": name, "user": {"token": at.token}} for name, at in clusters.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in clusters],
        "current-context": next(iter(clusters), ""),
    }  # fmt: skip
    return str(yaml.safe_dump(body, sort_keys=False))


def _cluster(at: Connection) -> Json:
    authority = {"certificate-authority-data": encoded(at.ca)} if at.ca else {}
    return {"server": at.server, **authority}


def write(path: Path, clusters: Mapping[str, Connection]) -> None:
    """Write it for its owner's eyes only, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=0o600)
    part.write_text(render(clusters), encoding="utf-8")
    part.replace(path)
