"""May this pod be evicted: the disruption budgets' say, pure. The body of the refusal is the real one."""

from collections.abc import Iterable

from console.simulator.kubernetes.errors import ApiError
from console.simulator.kubernetes.selectors import from_object, labels_match
from console.simulator.values import Json


def ready(pod: Json) -> bool:
    """Whether the pod has the Ready condition."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def guarding(pod: Json, budgets: Iterable[Json]) -> list[Json]:
    """The budgets of the pod's namespace that select it."""
    found = []
    for budget in budgets:
        selector = from_object(budget["spec"].get("selector"))
        if selector is not None and labels_match(selector, pod["metadata"].get("labels")):
            found.append(budget)
    return found


def exempt(pod: Json) -> bool:
    """Pods that no budget protects: those that never ran, have finished, or are leaving already."""
    return pod["status"].get("phase") in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def refusal(pod: Json, budgets: list[Json]) -> ApiError | None:
    """Why not, if not. Of an allowed disruption the caller takes one off the budget."""
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        return ApiError(500, "InternalError", message, {"causes": [{"message": message}]})
    if not budgets or spared(pod, budgets[0]):
        return None
    budget = budgets[0]
    name, status = budget["metadata"]["name"], budget["status"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        return _too_many(why, retry=10)
    if status.get("disruptionsAllowed", 0) > 0:
        return None
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return _too_many(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")


def spared(pod: Json, budget: Json) -> bool:
    """A pod that is not ready costs the budget nothing, while enough others are (or always, if the budget says so)."""
    if ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget["status"]
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _too_many(why: str, *, retry: int = 0) -> ApiError:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry:
        details["retryAfterSeconds"] = retry
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, details)
