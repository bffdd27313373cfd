"""What the sections share: clusters with so many nodes, pods on them, notices, and what the simulator was asked."""

import asyncio
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from django.utils import timezone

from console.accounts.models import Project, User
from console.accounts.services import actor_for_session
from console.capacity.drains.changes import Start, start_drains
from console.capacity.models import Drain
from console.capacity.services import create_cluster, set_target
from console.clusters.models import Cluster, ComputeClass, Machine, Node, Pod
from console.timeline.changes import change
from tests.bench.bare import Bare, Call
from tests.installation import Installation, within

REGION, GPU_TYPE = "eu-north-1", "H100_SXM"
PATIENCE = 240.0  # seconds a section waits for its world to be ready; none of them is a figure


def ada() -> Any:
    return actor_for_session(User.objects.get(username="ada"), None)


def cluster(name: str, nodes: int, *, gpu_type: str = GPU_TYPE) -> Cluster:
    """A cluster of that name with a standard node and so many preemptible ones, all Ready."""
    found = Cluster.objects.filter(name=name).first()
    if found is None:
        found = create_cluster(ada(), Project.objects.get(slug="aurora"), name, REGION, gpu_type, 8, 8 * nodes)
    else:
        want(found, nodes)
    settle(found)
    return found


def want(of: Cluster, nodes: int) -> None:
    of.refresh_from_db()
    set_target(ada(), of, 8 * nodes, None)


def settle(of: Cluster) -> None:
    """All that is asked for is there, and nothing is on its way out."""

    def settled() -> bool:
        of.refresh_from_db()
        there = of.allocated_preemptible_gpus == of.desired_preemptible_gpus and of.allocated_standard_gpus > 0
        return there and not Drain.objects.filter(cluster=of, state__in=Drain.OPEN).exists()

    if not within(PATIENCE, settled, 0.25):
        raise RuntimeError(
            f"{of.name} has {of.allocated_preemptible_gpus} of {of.desired_preemptible_gpus} GPUs: {of.status_why}"
        )


def plane(here: Installation, of: Cluster) -> Path | None:
    """The folder of the cluster's control plane, where it has a real one."""
    folder = here.state / "kubernetes" / str(of.pk)
    return folder if folder.is_dir() else None


def api(here: Installation, of: Cluster) -> Bare:
    folder = plane(here, of)
    if folder is None:
        return Bare(f"{here.simulator}/clusters/{of.pk}")
    known = yaml.safe_load(kubeconfig(folder).read_text())
    return Bare(known["clusters"][0]["cluster"]["server"], folder / "ca.crt", known["users"][0]["user"]["token"])


def kubeconfig(folder: Path) -> Path:
    """The admin's, of a real control plane."""
    return folder / "admin.kubeconfig"


def nodes(of: Cluster, count: int) -> list[Node]:
    found = Node.objects.filter(cluster=of, compute_class=ComputeClass.PREEMPTIBLE, ready=True, draining=False).order_by("name")
    return list(found[:count])


@dataclass(frozen=True)
class Batch:
    """Pods by one name, as the API knows them."""

    name: str
    evictions: tuple[Call, ...]
    uids: frozenset[str]


def pods(here: Installation, of: Cluster, on: Iterable[Node], each: int, *, stops: str = "1-2", stuck: bool = False) -> Batch:
    """So many pods on each node, running, and seen by Halftide. `stops`: seconds from SIGTERM to the end."""
    name = f"pod-{uuid.uuid4().hex[:6]}"
    program = {"simulator.halftide.io/ignore-sigterm": "true"} if stuck else {"simulator.halftide.io/exit-seconds": stops}
    names = [(f"{name}-{node.name}-{number}", node.name) for node in on for number in range(each)]
    calls = [("POST", "/api/v1/namespaces/training/pods", _pod(pod, node, name, program)) for pod, node in names]
    first, *others = ([call] for call in calls)
    if not within(
        PATIENCE, lambda: asyncio.run(api(here, of).send(first, 1)) == [201], 0.5
    ):  # a new plane's namespaces come last
        raise RuntimeError(f"{of.name} takes no pod")
    statuses = asyncio.run(api(here, of).send(call for [call] in others))
    assert set(statuses) <= {201}, set(statuses)
    rows = Pod.objects.filter(cluster=of, name__startswith=name, phase="Running")
    if not within(PATIENCE, lambda: rows.count() == len(names), 0.25):
        raise RuntimeError(f"{rows.count()} of {len(names)} pods run")
    uids = dict(rows.values_list("name", "uid"))
    return Batch(name, tuple(eviction(pod, uids[pod]) for pod, _ in names), frozenset(uids.values()))


def _pod(name: str, node: str, owner: str, program: dict[str, str]) -> dict[str, Any]:
    # Of a kind that the simulator has no controller for: nobody else makes or ends these pods.
    controller = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": owner, "uid": owner, "controller": True}
    return {
        "metadata": {"name": name, "namespace": "training", "annotations": program, "ownerReferences": [controller]},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 45,
            "containers": [{"name": "main", "image": "registry.example/train:1"}],
        },
    }


def eviction(name: str, uid: str) -> Call:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "training"},
        "deleteOptions": {"gracePeriodSeconds": 45, "preconditions": {"uid": uid}},
    }
    return ("POST", f"/api/v1/namespaces/training/pods/{name}/eviction", body)


def notice(of: Cluster, on: Sequence[Node]) -> datetime:
    """Preempt these nodes, as a notice does; the instant before it."""
    at = timezone.now()
    with change(at) as made:
        mine = made.lock(Cluster.objects.filter(pk=of.pk))[0]
        machines = {row.pk: row for row in made.lock(Machine.objects.filter(nodes__in=on))}
        rows = made.lock(Node.objects.filter(pk__in=[node.pk for node in on]))
        starts = [Start(machines[row.machine_id], row, Drain.Cause.PREEMPTED, "the bench takes it back") for row in rows]
        start_drains(made, mine, starts, "bench", at)
    return at


@dataclass(frozen=True)
class Asked:
    """One answered request from outside, as the simulator's own log or the API server's audit log has it."""

    at: datetime
    verb: str
    path: str
    status: int
    agent: str


def asked(here: Installation, of: Cluster, since: datetime) -> list[Asked]:
    folder = plane(here, of)
    if folder is not None:
        return _audited(folder / "audit.log", since)
    stamp = since.isoformat().replace("+00:00", "Z")
    found = here.control("GET", f"requests?cluster_id={of.pk}&since={stamp}")
    return [Asked(datetime.fromisoformat(one["at"]), one["verb"], one["path"], one["status"], one["user_agent"]) for one in found]


def _audited(log: Path, since: datetime) -> list[Asked]:
    rows = (json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n"))
    found = [
        Asked(
            datetime.fromisoformat(row["stageTimestamp"]), row["verb"], row["requestURI"].partition("?")[0],
            (row.get("responseStatus") or {}).get("code", 0), row.get("userAgent", ""),
        )
        for row in rows
    ]  # fmt: skip
    return sorted((one for one in found if one.at > since), key=lambda one: one.at)


def cordons(here: Installation, of: Cluster, since: datetime) -> dict[str, datetime]:
    """By node, when the API answered our first patch: Kubernetes' own controllers patch nodes too."""
    found: dict[str, datetime] = {}
    for one in asked(here, of, since):
        if one.agent == "halftide" and one.verb == "patch" and "/nodes/" in one.path and one.status == 200:
            found.setdefault(one.path.rpartition("/")[2], one.at)
    return found


def tellings(here: Installation, of: Cluster, since: datetime, agent: str = "halftide") -> list[datetime]:
    """When each eviction of a client was answered, in order."""
    return sorted(
        one.at for one in asked(here, of, since) if one.path.endswith("/eviction") and one.agent == agent and one.status < 300
    )


def cordoned(here: Installation, of: Cluster, since: datetime, count: int, seconds: float = 60) -> dict[str, float]:
    """Wait for so many cordons; seconds from `since` to each."""
    within(seconds, lambda: len(cordons(here, of, since)) >= count, 0.1)
    return {name: (at - since).total_seconds() for name, at in cordons(here, of, since).items()}


def before(at: datetime) -> datetime:
    """A little earlier: the simulator's log is asked for what came after an instant."""
    return at - timedelta(milliseconds=1)
