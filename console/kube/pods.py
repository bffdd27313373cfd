"""A pod's JSON as its shape: whose it is, what class of node it asks for, why it does not run, and how it ended.

Kubernetes tells these in several places and in words for machines; they are brought into one field each here, so that nobody
above reads conditions or label conventions.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from console.kube import marks
from console.kube.fields import Json, clean, flag, instant, mapping, mappings, number, pairs, parse_instant, text, texts, whole
from console.kube.shapes import ClassWish, PodShape

# The grace Kubernetes gives a pod that asks for none, in seconds (pod spec, terminationGracePeriodSeconds).
DEFAULT_GRACE = 30

# Longest sentence kept of why a pod does not run; the scheduler's own grow with the number of different obstacles.
WHY_CHARS = 500

# A tenant's word on one save: beyond a day or a petabyte it is a mistake, and is held to that.
LONGEST_SAVE, LARGEST_SAVE = 86_400.0, 10**15

# Labels by which a controller above the direct owner makes itself known on its pods.
TEMPLATE_HASH = "pod-template-hash"  # a Deployment's: its ReplicaSet's name is the Deployment's and this
RAY_KIND, RAY_NAME = "ray.io/originated-from-crd", "ray.io/originated-from-cr-name"  # KubeRay's, of a RayJob or RayService

# A container that waits for these is on its way; for anything else it is stuck.
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")

# `status.reason` of pods that a kubelet or controller ended for the node's sake (kubernetes/kubernetes#113278).
_FOR_THE_NODE = ("NodeShutdown", "Terminated", "NodeLost", "Preempting", "Shutdown")


def pod(raw: Json, meta: Json) -> PodShape:
    """One pod, whatever is missing or odd in it."""
    spec, status = mapping(raw, "spec"), mapping(raw, "status")
    notes = mapping(meta, "annotations")
    phase = text(status, "phase")
    owner_kind, owner_name = owner(meta)
    ended_at, exit_code = _end(status)
    grace = number(spec, "terminationGracePeriodSeconds")
    why, since = _why(spec, status)
    return PodShape(
        uid=text(meta, "uid"),
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        resource_version=text(meta, "resourceVersion"),
        node_name=text(spec, "nodeName"),
        phase=phase,
        owner_kind=owner_kind,
        owner_name=owner_name,
        daemonset=owner_kind == "DaemonSet",
        mirror=marks.MIRROR_ANNOTATION in notes,
        created_at=instant(meta, "creationTimestamp"),
        started_at=instant(status, "startTime"),
        ready=any(c.get("type") == "Ready" and c.get("status") == "True" for c in mappings(status, "conditions")),
        deletion_at=instant(meta, "deletionTimestamp"),
        deletion_grace=number(meta, "deletionGracePeriodSeconds"),
        grace_seconds=max(0, DEFAULT_GRACE if grace is None else grace),
        labels=pairs(meta, "labels"),
        last_checkpoint=parse_instant(text(notes, marks.LAST_CHECKPOINT)),
        finished=phase in ("Succeeded", "Failed"),
        ended_at=ended_at,
        exit_code=exit_code,
        reason=text(status, "reason"),
        gpus=_gpus(spec),
        prefers=pairs(spec, "nodeSelector"),
        finalizers=texts(meta, "finalizers"),
        wish=wish(spec),
        why=why,
        waits_since=since,
        disrupted=_disrupted(status),
        checkpoint_seconds=_held(text(notes, marks.CHECKPOINT_SECONDS), 0.1, LONGEST_SAVE, 1),
        checkpoint_bytes=_whole(_held(text(notes, marks.CHECKPOINT_BYTES), 1, LARGEST_SAVE)),
    )


def owner(meta: Json) -> tuple[str, str]:
    """Kind and name of what a person started, '' for a bare pod.

    A Deployment stands behind its ReplicaSets and a RayJob behind its RayCluster; both say so in labels of the pod, so nothing
    more needs to be read.
    """
    direct = next((o for o in mappings(meta, "ownerReferences") if flag(o, "controller")), {})
    kind, name, labels = text(direct, "kind"), text(direct, "name"), mapping(meta, "labels")
    ray_kind, ray_name = text(labels, RAY_KIND), text(labels, RAY_NAME)
    if kind in ("RayCluster", "Job") and ray_kind and ray_name:
        return ray_kind, ray_name
    end = f"-{text(labels, TEMPLATE_HASH)}"
    if kind == "ReplicaSet" and len(end) > 1 and name.endswith(end) and name != end:
        return "Deployment", name.removesuffix(end)
    return kind, name


def wish(spec: Json) -> ClassWish:
    """What the pod says of preemptible nodes: only there, rather there, never there, nothing, or what no node can meet.

    Preemptible nodes have no taint, so a pod that says nothing may land on one.
    """
    chosen = mapping(spec, "nodeSelector").get(marks.CLASS_LABEL)
    if chosen is not None:
        return "required" if chosen == marks.PREEMPTIBLE else "misaimed"
    affinity = mapping(mapping(spec, "affinity"), "nodeAffinity")
    terms = mappings(mapping(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms")
    said = {_term(term) for term in terms}
    if said == {True}:
        return "required"
    if said == {False}:
        return "refused"
    likes = mappings(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
    tolerates = any(text(item, "key") == marks.CLASS_LABEL for item in mappings(spec, "tolerations"))
    liked = any(_term(mapping(like, "preference")) for like in likes)
    return "preferred" if True in said or liked or tolerates else ""


def _term(term: Json) -> bool | None:
    """Whether a term wants preemptible nodes (True), keeps off them (False), or does not speak of them."""
    found = None
    for rule in mappings(term, "matchExpressions"):
        if text(rule, "key") != marks.CLASS_LABEL:
            continue
        operator, named = text(rule, "operator"), marks.PREEMPTIBLE in texts(rule, "values")
        if operator == "DoesNotExist" or (operator == "NotIn" and named) or (operator == "In" and not named):
            return False
        if operator in ("Exists", "In"):
            found = True
    return found


def _why(spec: Json, status: Json) -> tuple[str, datetime | None]:
    """Why it does not run and since when: the scheduler's words while it has no node, then what a container waits for."""
    if not text(spec, "nodeName"):
        for condition in mappings(status, "conditions"):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                said = text(condition, "message", WHY_CHARS) or text(condition, "reason")
                return said, instant(condition, "lastTransitionTime")
        return "", None
    for container in (*mappings(status, "initContainerStatuses"), *mappings(status, "containerStatuses")):
        waits = mapping(mapping(container, "state"), "waiting")
        reason = text(waits, "reason")
        if reason and reason not in _ON_ITS_WAY:
            # The message of a crash loop counts its back-off up, which is a heartbeat.
            more = "" if reason == "CrashLoopBackOff" else text(waits, "message", WHY_CHARS)
            return clean(f"{reason}: {more}" if more else reason, WHY_CHARS), None
    return "", None


def _disrupted(status: Json) -> str:
    """For whose sake it ended, where that was not its own: the reason Kubernetes gives, or ''."""
    for condition in mappings(status, "conditions"):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return text(condition, "reason") or "DisruptionTarget"
    reason = text(status, "reason")
    return reason if reason in _FOR_THE_NODE else ""


def _held(told: str, least: float, most: float, places: int = 0) -> float | None:
    """A tenant's number, held to what can be; None for what is no number or not above zero."""
    try:
        found = float(told)
    except ValueError:
        return None
    return round(max(least, min(found, most)), places) if math.isfinite(found) and found > 0 else None


def _whole(found: float | None) -> int | None:
    return None if found is None else int(found)


def _end(status: Json) -> tuple[datetime | None, int | None]:
    """When the last container to end ended, and the exit code that tells the story: the first failure's, else the last one's."""
    states = (mapping(entry, "state") for entry in mappings(status, "containerStatuses"))
    ends = [mapping(state, "terminated") for state in states if mapping(state, "terminated")]
    if not ends:
        return None, None
    never = datetime.max.replace(tzinfo=UTC)
    ends.sort(key=lambda end: instant(end, "finishedAt") or never)
    codes = [number(end, "exitCode") for end in ends]
    return instant(ends[-1], "finishedAt"), next((code for code in codes if code), codes[-1])


def _gpus(spec: Json) -> int:
    """GPUs the scheduler sets aside: the sum of the containers, or an init container's where that is more."""
    needs = [_container_gpus(container) for container in mappings(spec, "containers")]
    first = [_container_gpus(container) for container in mappings(spec, "initContainers")]
    return max(sum(needs), max(first, default=0))


def _container_gpus(container: Json) -> int:
    # Of an extended resource request and limit are equal, and the limit is the one people write.
    return whole(mapping(mapping(container, "resources"), "limits"), marks.GPU_RESOURCE)
