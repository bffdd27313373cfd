"""The loops around the pure parts: look at the cluster when it changed, do what they say, look again."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial

import httpx

from console.simulator.machines import budgets, lifecycle, namespaces, rollouts, said, scheduler, workloads
from console.simulator.machines.client import LEASES, Call, Client, Refused
from console.simulator.machines.snapshot import Snapshot
from console.simulator.machines.view import View
from console.simulator.values import Json

log = logging.getLogger(__name__)
SETTLE = 0.05  # seconds to gather changes before a look
LEASES_EVERY = 5.0  # seconds between looks at who is silent
HUSH_SECONDS = 10.0  # the longest back-off of the real scheduler between two tries of a pod
COLLECT_EVERY = 20.0  # seconds between looks for pods without a node
PATHS = {
    "nodes": "/api/v1/nodes", "pods": "/api/v1/pods", "jobs": "/apis/batch/v1/jobs", "replica_sets": "/apis/apps/v1/replicasets",
    "daemon_sets": "/apis/apps/v1/daemonsets", "deployments": "/apis/apps/v1/deployments",
    "budgets": "/apis/policy/v1/poddisruptionbudgets",
}  # fmt: skip
KINDS = {
    "nodes": "Node", "pods": "Pod", "jobs": "Job", "replica_sets": "ReplicaSet", "daemon_sets": "DaemonSet",
    "deployments": "Deployment", "budgets": "PodDisruptionBudget",
}  # fmt: skip


class Onlooker:
    """What machines need to know of a cluster that has controllers of its own."""

    def __init__(self, client: Client) -> None:
        self.views = {kind: View(client, PATHS[kind]) for kind in ("nodes", "pods")}

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for view in self.views.values():
                group.create_task(view.run())


class Controllers:
    """Scheduler, workload controllers, disruption controller, node controller and collectors of one cluster."""

    def __init__(self, client: Client, clock: Callable[[], datetime]) -> None:
        self.views = {kind: View(client, path) for kind, path in PATHS.items()}
        self._client, self._clock = client, clock
        self._dirty = asyncio.Event()
        self._leases: dict[str, Json] = {}
        self._orphans: dict[str, float] = {}
        for view in self.views.values():
            view.listen(self._stir)
        self.views["nodes"].listen(self._node_changed)
        self._known: dict[str, Json] = {}
        self._said: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for view in self.views.values():
                group.create_task(view.run())
            for view in self.views.values():
                await view.listed.wait()
            group.create_task(self._react())
            group.create_task(self._watch_leases())
            group.create_task(self._collect())

    def _snapshot(self) -> Snapshot:
        return Snapshot(**{kind: list(view.objects.values()) for kind, view in self.views.items()}, leases=self._leases)

    async def _react(self) -> None:
        while True:
            await self._dirty.wait()
            await asyncio.sleep(SETTLE)
            self._dirty.clear()
            # One after the other, each on a fresh picture: a pod made by one is placed by the next.
            for plan in (lifecycle.plan, rollouts.plan, workloads.plan, self._schedule, budgets.plan):
                await self._attempt(partial(self._follow, plan))

    async def _follow(self, plan: Callable[[Snapshot, datetime], list[Call]]) -> None:
        await self._do(plan(self._snapshot(), self._clock()))

    async def _attempt(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """One turn of a loop. The loops outlive anything: one odd object must not leave a cluster without its controllers."""
        try:
            await work()
        except (httpx.HTTPError, Refused) as error:
            log.debug("%s", error)
        except Exception:
            log.exception("a controller stumbled")

    def _stir(self, _kind: str, _body: Json) -> None:
        self._dirty.set()

    def _schedule(self, snapshot: Snapshot, now: datetime) -> list[Call]:
        moment = time.monotonic()
        self._said = {uid: at for uid, at in self._said.items() if moment - at < HUSH_SECONDS}
        calls = scheduler.plan(snapshot, now, self._said)
        failed = [call.body["involvedObject"]["uid"] for call in calls if call.body.get("reason") == "FailedScheduling"]
        self._said |= dict.fromkeys(failed, moment)
        return calls

    async def _do(self, calls: list[Call]) -> None:
        for call in calls:
            try:
                self._learn(call, await self._client.do(call))
            except (httpx.HTTPError, Refused) as error:
                log.debug("%s %s: %s", call.method, call.path, error)
                self._dirty.set()
                if not isinstance(error, Refused):
                    await asyncio.sleep(1)

    def _learn(self, call: Call, body: Json) -> None:
        """Take in the answer at once, so that the next look does not do the same again."""
        kind = next((kind for kind, name in KINDS.items() if name == body.get("kind")), None)
        if kind is None:
            return
        metadata = body["metadata"]
        gone = call.method == "DELETE" and not metadata.get("deletionGracePeriodSeconds") and not metadata.get("finalizers")
        self.views[kind].apply("DELETED" if gone else "MODIFIED", body)

    async def _watch_leases(self) -> None:
        while True:
            await self._attempt(self._keep_house)
            self._dirty.set()
            await asyncio.sleep(LEASES_EVERY)

    async def _keep_house(self) -> None:
        listing = await self._client.get(LEASES)
        self._leases = {item["metadata"]["name"]: item for item in listing["items"]}
        await self._sweep_leases()
        await namespaces.sweep(self._client)

    async def _sweep_leases(self) -> None:
        """The owner collector's part: the Lease of a deleted Node goes with it."""
        uids = {node["metadata"]["uid"] for node in self.views["nodes"].objects.values()}
        for name, lease in self._leases.items():
            references = lease["metadata"].get("ownerReferences") or []
            if references and all(item["uid"] not in uids for item in references):
                await self._do([Call("DELETE", f"{LEASES}/{name}", {"preconditions": {"uid": lease["metadata"]["uid"]}})])

    async def _collect(self) -> None:
        while True:
            await self._attempt(self._collect_once)
            await asyncio.sleep(COLLECT_EVERY)

    async def _collect_once(self) -> None:
        found = {pod["metadata"]["uid"]: pod for pod in lifecycle.orphans(self._snapshot())}
        now = time.monotonic()
        self._orphans = {uid: self._orphans.get(uid, now) for uid in found}
        due = [found[uid] for uid, since in self._orphans.items() if now - since >= lifecycle.ORPHAN_SECONDS]
        await self._do(lifecycle.collect(due))

    def _node_changed(self, kind: str, node: Json) -> None:
        """Events that tell a node's story: registered, cordoned, uncordoned, removed."""
        uid, name = node["metadata"]["uid"], node["metadata"]["name"]
        old, now = self._known.get(uid), self._clock()
        calls = []
        if kind == "DELETED":
            self._known.pop(uid, None)
            message = f"Node {name} event: Removing Node {name} from Controller"
            calls.append(said.node_controller(node, "RemovingNode", message, now))
        else:
            self._known[uid] = node
            if old is None and self.views["nodes"].listed.is_set():
                message = f"Node {name} event: Registered Node {name} in Controller"
                calls.append(said.node_controller(node, "RegisteredNode", message, now))
            cordoned = bool(node["spec"].get("unschedulable"))
            if old is not None and cordoned != bool(old["spec"].get("unschedulable")):
                reason = "NodeNotSchedulable" if cordoned else "NodeSchedulable"
                calls.append(said.kubelet_of_node(node, reason, f"Node {name} status is now: {reason}", now))
        if calls:
            task = asyncio.ensure_future(self._do(calls))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
