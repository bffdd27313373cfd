"""Events as kubelet, scheduler and controllers write them, each in the form of its own recorder."""

import time
from datetime import datetime

from console.simulator.machines.client import Call
from console.simulator.values import Json, micro_stamp, stamp


def _about(body: Json, kind: str, *, node_uid: bool = False) -> Json:
    metadata = body["metadata"]
    uid = metadata["uid"] if kind == "Pod" or node_uid else metadata["name"]
    about = {"kind": kind, "name": metadata["name"], "uid": uid}
    if kind == "Pod":
        about |= {"namespace": metadata["namespace"], "apiVersion": "v1", "resourceVersion": metadata["resourceVersion"]}
    return about


# Its name ends in the time, as recorders do it, so that a list of Events is in their order.
def _call(about: Json, event: Json) -> Call:
    namespace = about.get("namespace", "default")
    metadata = {"name": f"{about['name']}.{time.time_ns():x}", "namespace": namespace}
    return Call("POST", f"/api/v1/namespaces/{namespace}/events", {"metadata": metadata, "involvedObject": about, **event})


def _legacy(about: Json, component: str, host: str, reason: str, message: str, kind: str, now: datetime) -> Call:
    source = {"component": component, "host": host} if host else {"component": component}
    event = {"reason": reason, "message": message, "source": source, "firstTimestamp": stamp(now), "lastTimestamp": stamp(now)}
    return _call(about, event | {"count": 1, "type": kind, "reportingComponent": component, "reportingInstance": host})


def kubelet_of_node(node: Json, reason: str, message: str, now: datetime) -> Call:
    """The kubelet about its own node: the uid it gives is the node's name, as the real one does."""
    return _legacy(_about(node, "Node"), "kubelet", node["metadata"]["name"], reason, message, "Normal", now)


def kubelet_of_pod(pod: Json, reason: str, message: str, now: datetime, *, kind: str = "Normal") -> Call:
    """The kubelet about a container of a pod."""
    about = _about(pod, "Pod")
    if reason in ("Pulled", "Created", "Started", "Killing"):
        about["fieldPath"] = f"spec.containers{{{pod['spec']['containers'][0]['name']}}}"
    return _legacy(about, "kubelet", pod["spec"]["nodeName"], reason, message, kind, now)


def node_controller(node: Json, reason: str, message: str, now: datetime) -> Call:
    """The node controller about a node."""
    return _legacy(_about(node, "Node", node_uid=True), "node-controller", "", reason, message, "Normal", now)


def scheduler(pod: Json, reason: str, message: str, now: datetime) -> Call:
    """The scheduler about a pod: events.k8s.io's kind, so `eventTime` and no count."""
    failed = reason == "FailedScheduling"
    event: Json = {
        "reason": reason, "message": message, "type": "Warning" if failed else "Normal", "eventTime": micro_stamp(now),
        "action": "Scheduling" if failed else "Binding", "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler-sim", "firstTimestamp": None, "lastTimestamp": None, "source": {},
    }  # fmt: skip
    return _call(_about(pod, "Pod"), event)
