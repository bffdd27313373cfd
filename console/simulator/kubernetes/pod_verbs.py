"""What can be done with a pod besides reading and writing it: evict, bind, and read the log it does not keep."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from console.simulator.kubernetes import deletion, errors, eviction
from console.simulator.kubernetes.paths import Target
from console.simulator.kubernetes.resources import BUDGETS, NODES, PODS
from console.simulator.kubernetes.store import Store
from console.simulator.values import Json, copy, stamp
from console.simulator.web import Response, answer

Remove = Callable[[Target, deletion.Options], object]


def _done() -> Response:
    return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


class PodVerbs:
    """The pod's own subresources, on one cluster's store. All raise ApiError."""

    def __init__(self, store: Store, clock: Callable[[], datetime], remove: Remove) -> None:
        self._store, self._clock, self._remove = store, clock, remove

    def evict(self, target: Target, pod: Json, body: Any, *, dry: bool) -> Response:
        """A delete that asks the budgets first."""
        if not isinstance(body, dict) or body.get("kind", "Eviction") != "Eviction":
            raise errors.bad_request("the body is no Eviction")
        wanted = body.get("deleteOptions") or {}
        asked, dry = deletion.options(wanted, {}), dry or bool(wanted.get("dryRun"))
        guards: list[Json] = []
        if not eviction.exempt(pod):
            stored = self._store.in_namespace(BUDGETS, target.namespace)
            guards = eviction.guarding(pod, (record.body for record in stored))
            if problem := eviction.refusal(pod, guards):
                raise problem
        if problem := deletion.check(PODS, pod, asked):
            raise problem
        if not dry:
            if guards and not eviction.spared(pod, guards[0]):
                self._spend(guards[0], target.name)
            # The version asked for was checked above; our own note on the pod must not make it stale.
            self._condemn(pod)
            self._remove(target, deletion.Options(asked.grace, asked.uid, None, asked.propagation))
        return _done()

    def _condemn(self, pod: Json) -> None:
        """Say in the pod's status that it was evicted, as the real server does before it deletes."""
        if eviction.exempt(pod):
            return
        condemned: Json = copy(pod)
        others = [item for item in condemned["status"].get("conditions") or [] if item["type"] != "DisruptionTarget"]
        reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
        note = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp(self._clock()), **reason}
        condemned["status"]["conditions"] = [*others, note]
        self._store.put(PODS, condemned)

    def _spend(self, budget: Json, pod: str) -> None:
        """Take one disruption off a budget, until its controller counts again."""
        changed: Json = copy(budget)
        status = changed["status"]
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[pod] = stamp(self._clock())
        self._store.put(BUDGETS, changed)

    def bind(self, pod: Json, body: Any) -> Response:
        """Give a pod to a node, once."""
        if not isinstance(body, dict):
            raise errors.bad_request("the body is no Binding")
        name = pod["metadata"]["name"]
        if problem := deletion.check(PODS, pod, deletion.Options(uid=(body.get("metadata") or {}).get("uid"))):
            raise problem
        if "deletionTimestamp" in pod["metadata"]:
            raise errors.conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host", kind="pods/binding")
        if held := pod["spec"].get("nodeName"):
            raise errors.conflict(PODS, name, f'pod {name} is already assigned to node "{held}"', kind="pods/binding")
        bound: Json = copy(pod)
        bound["spec"]["nodeName"] = body["target"]["name"]
        others = [item for item in bound["status"].get("conditions") or [] if item["type"] != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp(self._clock())}
        bound["status"]["conditions"] = [*others, scheduled]
        self._store.put(PODS, bound)
        return _done()

    def log(self, pod: Json) -> Response:
        """One line that says there is no log."""
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        if not node or self._store.get(NODES, "", node) is None:
            raise errors.bad_request(f"pod {name} does not have a host assigned")
        text = f"{pod['status'].get('startTime', '')} {name} on {node}: a simulated container keeps no log\n"
        return Response(200, text.encode(), "text/plain")
