"""The columns of `kubectl get`: kubectl prints what the server says, so the server has to say it as the real one does."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.simulator.kubernetes.pod_columns import pod_cells
from console.simulator.values import Json, instant

NONE, UNKNOWN = "<none>", "<unknown>"


def duration(seconds: float) -> str:
    """A length of time as kubectl writes it: 90s, 5m30s, 3h, 2d4h, 400d."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        rest = whole % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = whole // 3600
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{hours // 24}d{hours % 24}h" if hours % 24 else f"{hours // 24}d"
    if hours < 24 * 365 * 2:
        return f"{hours // 24}d"
    return f"{hours // 24 // 365}y"


def age(value: object, now: datetime) -> str:
    """How long ago an instant was."""
    at = instant(value)
    return UNKNOWN if at is None else duration((now - at).total_seconds())


@dataclass(frozen=True)
class Columns:
    """`heads` are (name, type, format, priority); priority 1 is shown by `-o wide` only."""

    heads: tuple[tuple[str, str, str, int], ...]
    cells: Callable[[Json, datetime], list[Any]]


def definitions(columns: Columns) -> list[Json]:
    """The heads as a Table carries them."""
    return [
        {"name": name, "type": kind, "format": shape, "description": f"{name} of the object.", "priority": priority}
        for name, kind, shape, priority in columns.heads
    ]


def _heads(*plain: str, wide: tuple[str, ...] = (), integers: tuple[str, ...] = ()) -> tuple[tuple[str, str, str, int], ...]:
    return tuple(
        (name, "integer" if name in integers else "string", "name" if name == "Name" else "", int(name in wide))
        for name in (*plain, *wide)
    )


def _name(body: Json) -> str:
    return str(body["metadata"]["name"])


def _born(body: Json, now: datetime) -> str:
    return age(body["metadata"].get("creationTimestamp"), now)


def _node(body: Json, now: datetime) -> list[Any]:
    status = body.get("status", {})
    ready = [item["status"] for item in status.get("conditions") or [] if item["type"] == "Ready"]
    states = ["Ready" if state == "True" else "NotReady" for state in ready] or ["Unknown"]
    if body.get("spec", {}).get("unschedulable"):
        states.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    labels = body["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix)
    info = status.get("nodeInfo", {})
    addresses = {item["type"]: item["address"] for item in status.get("addresses") or []}
    wide = [addresses.get("InternalIP", NONE), addresses.get("ExternalIP", NONE)]
    wide += [info.get(key) or UNKNOWN for key in ("osImage", "kernelVersion", "containerRuntimeVersion")]
    return [_name(body), ",".join(states), ",".join(roles) or NONE, _born(body, now), info.get("kubeletVersion", ""), *wide]


def _event(body: Json, now: datetime) -> list[Any]:
    series = body.get("series") or {}
    first = body.get("firstTimestamp") or body.get("eventTime")
    last = series.get("lastObservedTime") or body.get("lastTimestamp") or first
    involved = body.get("involvedObject") or {}
    source = body.get("source") or {}
    parts = [source.get("component") or body.get("reportingComponent"), source.get("host") or body.get("reportingInstance")]
    about = f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"
    return [
        age(last, now), body.get("type", ""), body.get("reason", ""), about,
        involved.get("fieldPath", ""), ", ".join(filter(None, parts)), str(body.get("message", "")).strip(), age(first, now),
        series.get("count") or body.get("count") or 1, _name(body),
    ]  # fmt: skip


def _template(body: Json) -> list[str]:
    containers = body["spec"]["template"]["spec"].get("containers") or []
    labels = (body["spec"].get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE
    return [",".join(item["name"] for item in containers), ",".join(item["image"] for item in containers), selector]


def _daemon_set(body: Json, now: datetime) -> list[Any]:
    status = body.get("status", {})
    counts = [
        status.get(key, 0)
        for key in (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        )
    ]
    aim = body["spec"]["template"]["spec"].get("nodeSelector") or {}
    shown = ",".join(f"{key}={value}" for key, value in sorted(aim.items())) or NONE
    return [_name(body), *counts, shown, _born(body, now), *_template(body)]


def _replica_set(body: Json, now: datetime) -> list[Any]:
    status = body.get("status", {})
    counts = [body["spec"].get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(body), *counts, _born(body, now), *_template(body)]


def _deployment(body: Json, now: datetime) -> list[Any]:
    status = body.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{body['spec'].get('replicas', 0)}"
    counts = [status.get(key, 0) for key in ("updatedReplicas", "availableReplicas")]
    return [_name(body), ready, *counts, _born(body, now), *_template(body)]


def _job(body: Json, now: datetime) -> list[Any]:
    status, spec = body.get("status", {}), body["spec"]
    state = next((item["type"] for item in status.get("conditions") or [] if item["status"] == "True"), "Running")
    started, ended = instant(status.get("startTime")), instant(status.get("completionTime"))
    took = duration(((ended or now) - started).total_seconds()) if started else ""
    done = f"{status.get('succeeded', 0)}/{spec.get('completions') or 1}"
    return [_name(body), state, done, took, _born(body, now), *_template(body)]


def _budget(body: Json, now: datetime) -> list[Any]:
    spec = body["spec"]
    limits = [str(spec.get(key, "N/A")) for key in ("minAvailable", "maxUnavailable")]
    return [_name(body), *limits, body["status"].get("disruptionsAllowed", 0), _born(body, now)]


def _secret(body: Json, now: datetime) -> list[Any]:
    return [_name(body), body.get("type", ""), _data(body), _born(body, now)]


def _data(body: Json) -> int:
    return len(body.get("data") or {}) + len(body.get("binaryData") or {})


TEMPLATE = ("Containers", "Images", "Selector")
COLUMNS = {
    "nodes": Columns(
        _heads(
            "Name", "Status", "Roles", "Age", "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node,
    ),
    "pods": Columns(
        _heads("Name", "Ready", "Status", "Restarts", "Age", wide=("IP", "Node", "Nominated Node", "Readiness Gates")),
        lambda body, now: pod_cells(body, _born(body, now), lambda at: age(at, now)),
    ),
    "events": Columns(
        (
            ("Last Seen", "string", "", 0), ("Type", "string", "", 0), ("Reason", "string", "", 0), ("Object", "string", "", 0),
            ("Subobject", "string", "", 1), ("Source", "string", "", 1), ("Message", "string", "", 0),
            ("First Seen", "string", "", 1), ("Count", "string", "", 1), ("Name", "string", "name", 1),
        ),
        _event,
    ),
    "namespaces": Columns(
        _heads("Name", "Status", "Age"), lambda body, now: [_name(body), body["status"]["phase"], _born(body, now)]
    ),
    "secrets": Columns(
        _heads("Name", "Type", "Data", "Age"), _secret
    ),
    "configmaps": Columns(_heads("Name", "Data", "Age"), lambda body, now: [_name(body), _data(body), _born(body, now)]),
    "daemonsets.apps": Columns(
        _heads(
            "Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age", wide=TEMPLATE,
            integers=("Desired", "Current", "Ready", "Up-to-date", "Available"),
        ),
        _daemon_set,
    ),
    "replicasets.apps": Columns(
        _heads("Name", "Desired", "Current", "Ready", "Age", wide=TEMPLATE, integers=("Desired", "Current", "Ready")),
        _replica_set,
    ),
    "deployments.apps": Columns(
        _heads("Name", "Ready", "Up-to-date", "Available", "Age", wide=TEMPLATE, integers=("Up-to-date", "Available")),
        _deployment,
    ),
    "jobs.batch": Columns(_heads("Name", "Status", "Completions", "Duration", "Age", wide=TEMPLATE), _job),
    "poddisruptionbudgets.policy": Columns(
        _heads("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age", integers=("Allowed Disruptions",)),
        _budget,
    ),
    "leases.coordination.k8s.io": Columns(
        _heads("Name", "Holder", "Age"),
        lambda body, now: [_name(body), body.get("spec", {}).get("holderIdentity", ""), _born(body, now)],
    ),
}  # fmt: skip
