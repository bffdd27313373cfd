"""A node with a machine behind it, real or simulated, in the rows as the watch would have written them."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx

from console.clusters.models import Cluster, Node
from console.clusters.secrets import seal
from console.kube.marks import CLASS_LABEL, MACHINE_LABEL, PREEMPTIBLE
from tests.capacity.drain_api import add_node, fleet
from tests.controlplane.plane import Plane
from tests.machines.fates import Fate
from tests.machines.machine import Machine
from tests.simulator.conftest import Api, Simulation, eventually

Json = dict[str, Any]
MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Word:
    """One line of a container's own."""

    at: datetime
    code: int | None


@dataclass
class World:
    """One cluster with one preemptible node. `terminate` is the provider's, by node; `written` where real containers write."""

    cluster: Cluster
    node: Node
    api: Api
    namespace: str
    terminate: Callable[[str], None] | None
    written: Path | None
    mirror: Callable[[Json], str]
    nowhere: str = "registry.example/never:1"

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def run(self, fate: Fate) -> None:
        """Give the node a pod."""
        answer = self.api.post(self.pods, fate.body(self.node.name, str(self.written or "/out"), self.nowhere))
        assert answer.status_code == 201, answer.text

    def running(self, name: str) -> bool:
        """Whether all its containers run."""
        status = self.api.get(f"{self.pods}/{name}").json().get("status", {})
        states = [one.get("state", {}) for one in status.get("containerStatuses") or []]
        return bool(states) and all("running" in state for state in states)

    def said(self, name: str) -> dict[str, Word]:
        """What real containers wrote of themselves: `started` and `told` of the first, `ended` of the last, by container."""
        assert self.written is not None
        found: dict[str, Word] = {}
        for file in sorted(self.written.glob(f"{name}.*")):
            for line in file.read_text().splitlines():
                word, up, *code = line.split()
                at = datetime.fromtimestamp(_booted() + float(up), UTC)
                known = found.get(word)
                if known is None or (word == "ended") == (at > known.at):
                    found[word] = Word(at, int(code[0]) if code else None)
        return found

    def daemon(self, body: Json) -> None:
        """A DaemonSet for this node alone."""
        labels = {"app": "stays"}
        template = {"metadata": {"labels": labels}, "spec": daemon_spec(body["spec"], self.node.name)}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        answer = self.api.post(
            f"/apis/apps/v1/namespaces/{self.namespace}/daemonsets", {"metadata": {"name": "stays"}, "spec": spec}
        )
        assert answer.status_code == 201, answer.text

    def job(self, name: str, pods: int, body: Json) -> None:
        """A Job whose pods stand on nodes of their own."""
        kept = {key: value for key, value in body["spec"].items() if key != "nodeName"}
        labels = {"job-name": name}
        apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        spec = {**kept, "affinity": affinity, "nodeSelector": {CLASS_LABEL: PREEMPTIBLE}}
        template = {"metadata": {"labels": labels}, "spec": spec}
        wanted = {"parallelism": pods, "completions": pods, "template": template}
        answer = self.api.post(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", {"metadata": {"name": name}, "spec": wanted})
        assert answer.status_code == 201, answer.text

    def pods_of(self, job: str) -> set[str]:
        """The names of a Job's pods."""
        items = self.api.get(f"{self.pods}?labelSelector=job-name%3D{job}").json()["items"]
        return {item["metadata"]["name"] for item in items}

    def here(self) -> set[str]:
        """The names of the node's pods."""
        items = self.api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.node.name}").json()["items"]
        return {item["metadata"]["name"] for item in items}

    def daemons(self) -> set[str]:
        """Those of them that are of `daemon`."""
        return {name for name in self.here() if name.startswith("stays-") and self.running(name)}

    @contextmanager
    def watched(self) -> Iterator["Watched"]:
        """Everything a watch sees of the namespace's pods meanwhile."""
        start = self.api.get(self.pods).json()["metadata"]["resourceVersion"]
        seen = Watched()
        reader = threading.Thread(target=seen.read, args=(self.api, self.pods, start), daemon=True)
        reader.start()
        yield seen


@dataclass
class Watched:
    """What a watch said, by pod."""

    events: dict[str, list[tuple[str, Json]]] = field(default_factory=dict)

    def read(self, api: Api, path: str, version: str) -> None:
        """Until the server ends the stream."""
        query: Json = {"watch": "1", "timeoutSeconds": 180, "resourceVersion": version}
        with suppress(httpx.TransportError), api.http.stream("GET", api.url + path, params=query, timeout=200) as answer:
            for line in answer.iter_lines():
                event = json.loads(line)
                name = event["object"]["metadata"].get("name", "")
                self.events.setdefault(name, []).append((event["type"], event["object"]))

    def steps(self, name: str) -> list[str]:
        """A pod's life from when it is told, in words, each state once."""
        words: list[str] = []
        for kind, body in self.events.get(name, ()):
            word = "gone" if kind == "DELETED" else _word(body)
            if "deletionTimestamp" in body["metadata"] and words[-1:] != [word]:
                words.append(word)
        return words


def _word(body: Json) -> str:
    states = [_state(one.get("state") or {}) for one in body["status"].get("containerStatuses") or []]
    told = " told" if "deletionTimestamp" in body["metadata"] else ""
    return f"{body['status']['phase']}{told}: {', '.join(states) or 'nothing yet'}"


def _state(state: Json) -> str:
    if "terminated" in state:
        return f"exit {state['terminated']['exitCode']}"
    return "running" if "running" in state else "waiting"


def daemon_spec(spec: Json, node: str) -> Json:
    """A pod's spec for a DaemonSet that wants one node only."""
    kept = {key: value for key, value in spec.items() if key not in ("nodeName", "restartPolicy")}
    return {**kept, "nodeSelector": {"kubernetes.io/hostname": node}}


def _booted() -> float:
    """When this machine started, to the hundredth of a second, as containers count from it."""
    return datetime.now(UTC).timestamp() - float(Path("/proc/uptime").read_text().split()[0])


def a_node(cluster: Cluster, api: Api, name: str) -> Node:
    """The rows of a node that is there, and its mark that it is ours."""
    node = add_node(cluster, name)
    assert node.machine_id == machine_id(cluster, name)
    answer = api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {MACHINE_LABEL: str(node.machine_id)}}})
    node.uid = answer.json()["metadata"]["uid"]
    node.save()
    return node


def machine_id(cluster: Cluster, name: str) -> UUID:
    """The id under which `add_node` knows its machine."""
    return uuid5(cluster.pk, name)


def real(plane: Plane, machines: Sequence[Machine], namespace: str, nowhere: str) -> World:
    """Machines of ours with real kubelets; their provider stops them. The world's node is the first one's."""
    cluster = fleet(cluster_name="real")
    cluster.kubeconfig = seal(plane.kubeconfig.read_text())
    cluster.save()
    api = Api(plane.url, token=plane.token, ca=plane.authority)
    nodes = [a_node(cluster, api, machine.name) for machine in machines]
    by_name = {machine.name: machine for machine in machines}
    first = machines[0]
    return World(cluster, nodes[0], api, namespace, lambda name: by_name[name].stop(), first.logs, first.static_pod, nowhere)


def simulated(simulation: Simulation, name: str) -> World:
    """A machine of the simulator's, which is its provider too."""
    cluster = fleet(cluster_name="simulated")
    body = {"id": str(cluster.pk), "name": "simulated", "region": "eu-north-1"}
    made = simulation.control("POST", "clusters", body).json()
    cluster.kubeconfig = seal(made["kubeconfig"])
    cluster.save()
    api = Api(made["server"], key=str(cluster.pk))
    eventually(lambda: api.get("/api/v1/namespaces/monitoring").status_code == 200)
    simulation.node(api, name, token=str(machine_id(cluster, name)))
    node = a_node(cluster, api, name)

    def mirror(body: Json) -> str:
        name = f"{body['metadata']['name']}-{node.name}"
        metadata = {"name": name, "annotations": {MIRROR: "its file's digest"}}
        spec = body["spec"] | {"nodeName": node.name}
        answer = api.post("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
        assert answer.status_code == 201, answer.text
        return name

    return World(cluster, node, api, "default", None, None, mirror)
