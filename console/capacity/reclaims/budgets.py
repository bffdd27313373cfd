"""Disruption budgets as a cluster's API says them, and over which pods each stands. Pure; read by `previewing`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from console.kube.shapes import BudgetShape, PodShape, Requirement

BudgetName = tuple[str, str]  # namespace, name


@dataclass(frozen=True)
class Budgets:
    """What Kubernetes said. `unknown` is the sentence that says why it said nothing; then nothing follows from the rest."""

    allowed: Mapping[BudgetName, int] = field(default_factory=dict)  # evictions it allows just now
    covers: Mapping[str, tuple[BudgetName, ...]] = field(default_factory=dict)  # by uid of the pod
    round_trip: float | None = None  # seconds that one request took
    unknown: str = ""


def budgets_of(budgets: Iterable[BudgetShape], pods: Iterable[PodShape], round_trip: float) -> Budgets:
    """Which budgets stand over which pods. An empty selector selects all of its namespace, as policy/v1 has it."""
    shapes = list(budgets)
    covers = {pod.uid: tuple((budget.namespace, budget.name) for budget in shapes if _selects(budget, pod)) for pod in pods}
    allowed = {(budget.namespace, budget.name): budget.disruptions_allowed for budget in shapes}
    return Budgets(allowed, covers, round_trip)


def _selects(budget: BudgetShape, pod: PodShape) -> bool:
    if budget.namespace != pod.namespace:
        return False
    labels = all(pod.labels.get(key) == value for key, value in budget.match_labels.items())
    return labels and all(_meets(line, pod.labels) for line in budget.match_expressions)


def _meets(line: Requirement, labels: Mapping[str, str]) -> bool:
    match line.operator:
        case "In":
            return labels.get(line.key) in line.values
        case "NotIn":
            return labels.get(line.key) not in line.values
        case "Exists":
            return line.key in labels
        case "DoesNotExist":
            return line.key not in labels
        case _:
            return False
