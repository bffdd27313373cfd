"""A pod's status through its life on a machine, as a kubelet writes it. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime

from console.simulator.values import Json, stamp

State = Callable[[str], Json]  # of a container, by its name


def _conditions(pod: Json, now: datetime, *, ready: bool, reason: str = "") -> list[Json]:
    """The five conditions; one that does not change keeps the time of its last change."""
    before = {item["type"]: item for item in pod["status"].get("conditions") or []}
    started = ready or bool(reason)
    wanted = {
        "PodReadyToStartContainers": started,
        "Initialized": True,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": True,
    }
    result = [item for kind, item in before.items() if kind not in wanted]
    for kind, good in wanted.items():
        state = "True" if good else "False"
        old = before.get(kind)
        if old is not None and old["status"] == state:
            result.append(old)
            continue
        fresh: Json = {"type": kind, "status": state, "lastProbeTime": None, "lastTransitionTime": stamp(now)}
        if not good and kind in ("Ready", "ContainersReady"):
            fresh |= _why(pod, reason)
        result.append(fresh)
    return result


def _why(pod: Json, reason: str) -> Json:
    names = " ".join(container["name"] for container in pod["spec"]["containers"])
    if reason:
        return {"reason": reason}
    return {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}


def _container(spec: Json, state: Json, *, ready: bool, number: str) -> Json:
    image, identity = spec["image"], f"containerd://{number}"
    body: Json = {"name": spec["name"], "image": image, "imageID": "", "lastState": {}, "ready": ready, "restartCount": 0}
    if "waiting" not in state:
        body |= {"containerID": identity, "imageID": f"sim/{image}"}
    return body | {"started": ready, "state": state}


def _whole(pod: Json, phase: str, state: State, now: datetime, *, ready: bool, host: str, ip: str, reason: str = "") -> Json:
    number = pod["metadata"]["uid"].replace("-", "") * 2
    containers = [_container(item, state(item["name"]), ready=ready, number=number) for item in pod["spec"]["containers"]]
    status: Json = {
        "phase": phase, "conditions": _conditions(pod, now, ready=ready, reason=reason), "hostIP": host,
        "hostIPs": [{"ip": host}], "startTime": pod["status"].get("startTime") or stamp(now), "containerStatuses": containers,
    }  # fmt: skip
    if ip:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    return status


def creating(pod: Json, host: str, now: datetime) -> Json:
    """Accepted by the machine; its image and sandbox are on the way."""
    return _whole(pod, "Pending", lambda _: {"waiting": {"reason": "ContainerCreating"}}, now, ready=False, host=host, ip="")


def running(pod: Json, host: str, ip: str, now: datetime) -> Json:
    """Its containers run."""
    return _whole(pod, "Running", lambda _: {"running": {"startedAt": stamp(now)}}, now, ready=True, host=host, ip=ip)


def ended(pod: Json, codes: Mapping[str, int], host: str, now: datetime) -> Json:
    """Its containers have ended: still in the list, with exit code and time, until the pod is deleted."""
    identity = f"containerd://{pod['metadata']['uid'].replace('-', '') * 2}"
    started = began(pod)

    def state(name: str) -> Json:
        code = codes[name]
        why = "Completed" if code == 0 else "Error"
        end: Json = {"exitCode": code, "reason": why, "finishedAt": stamp(now), "containerID": identity}
        return {"terminated": end | {"startedAt": started or stamp(now)}}

    phase, reason = ("Failed", "PodFailed") if any(codes.values()) else ("Succeeded", "PodCompleted")
    ip = pod["status"].get("podIP", "")
    return _whole(pod, phase, state, now, ready=False, host=host, ip=ip, reason=reason)


def began(pod: Json) -> str | None:
    """When its container began to run, if it has."""
    for item in pod["status"].get("containerStatuses") or []:
        running_state = (item.get("state") or {}).get("running")
        if running_state:
            return str(running_state["startedAt"])
    return None
