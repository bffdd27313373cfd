"""Preemptions of many nodes, and their refill, seen from outside: the simulator's APIs and log, and the ledger's tables."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg

from tests.flows.conftest import cluster_row
from tests.installation import Installation

REGION, GPU_TYPE, STEP = "eu-north-1", "H100_SXM", 8
SCARCE = "H200_SXM"  # the type of the pool that always has less than is asked for
TRAIN, SERVE, WAITING = "aurora-train", "atlas-serve", "kept-waiting"
MACHINES = {TRAIN: 18, SERVE: 8}
ALLOWANCE = timedelta(seconds=15)  # beyond the deadline (DESIGN 16, guarantee 2)
LOOK = 0.5  # seconds between two looks of the witness

Rows = list[dict[str, Any]]
PodKey = tuple[str, str, str]  # cluster, namespace, name


def until(seconds: float, found: Callable[[], Any], every: float = 0.05) -> Any:
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


@dataclass(frozen=True)
class Taken:
    """A node that was asked back, and when it must be gone."""

    uid: str
    name: str
    cluster: str
    deadline: datetime
    pods: frozenset[PodKey]


@dataclass
class Scene:
    """An installation with two clusters that lose nodes and one that never has what it asks for. `wrong`: broken promises."""

    here: Installation
    clusters: dict[str, str] = field(default_factory=dict)  # id by name
    tokens: set[str] = field(default_factory=set)  # of all machines before
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    taken: dict[str, Taken] = field(default_factory=dict)  # by uid
    gone: dict[str, datetime] = field(default_factory=dict)  # by uid
    told: set[PodKey] = field(default_factory=set)
    tenants: int = 0  # machines of the scarce pool that others hold
    returned: int = 0  # of which they gave back so many
    holds: list[tuple[datetime, datetime]] = field(default_factory=list)  # while the provider ended no machine
    excused: set[PodKey] = field(default_factory=set)  # whose time was over before this slow machine had started a worker again
    unlogged: set[PodKey] = field(default_factory=set)  # whose telling the simulator may have taken with it, log and all
    wrong: list[str] = field(default_factory=list)
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    # The scene

    def prepare(self) -> None:
        """Two clusters have all they ask for; a third has one machine, asks for twenty, and waits in its pool's back-off."""
        self.tenants = 22
        self.demand()
        gpus = {"num_gpus": STEP, "num_preemptible_gpus": 20 * STEP}
        body = {"cluster_name": WAITING, "region": REGION, "gpu_type": SCARCE, **gpus}
        fixed = {"billing_type": "ON_DEMAND", "cluster_type": "KUBERNETES", "nvidia_version_id": "machine-image"}
        self.here.api("POST", "/v1/compute/clusters", {**body, **fixed}, key="ht_demo_admin_key").raise_for_status()
        for name, machines in MACHINES.items():
            cluster = str(cluster_row(self.here, name)["id"])
            self.here.api("PUT", f"/v1/compute/clusters/{cluster}", {"num_preemptible_gpus": machines * STEP}).raise_for_status()
        self.clusters = {name: str(cluster_row(self.here, name)["id"]) for name in (*MACHINES, WAITING)}
        assert until(240, self.full, 0.3), self.rows("SELECT * FROM clusters_machine WHERE state <> 'gone'")
        assert until(120, self.waits, 0.3), self.rows("SELECT * FROM capacity_wait")
        self.tokens, self.began = set(self.machines()), datetime.now(UTC)

    def demand(self) -> None:
        """What the other tenants of the scarce pool hold. The simulator keeps it, whatever becomes of its process."""
        body = {"region": REGION, "gpu_type": SCARCE, "machines": self.tenants - self.returned}
        assert until(30, lambda: self.here.control("POST", "demand", body) is not None, 0.3), "the simulator does not answer"

    def give_one_back(self) -> None:
        """A machine that somebody waits for."""
        self.returned += 1
        self.demand()

    def ready(self, name: str) -> list[dict[str, Any]]:
        """Preemptible nodes that take pods: Ready, open, and not asked back."""
        nodes = self.items(self.clusters[name], "nodes")
        return [node for node in nodes if _preemptible(node) and _ready(node) and node["metadata"]["uid"] not in self.taken]

    def pod(self, node: str, name: str, exits: float) -> None:
        """One that belongs to nobody, asks for all the grace there is, and takes so long (seconds) to stop."""
        annotations = {"simulator.halftide.io/exit-seconds": str(exits)}
        container = {"name": "main", "image": "registry.example/test:1"}
        spec = {"nodeName": node, "terminationGracePeriodSeconds": 300, "containers": [container]}
        metadata = {"name": name, "namespace": "training", "annotations": annotations}
        self.kube("POST", self.clusters[TRAIN], "/api/v1/namespaces/training/pods", {"metadata": metadata, "spec": spec})

    @property
    def pods(self) -> set[PodKey]:
        """That must have been told."""
        return {pod for one in self.taken.values() for pod in one.pods}

    def running(self, name: str, nodes: Sequence[str]) -> dict[str, set[PodKey]]:
        """Pods by node, of these nodes, but those of DaemonSets."""
        found: dict[str, set[PodKey]] = {node: set() for node in nodes}
        for pod in self.items(self.clusters[name], "pods"):
            metadata = pod["metadata"]
            owners = [owner["kind"] for owner in metadata.get("ownerReferences", ())]
            if pod["spec"].get("nodeName") in nodes and "DaemonSet" not in owners and pod["status"].get("phase") == "Running":
                found[pod["spec"]["nodeName"]].add((self.clusters[name], metadata["namespace"], metadata["name"]))
        return found

    def die(self, nodes: Sequence[str]) -> None:
        """Their machines stop without a word: no pod of theirs ever ends."""
        for token, machine in self.machines().items():
            if machine["node_name"] in nodes:
                self.here.control("POST", f"machines/{token}/lose")

    def reclaim(self, name: str, nodes: Sequence[dict[str, Any]]) -> datetime:
        """As a system outside with notice does it. Returns the deadline."""
        uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in nodes}
        pods = self.running(name, list(uids))
        cluster = self.clusters[name]
        answer = self.here.api("POST", f"/v1/compute/clusters/{cluster}/reclaims", {"nodes": list(uids)}).raise_for_status()
        for drain in answer.json()["drains"]:
            node, deadline = drain["node_name"], datetime.fromisoformat(drain["deadline"])
            uid = uids.pop(node)
            self.taken[uid] = Taken(uid, node, cluster, deadline, frozenset(pods[node]))
        assert not uids, f"not taken: {uids}"
        return deadline

    @contextmanager
    def held(self) -> Iterator[None]:
        """States that pass stay, for as long as a slow machine takes to see and to hit them: no machine ends, and each write to a
        node of one cluster takes a second and fails.
        """
        cluster, since = self.clusters[SERVE], datetime.now(UTC)
        for kind in ({"kind": "delay", "seconds": 1}, {"kind": "status", "code": 503, "reason": "ServiceUnavailable"}):
            self.here.control("POST", "faults", {"cluster_id": cluster, "verbs": ["patch"], "resources": ["nodes"], **kind})
        self.here.control("POST", "ends", {"held": True})
        try:
            yield
        finally:
            let_go = until(60, lambda: self.here.control("POST", "ends", {"held": False}), 0.1)
            until(60, lambda: self.here.control("DELETE", f"faults?cluster_id={cluster}") is not None, 0.1)
            self.holds.append((since, datetime.now(UTC)))
            assert let_go, "the simulator does not answer"

    def late(self, one: Taken) -> timedelta | None:
        """How long after its deadline a node was gone, or after its provider began to end machines again; None: it is there."""
        if one.uid not in self.gone:
            return None
        # Of the hold of its own wave only: the next one begins when everything of this one is over.
        held = (let_go for since, let_go in self.holds if since - ALLOWANCE <= one.deadline < let_go)
        return self.gone[one.uid] - next(held, one.deadline)

    def mark(self, name: str) -> None:
        """An Event of somebody else's, in the middle of the trouble."""
        assert until(40, lambda: self._marked(name), 0.2), f"{name} could not be written"

    def _marked(self, name: str) -> bool:
        cluster = self.clusters[TRAIN]
        node = next(node["metadata"] for node in self.items(cluster, "nodes") if node["metadata"]["name"].startswith("gpu-dp-"))
        about = {"kind": "Node", "name": node["name"], "uid": node["uid"]}
        said = {"reason": "Marker", "message": name, "type": "Normal", "count": 1}
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, **said}
        return bool(self.kube("POST", cluster, "/api/v1/namespaces/default/events", body))

    # What is seen

    @property
    def wanted(self) -> dict[str, int]:
        """Preemptible machines of each cluster; the scarce pool has one, and what came back to it."""
        return {**MACHINES, WAITING: 1 + self.returned}

    def full(self) -> bool:
        """By Kubernetes' own word, and the console says the same."""
        return all(
            len(self.ready(name)) == machines and cluster_row(self.here, name)["allocated_preemptible_gpus"] == machines * STEP
            for name, machines in self.wanted.items()
        )

    def waits(self) -> Rows:
        query = "SELECT * FROM capacity_wait WHERE cluster_id = %s AND preemptible = %s"
        return self.rows(query, self.clusters[WAITING], 19 - self.returned)

    @contextmanager
    def witnessed(self) -> Iterator[None]:
        """Somebody else looks on all the time, and notes when the simulator first showed neither a node nor its machine."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK):
                until(0.1, self._look, 1)

        witness = threading.Thread(target=look)
        witness.start()
        try:
            yield
        finally:
            over.set()
            witness.join()

    def _look(self) -> bool:
        waited_for = [one for uid, one in list(self.taken.items()) if uid not in self.gone]
        if waited_for:
            there = {one["node_name"] for one in self.machines().values() if one["state"] != "terminated"}
            for cluster in {one.cluster for one in waited_for}:
                there |= {node["metadata"]["uid"] for node in self.items(cluster, "nodes")}
            for one in waited_for:
                if not {one.name, one.uid} & there:
                    self.gone[one.uid] = datetime.now(UTC)
        return True

    def collected(self) -> bool:
        """Note who was told: by the request log, which dies with the simulator, and by what Kubernetes shows of each pod."""
        for name in MACHINES:
            cluster = self.clusters[name]
            for asked in self.here.control("GET", f"requests?cluster_id={cluster}"):
                parts = asked["path"].split("/")
                told = asked["verb"] in ("create", "delete") and asked["user_agent"] == "halftide" and asked["status"] < 300
                if told and len(parts) > 6 and parts[5] == "pods":
                    self.told.add((cluster, parts[4], parts[6]))
            for pod in self.items(cluster, "pods"):
                if "deletionTimestamp" in pod["metadata"]:
                    self.told.add((cluster, pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return True

    # The ways there

    def rows(self, query: str, *values: Any) -> Rows:
        return self.here.rows(query, *values)

    def machines(self) -> dict[str, dict[str, Any]]:
        """All that the provider has or had, by token."""
        return {one["token"]: one for one in self.here.control("GET", "machines")["machines"]}

    def items(self, cluster: str, kind: str) -> Sequence[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kube("GET", cluster, f"/api/v1/{kind}")["items"]
        return found

    def kube(self, verb: str, cluster: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.http.request(verb, f"{self.here.simulator}/clusters/{cluster}{path}", json=body)
        if answer.status_code == 409:  # sent before, and the answer was lost
            return {"there": True}
        return answer.raise_for_status().json()


def _preemptible(node: dict[str, Any]) -> bool:
    return node["metadata"].get("labels", {}).get("together.ai/compute-class") == "preemptible"


def _ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not node["spec"].get("unschedulable", False)
