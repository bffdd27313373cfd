"""kubeconfigs: one for each cluster, and one of all of them for people."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from console.simulator.values import Json


def render(clusters: Mapping[str, tuple[str, str]]) -> str:
    """A kubeconfig of clusters by name: (server, token)."""
    body: Json = {
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}} for name, (server, _) in clusters.items()],
        "users": [{"name": name, "user": {"token": token}} for name, (_, token) in clusters.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in clusters],
        "current-context": next(iter(clusters), ""),
    }  # fmt: skip
    return str(yaml.safe_dump(body, sort_keys=False))


def write(path: Path, clusters: Mapping[str, tuple[str, str]]) -> None:
    """Write it for its owner's eyes only, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=0o600)
    part.write_text(render(clusters), encoding="utf-8")
    part.replace(path)
