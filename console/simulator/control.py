"""The provider's control API: what Halftide's `simulated` provider, its demo and its tests talk to. JSON, one bearer token."""

from typing import Any, Protocol

from console.kube.errors import KubeconfigRefused
from console.simulator import knobs, sent
from console.simulator.cluster import Cluster
from console.simulator.faults import BadFault
from console.simulator.identity import Identity
from console.simulator.knobs import Unsimulated
from console.simulator.kubernetes.discovery import VERSION
from console.simulator.machines.client import Call
from console.simulator.outside import Outside
from console.simulator.planes import NoPlane
from console.simulator.provider.fleet import Fleet, NoCapacity, UnknownPool
from console.simulator.provider.machine import Machine
from console.simulator.sent import Nonsense
from console.simulator.values import Json
from console.simulator.web import Request, Response, answer

LONGEST_WAIT = 10.0  # seconds a long poll may ask for
LAUNCH = ("token", "region", "gpu_type", "cluster_id", "node_name", "compute_class")


class World(Protocol):
    """What the control API moves."""

    fleet: Fleet
    clusters: dict[str, Cluster | Outside]

    def server(self, cluster: str) -> str:
        """The URL of a cluster's API."""

    def kubeconfig(self, cluster: Cluster | Outside) -> str:
        """A cluster's own kubeconfig."""

    async def add_cluster(self, identity: Identity) -> Cluster | Outside:
        """Make a cluster, or find it. Raises NoPlane or KubeconfigRefused."""

    async def remove_cluster(self, cluster: str) -> None:
        """End a cluster."""

    async def add_workload(self, cluster: str, item: Json) -> list[Call]:
        """Start a workload on a cluster."""


async def respond(world: World, request: Request) -> Response:
    """Answer one request below `/control`."""
    what, *rest = request.path.removeprefix("/control/").split("/")
    try:
        match request.method, what, rest:
            case "GET", "pools", []:
                return await _pools(world, request)
            case "GET", "pools", [region, gpu_type]:
                return answer(world.fleet.shown((region, gpu_type)))
            case "GET", "machines", []:
                found = world.fleet.machines(request.query.get("region", ""), request.query.get("gpu_type", ""))
                return answer({"machines": [machine.shown() for machine in found]})
            case "POST", "machines", []:
                return _launch(world, sent.body(request))
            case "GET" | "DELETE", "machines", [token]:
                return _machine(world, request.method, token)
            case "POST", "machines", [token, "lose"]:
                lost = world.fleet.lose(token)
                return answer(lost.shown(), 202) if lost else answer({"reason": "NoMachine"}, 404)
            case "GET", "clusters", []:
                return answer({"clusters": [_cluster(world, cluster) for cluster in world.clusters.values()]})
            case "POST", "clusters", []:
                return await _add_cluster(world, sent.body(request))
            case "DELETE", "clusters", [cluster]:
                if cluster in world.clusters:
                    await world.remove_cluster(cluster)
                return answer({}, 202)
            case "POST", "workloads", []:
                return await _add_workload(world, sent.body(request))
            case _, _, []:
                turned = knobs.respond(world, request, what)
                if turned is not None:
                    return turned
    except (Nonsense, BadFault, KubeconfigRefused) as error:
        return answer({"reason": "Invalid", "message": str(error)}, 400)
    except Unsimulated:
        return answer(
            {"reason": "RealKubernetes", "message": "this cluster's API is a real Kubernetes, which has no faults to set"}, 409
        )
    except NoPlane as error:
        return answer({"reason": "NoPlane", "message": str(error)}, 503)
    except UnknownPool as error:
        return answer({"reason": "NoPool", "message": str(error)}, 404)
    return answer({"reason": "NotFound", "message": f"There is no {request.method} {request.path}."}, 404)


async def _pools(world: World, request: Request) -> Response:
    if wait := request.query.get("wait"):
        seconds = min(LONGEST_WAIT, sent.number(request.query.get("timeout", "10"), "timeout"))
        await world.fleet.wait(int(sent.number(wait, "wait")), max(0.0, seconds))
    return answer({"version": world.fleet.version, "pools": world.fleet.pools()})


def _launch(world: World, body: Json) -> Response:
    fields: dict[str, Any] = {name: sent.text(body, name) for name in LAUNCH}
    if fields["cluster_id"] not in world.clusters:
        return answer({"reason": "NoCluster"}, 404)
    labels, taints = body.get("labels") or {}, body.get("taints") or []
    if not isinstance(labels, dict) or not isinstance(taints, list):
        raise Nonsense("labels must be an object and taints a list.")
    asked = Machine(**fields, labels=labels, taints=taints)
    try:
        machine, new = world.fleet.launch(asked)
    except NoCapacity as error:
        return answer({"reason": "NoCapacity", "message": str(error)}, 409)
    return answer(machine.shown(), 201 if new else 200)


def _machine(world: World, method: str, token: str) -> Response:
    machine = world.fleet.machine(token) if method == "GET" else world.fleet.terminate(token)
    if machine is None:
        return answer({"reason": "NoMachine"}, 404)
    return answer(machine.shown(), 200 if method == "GET" else 202)


def _cluster(world: World, cluster: Cluster | Outside) -> Json:
    identity = cluster.identity
    shown = {"id": identity.id, "name": identity.name, "region": identity.region, "kubernetes_version": identity.version}
    return shown | {"server": world.server(identity.id), "kubeconfig": world.kubeconfig(cluster)}


async def _add_cluster(world: World, body: Json) -> Response:
    key, name, region = (sent.text(body, field) for field in ("id", "name", "region"))
    if "/" in key:
        raise Nonsense("id must not contain a slash.")
    known = key in world.clusters
    version = str(body.get("kubernetes_version") or VERSION)
    cluster = await world.add_cluster(Identity(key, name, region, version, kubeconfig=str(body.get("kubeconfig") or "")))
    return answer(_cluster(world, cluster), 200 if known else 201)


async def _add_workload(world: World, body: Json) -> Response:
    cluster = sent.text(body, "cluster_id")
    if cluster not in world.clusters:
        return answer({"reason": "NoCluster"}, 404)
    if body.get("kind") not in ("Job", "ReplicaSet", "Deployment", "DaemonSet", "Pod"):
        raise Nonsense("kind must be Job, ReplicaSet, Deployment, DaemonSet or Pod.")
    for name in ("namespace", "name", "image"):
        sent.text(body, name)
    made = await world.add_workload(cluster, body)
    return answer({"made": [call.path for call in made]}, 201)
