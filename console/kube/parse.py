"""From an API server's JSON to our shapes.

One function a kind (pods have their own file). They take whatever comes: an unknown field is ignored, a missing one is
empty. Only an object without a name and a uid is refused, because nothing could be done with it that would not hit another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from console.kube import marks
from console.kube.errors import Garbage
from console.kube.fields import (
    ANNOTATION_CHARS,
    MESSAGE_CHARS,
    Json,
    flag,
    instant,
    mapping,
    mappings,
    number,
    pairs,
    text,
    texts,
    whole,
)
from console.kube.pods import pod
from console.kube.shapes import (
    BudgetShape,
    Condition,
    EventShape,
    Kind,
    LeaseShape,
    NamespaceShape,
    NodeShape,
    Requirement,
    Shape,
    Taint,
)

# A clock this much before ours is ordinary; an Event from further ahead is marked as from the future.
_SKEW = timedelta(seconds=5)

_READY = {"True": True, "False": False}


def shape(kind: Kind, raw: object, now: datetime) -> Shape:
    """One object of `kind` as its shape. `now` is our clock at receipt. Raises Garbage for an object without identity."""
    if not isinstance(raw, Mapping):
        raise Garbage(f"One of the {kind} is no JSON object.")
    meta = mapping(raw, "metadata")
    if not text(meta, "uid") or not text(meta, "name"):
        raise Garbage(f"One of the {kind} has no name or no uid.")
    return _event(raw, meta, now) if kind == "events" else _SHAPES[kind](raw, meta)


def _node(raw: Json, meta: Json) -> NodeShape:
    spec, status = mapping(raw, "spec"), mapping(raw, "status")
    conditions = tuple(_condition(entry) for entry in mappings(status, "conditions"))
    ready = next((entry for entry in conditions if entry.type == "Ready"), None)
    return NodeShape(
        uid=text(meta, "uid"),
        name=text(meta, "name"),
        resource_version=text(meta, "resourceVersion"),
        created_at=instant(meta, "creationTimestamp"),
        labels=pairs(meta, "labels"),
        annotations=pairs(meta, "annotations", ANNOTATION_CHARS),
        taints=tuple(Taint(text(t, "key"), text(t, "value"), text(t, "effect")) for t in mappings(spec, "taints")),
        unschedulable=flag(spec, "unschedulable"),
        ready=_READY.get(ready.status) if ready else None,
        ready_since=ready.since if ready else None,
        gpus=whole(mapping(status, "allocatable"), marks.GPU_RESOURCE),
        kubelet_version=text(mapping(status, "nodeInfo"), "kubeletVersion"),
        internal_ip=_address(status, "InternalIP"),
        deletion_at=instant(meta, "deletionTimestamp"),
        finalizers=texts(meta, "finalizers"),
        conditions=conditions,
    )


def _condition(raw: Json) -> Condition:
    return Condition(
        type=text(raw, "type"),
        status=text(raw, "status"),
        reason=text(raw, "reason"),
        message=text(raw, "message", MESSAGE_CHARS),
        since=instant(raw, "lastTransitionTime"),
    )


def _address(status: Json, kind: str) -> str:
    return next((text(a, "address") for a in mappings(status, "addresses") if a.get("type") == kind), "")


def _event(raw: Json, meta: Json, now: datetime) -> EventShape:
    series, involved = mapping(raw, "series"), mapping(raw, "involvedObject")
    told = instant(raw, "eventTime"), instant(series, "lastObservedTime"), instant(raw, "lastTimestamp")
    seen = [at for at in told if at] or [instant(meta, "creationTimestamp") or now]
    return EventShape(
        uid=text(meta, "uid"),
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        resource_version=text(meta, "resourceVersion"),
        type="Warning" if raw.get("type") == "Warning" else "Normal",
        reason=text(raw, "reason"),
        message=text(raw, "message", MESSAGE_CHARS),
        count=max(1, number(series, "count") or number(raw, "count") or 1),
        first_at=instant(raw, "firstTimestamp") or min(seen),
        last_at=max(seen),
        at=seen[0],
        from_future=seen[0] > now + _SKEW,
        reporting_component=text(raw, "reportingComponent") or text(mapping(raw, "source"), "component"),
        involved_kind=text(involved, "kind"),
        involved_name=text(involved, "name"),
        involved_namespace=text(involved, "namespace"),
        involved_uid=text(involved, "uid"),
    )


def _budget(raw: Json, meta: Json) -> BudgetShape:
    selector = mapping(mapping(raw, "spec"), "selector")
    return BudgetShape(
        uid=text(meta, "uid"),
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        resource_version=text(meta, "resourceVersion"),
        match_labels=pairs(selector, "matchLabels"),
        match_expressions=tuple(
            Requirement(text(line, "key"), text(line, "operator"), texts(line, "values"))
            for line in mappings(selector, "matchExpressions")
        ),
        disruptions_allowed=number(mapping(raw, "status"), "disruptionsAllowed") or 0,
    )


def _lease(raw: Json, meta: Json) -> LeaseShape:
    return LeaseShape(
        uid=text(meta, "uid"),
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        resource_version=text(meta, "resourceVersion"),
        renew_time=instant(mapping(raw, "spec"), "renewTime"),
    )


def _namespace(raw: Json, meta: Json) -> NamespaceShape:
    return NamespaceShape(
        uid=text(meta, "uid"),
        name=text(meta, "name"),
        resource_version=text(meta, "resourceVersion"),
        phase=text(mapping(raw, "status"), "phase"),
    )


_SHAPES: dict[Kind, Callable[[Json, Json], Shape]] = {
    "nodes": _node,
    "pods": pod,
    "poddisruptionbudgets": _budget,
    "leases": _lease,
    "namespaces": _namespace,
}
