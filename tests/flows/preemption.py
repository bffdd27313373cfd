"""A preemption of whole clusters and its refill, seen from outside: the simulator's APIs and log, and the ledger's tables."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg

from tests.flows.conftest import cluster_row
from tests.installation import Installation

REGION, GPU_TYPE, STEP = "eu-north-1", "H100_SXM", 8
Rows = list[dict[str, Any]]
LOOK = 0.3  # seconds between two looks of the witness


def until(seconds: float, found: Callable[[], Any], every: float = 0.02) -> Any:
    """What `found` gives once it gives something; None when the time is over. A server that is away just now gives nothing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if result := found():
                return result
        except (psycopg.OperationalError, httpx.HTTPError):
            pass
        time.sleep(every)
    return None


@dataclass
class Preemption:
    """Machines of some clusters, asked back by other tenants' demand all at once. `wrong` collects broken promises."""

    here: Installation
    targets: dict[str, int]  # machines by cluster name
    marker: str
    clusters: dict[str, str] = field(default_factory=dict)  # id by name
    tokens: set[str] = field(default_factory=set)  # of all machines before
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)  # machines that will go, by node name
    hangs: str = ""  # token of the one that dies
    uids: set[str] = field(default_factory=set)
    pods: set[tuple[str, str, str]] = field(default_factory=set)  # cluster, namespace, name
    told: set[tuple[str, str, str]] = field(default_factory=set)
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    gone_at: datetime | None = None
    wrong: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return sum(self.targets.values())

    # The scene

    def prepare(self) -> None:
        """Every cluster has what it asks for; of two nodes a pod takes its time, and one of them is going to die."""
        self.demand(0)
        for name, machines in self.targets.items():
            cluster = self.clusters[name] = str(cluster_row(self.here, name)["id"])
            body = {"num_preemptible_gpus": machines * STEP}
            self.here.api("PUT", f"/v1/compute/clusters/{cluster}", body).raise_for_status()
        assert until(60, self.full, 0.2), self.here.rows("SELECT * FROM clusters_machine WHERE state <> 'gone'")
        assert until(20, lambda: not self.rows("SELECT 1 FROM capacity_wait"), 0.2), "somebody still waits"
        self.tokens = set(self.machines())
        self.taken = {one["node_name"]: one for one in self.held() if one["cluster_id"] in self.clusters.values()}
        hang, late = [name for name, one in self.taken.items() if one["cluster_id"] == self.clusters["aurora-train"]][:2]
        self.hangs = self.taken[hang]["token"]
        for node in (hang, late):
            self._pod(f"late-{self.marker}-{node}", node, annotations={"simulator.halftide.io/exit-seconds": "8"})
        assert until(20, self._calm, 0.3), "no pods came to rest"
        nodes = [node for cluster in self.clusters.values() for node in self.items(cluster, "nodes")]
        self.uids = {node["metadata"]["uid"] for node in nodes if node["metadata"]["name"] in self.taken}
        assert len(self.taken) == len(self.uids) == self.number, self.taken

    def _calm(self) -> bool:
        """All pods of the nodes that will go run, twice in a row the same."""
        before = set(self.pods)
        self.pods = set()
        for cluster in self.clusters.values():
            for pod in self.items(cluster, "pods"):
                owners = [owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())]
                if pod["spec"].get("nodeName") in self.taken and "DaemonSet" not in owners:
                    if pod["status"].get("phase") != "Running":
                        return False
                    self.pods.add((cluster, pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return bool(self.pods) and self.pods == before

    def _pod(self, name: str, node: str, **metadata: Any) -> None:
        container = {"name": "main", "image": "registry.example/test:1"}
        spec = {"nodeName": node, "terminationGracePeriodSeconds": 300, "containers": [container]}
        body = {"metadata": {"name": name, "namespace": "training", **metadata}, "spec": spec}
        self.kube("POST", self.clusters["aurora-train"], "/api/v1/namespaces/training/pods", body)

    def begin(self) -> None:
        """All at once. One has just died without a word, so that its pods never stop. The first write to each node takes a
        second, so that a kill can hit it on its way.
        """
        slow = {"kind": "delay", "verbs": ["patch"], "resources": ["nodes"], "seconds": 1, "for_seconds": 6}
        for cluster in self.clusters.values():
            self.here.control("POST", "faults", {"cluster_id": cluster, **slow})
        self.here.control("POST", f"machines/{self.hangs}/lose")
        self.began = datetime.now(UTC)
        [standard] = self.here.rows(
            "SELECT count(*) AS machines FROM clusters_machine WHERE region_id = %s AND gpu_type_id = %s"
            " AND compute_class = 'standard' AND state NOT IN ('gone', 'given_up')",
            REGION,
            GPU_TYPE,
        )
        self.demand(int(self.here.control("GET", f"pools/{REGION}/{GPU_TYPE}")["total"]) - int(standard["machines"]))

    def give_back(self) -> None:
        """The other tenants leave, all of them: more is free than is asked for."""
        self.demand(0)

    def mark(self, number: int) -> None:
        """An Event of somebody else's, in the middle of the trouble."""
        name = f"marker-{self.marker}-{number}"
        until(15, lambda: self._marked(name), 0.2)

    def _marked(self, name: str) -> bool:
        cluster = self.clusters["aurora-train"]
        node = next(node["metadata"] for node in self.items(cluster, "nodes") if node["metadata"]["name"].startswith("gpu-dp-"))
        about = {"kind": "Node", "name": node["name"], "uid": node["uid"]}
        said = {"reason": "Marker", "message": name, "type": "Normal", "count": 1}
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, **said}
        return bool(self.kube("POST", cluster, "/api/v1/namespaces/default/events", body))

    # What is seen

    def drains(self, *states: str) -> Rows:
        """Of this preemption, in any of these states."""
        query = "SELECT * FROM capacity_drain WHERE node_uid = ANY(%s) AND (state = ANY(%s) OR %s)"
        return self.rows(query, list(self.uids), list(states), not states)

    def waits(self) -> Rows:
        query = "SELECT w.* FROM capacity_wait w JOIN clusters_cluster c ON c.id = w.cluster_id WHERE c.name = ANY(%s)"
        found = self.rows(query + " AND w.preemptible > 0", list(self.targets))
        return found if len(found) == len(self.targets) else []

    def launching(self) -> Rows:
        query = "SELECT * FROM clusters_machine WHERE asked_at > %s AND state IN ('asked', 'booting')"
        return self.rows(query, self.began)

    @contextmanager
    def witnessed(self) -> Iterator[None]:
        """Somebody else looks on meanwhile, and notes when the simulator first showed none of the nodes and machines."""
        over = threading.Event()

        def look() -> None:
            while not (until(5, self._all_gone, LOOK) or over.wait(LOOK)):
                continue

        witness = threading.Thread(target=look)
        witness.start()
        try:
            yield
        finally:
            over.set()
            witness.join()

    def _all_gone(self) -> bool:
        left = [one for one in self.machines().values() if one["node_name"] in self.taken and one["state"] != "terminated"]
        for cluster in self.clusters.values():
            left += [node for node in self.items(cluster, "nodes") if node["metadata"]["uid"] in self.uids]
        if not left and self.gone_at is None:
            self.gone_at = datetime.now(UTC)
        return not left

    def full(self) -> bool:
        """By the provider's and Kubernetes' own word, and the console says the same."""
        held = Counter(one["cluster_id"] for one in self.held())
        for name, machines in self.targets.items():
            cluster = self.clusters[name]
            nodes = [node for node in self.items(cluster, "nodes") if _preemptible(node) and _ready(node)]
            if (
                held[cluster] != machines
                or len(nodes) != machines
                or cluster_row(self.here, name)["allocated_preemptible_gpus"] != machines * STEP
            ):
                return False
        return True

    def collect(self) -> None:
        """Who was told so far: by the request log, which dies with the simulator, and by what Kubernetes shows of each pod."""
        for cluster in self.clusters.values():
            for asked in self.here.control("GET", f"requests?cluster_id={cluster}"):
                parts = asked["path"].split("/")
                told = asked["verb"] in ("create", "delete") and asked["user_agent"] == "halftide" and asked["status"] < 300
                if told and len(parts) > 6 and parts[5] == "pods":
                    self.told.add((cluster, parts[4], parts[6]))
            for pod in self.items(cluster, "pods"):
                if "deletionTimestamp" in pod["metadata"]:
                    self.told.add((cluster, pod["metadata"]["namespace"], pod["metadata"]["name"]))

    # The ways there

    def rows(self, query: str, *values: Any) -> Rows:
        return self.here.rows(query, *values)

    def machines(self) -> dict[str, dict[str, Any]]:
        found = self.here.control("GET", f"machines?region={REGION}&gpu_type={GPU_TYPE}")["machines"]
        return {one["token"]: one for one in found}

    def held(self) -> Rows:
        """Preemptible machines that the provider has for somebody of ours."""
        machines = self.machines().values()
        return [one for one in machines if one["compute_class"] == "preemptible" and one["state"] != "terminated"]

    def demand(self, machines: int) -> None:
        self.here.control("POST", "demand", {"region": REGION, "gpu_type": GPU_TYPE, "machines": machines})

    def items(self, cluster: str, kind: str) -> Sequence[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kube("GET", cluster, f"/api/v1/{kind}")["items"]
        return found

    def kube(self, verb: str, cluster: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = httpx.request(verb, f"{self.here.simulator}/clusters/{cluster}{path}", json=body, timeout=10)
        if answer.status_code == 409:  # sent before, and the answer was lost
            return {"there": True}
        return answer.raise_for_status().json()


def _preemptible(node: dict[str, Any]) -> bool:
    return node["metadata"].get("labels", {}).get("together.ai/compute-class") == "preemptible"


def _ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not node["spec"].get("unschedulable", False)
