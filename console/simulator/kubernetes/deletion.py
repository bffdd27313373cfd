"""What a delete does to an object: gone at once, or marked and waited for. Pure.

A pod is only marked: it stays, with its deadline, until the machine's kubelet has ended it and deletes it with grace 0.
A finalizer holds anything. This is the part that drains stand on, so it follows the real order closely.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.simulator.kubernetes.errors import ApiError, bad_request, conflict
from console.simulator.kubernetes.resources import Resource
from console.simulator.values import Json, instant, stamp


@dataclass(frozen=True)
class Options:
    """What of `DeleteOptions` is obeyed."""

    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None


@dataclass(frozen=True)
class Deletion:
    """`body` is the next state, or the last one when `gone`; None means nothing changes."""

    gone: bool
    body: Json | None


def options(body: Json, query: Mapping[str, str]) -> Options:
    """Read the options of a request; the query counts where the body is silent. Raises the API's 400."""
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise bad_request(f"gracePeriodSeconds: {grace!r} is no whole number") from None
    wanted = body.get("preconditions") or {}
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy")
    return Options(seconds, wanted.get("uid"), wanted.get("resourceVersion"), propagation)


def check(resource: Resource, body: Json, asked: Options) -> ApiError | None:
    """The conflict, if a precondition does not hold."""
    metadata = body["metadata"]
    if asked.uid is not None and asked.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({asked.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        return conflict(resource, metadata["name"], why, kind=resource.kind)
    if asked.version is not None and asked.version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({asked.version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
        return conflict(resource, metadata["name"], why, kind=resource.kind)
    return None


def pod_grace(body: Json, asked: int | None) -> int:
    """Seconds that a pod gets: none if it never reached a machine or has finished, else what was asked, else its own."""
    if not body["spec"].get("nodeName") or body["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    grace = body["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return max(1, int(grace)) if grace < 0 else int(grace)


def decide(resource: Resource, body: Json, asked: Options, now: datetime) -> Deletion:
    """What becomes of the object."""
    grace = pod_grace(body, asked.grace) if resource.plural == "pods" else 0
    held = bool(body["metadata"].get("finalizers")) or bool((body.get("spec") or {}).get("finalizers"))
    marked = _mark(resource, body, grace, now)
    if grace == 0 and not held:
        return Deletion(True, marked or {**body, "metadata": dict(body["metadata"])})
    return Deletion(False, marked)


def _mark(resource: Resource, body: Json, grace: int, now: datetime) -> Json | None:
    """The object with its deadline; None where it has one already that is no later."""
    metadata = body["metadata"]
    before = instant(metadata.get("deletionTimestamp"))
    if before is not None:
        old = metadata.get("deletionGracePeriodSeconds", 0)
        if grace >= old:
            return None
        deadline = before + timedelta(seconds=grace - old)
    else:
        deadline = now + timedelta(seconds=grace)
    changed = {**metadata, "deletionTimestamp": stamp(deadline), "deletionGracePeriodSeconds": grace}
    if resource.generation and before is None:
        changed["generation"] = metadata.get("generation", 0) + 1
    marked = {**body, "metadata": changed}
    if resource.plural == "namespaces":
        marked["status"] = {**body.get("status", {}), "phase": "Terminating"}
    return marked
