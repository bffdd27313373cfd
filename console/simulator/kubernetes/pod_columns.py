"""A pod's row in `kubectl get pods`: its status word is a small story of its own."""

from collections.abc import Callable
from typing import Any

from console.simulator.values import Json

NONE = "<none>"


def _state(container: Json, name: str) -> Json | None:
    found = (container.get("state") or {}).get(name)
    return dict(found) if isinstance(found, dict) else None


def status_word(body: Json) -> str:
    """Running, ContainerCreating, Terminating, Completed, Error, ExitCode:3 …: what is shown under STATUS."""
    status = body.get("status", {})
    word = str(status.get("reason") or status.get("phase", ""))
    running = False
    for container in reversed(status.get("containerStatuses") or []):
        waiting, ended = _state(container, "waiting"), _state(container, "terminated")
        if waiting and waiting.get("reason"):
            word = waiting["reason"]
        elif ended and ended.get("reason"):
            word = ended["reason"]
        elif ended:
            word = f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
        elif container.get("ready") and _state(container, "running") is not None:
            running = True
    if word == "Completed" and running:
        word = "Running" if _ready(status) else "NotReady"
    if "deletionTimestamp" in body["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return word


def _ready(status: Json) -> bool:
    return any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions") or [])


def pod_cells(body: Json, born: str, ago: Callable[[object], str]) -> list[Any]:
    """The nine cells."""
    status, spec = body.get("status", {}), body["spec"]
    containers = status.get("containerStatuses") or []
    ready = sum(1 for item in containers if item.get("ready") and _state(item, "running") is not None)
    restarts = sum(item.get("restartCount", 0) for item in containers)
    last = max(((item.get("lastState") or {}).get("terminated", {}).get("finishedAt", "") for item in containers), default="")
    shown = f"{restarts} ({ago(last)} ago)" if restarts and last else str(restarts)
    wide = [status.get("podIP") or NONE, spec.get("nodeName") or NONE, status.get("nominatedNodeName") or NONE, NONE]
    name = body["metadata"]["name"]
    return [name, f"{ready}/{len(spec.get('containers') or [])}", status_word(body), shown, born, *wide]
