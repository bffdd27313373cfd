"""What makes things go wrong, or otherwise than by themselves: other tenants, sizes, boots, ends, faults on the way to an API."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Protocol

from console.simulator import sent
from console.simulator.cluster import Cluster
from console.simulator.faults import parse as parse_fault
from console.simulator.outside import Outside
from console.simulator.provider.fleet import Fleet
from console.simulator.sent import Nonsense
from console.simulator.values import Json
from console.simulator.web import Request, Response, answer


class Turned(Protocol):
    """What the knobs turn."""

    fleet: Fleet
    clusters: dict[str, Cluster | Outside]


class Unsimulated(Exception):
    """Asked of a cluster whose API is not ours."""


def _simulated(cluster: Cluster | Outside) -> Cluster:
    if isinstance(cluster, Outside):
        raise Unsimulated
    return cluster


def respond(world: Turned, request: Request, what: str) -> Response | None:
    """Answer a request for one of the knobs; None where there is none of that name."""
    match request.method, what:
        case "POST", "demand":
            return _demand(world, sent.body(request))
        case "POST", "capacity":
            return _capacity(world, sent.body(request))
        case "GET", "fleet":
            return answer({"boot_seconds": world.fleet.boot_seconds, "joins": world.fleet.joins})
        case "POST", "ends":
            return _ends(world, sent.body(request))
        case "POST", "joins":
            return _joins(world, sent.body(request))
        case "POST", "clear":
            return _clear(world)
        case "GET" | "POST" | "DELETE", "faults":
            return _faults(world, request)
        case "POST", "boot":
            return _boot(world, sent.body(request))
        case "GET", "requests":
            return _requests(world, request.query)
    return None


def _demand(world: Turned, body: Json) -> Response:
    key = sent.text(body, "region"), sent.text(body, "gpu_type")
    machines = sent.whole(body, "machines") if body.get("machines") is not None else None
    world.fleet.demand(key, machines, auto=bool(body.get("auto", False)))
    return answer(world.fleet.shown(key))


def _capacity(world: Turned, body: Json) -> Response:
    key = sent.text(body, "region"), sent.text(body, "gpu_type")
    world.fleet.capacity(key, sent.whole(body, "machines"))
    return answer(world.fleet.shown(key))


def _joins(world: Turned, body: Json) -> Response:
    """How the next machines register: `after` so many seconds, or with null never."""
    after = sent.seconds(body, "after") if body.get("after") is not None else None
    world.fleet.joins = [after] * sent.whole(body, "machines")
    return answer({"joins": world.fleet.joins})


def _ends(world: Turned, body: Json) -> Response:
    """Hold back the end of every machine, or let them end."""
    held = body.get("held")
    if not isinstance(held, bool):
        raise Nonsense("held must be true or false.")
    (world.fleet.ends.clear if held else world.fleet.ends.set)()
    return answer({"held": held})


def _clear(world: Turned) -> Response:
    world.fleet.restore()
    for cluster in world.clusters.values():
        if isinstance(cluster, Cluster):
            cluster.faults.clear()
    return answer({})


def _boot(world: Turned, body: Json) -> Response:
    world.fleet.boot_seconds = sent.seconds(body, "seconds")
    return answer({"boot_seconds": world.fleet.boot_seconds})


def _faults(world: Turned, request: Request) -> Response:
    body = sent.body(request)
    key = body.get("cluster_id") or request.query.get("cluster_id", "")
    found = world.clusters.get(key)
    if found is None:
        return answer({"reason": "NoCluster"}, 404)
    cluster = _simulated(found)
    if request.method == "GET":
        return answer({"faults": cluster.faults.shown()})
    if request.method == "DELETE":
        cluster.faults.clear()
        return answer({})
    if body.get("kind") == "compact":
        cluster.store.compact()
    else:
        cluster.faults.add(parse_fault(body))
    return answer({}, 201)


def _requests(world: Turned, query: Mapping[str, str]) -> Response:
    cluster = world.clusters.get(query.get("cluster_id", ""))
    if cluster is None:
        return answer({"reason": "NoCluster"}, 404)
    since = query.get("since", "")
    return answer([asdict(asked) for asked in _simulated(cluster).asked if asked.at > since])
