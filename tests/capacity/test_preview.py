"""What would be lost if these nodes were reclaimed now: rows in, a truthful picture out. No database, no clock."""

from datetime import UTC, datetime, timedelta

import pytest

from console.capacity.drains.window import most_grace
from console.capacity.reclaims.budgets import Budgets, budgets_of
from console.capacity.reclaims.preview import Exit, Preview, length, preview, telling_seconds
from console.clusters.models import Machine, Node, Pod
from console.kube.shapes import BudgetShape, PodShape, Requirement

NOW = datetime(2026, 11, 12, 14, tzinfo=UTC)


def ago(**much: float) -> datetime:
    return NOW - timedelta(**much)


def a_pod(name: str, node: str = "one", **more: object) -> Pod:
    fields = {"grace_seconds": 30, "started_at": ago(hours=1), **more}
    return Pod(uid=f"uid-{name}", namespace="ml", name=name, node_name=node, phase="Running", **fields)


def a_machine(name: str = "one", ready: bool | None = True, node: bool = True) -> tuple[Machine, Node | None]:
    machine = Machine(node_name=name, gpus=8)
    return machine, Node(name=name, gpus=8, ready=ready) if node else None


def look(*pods: Pod, budgets: Budgets = Budgets(), exits: dict | None = None, window: int = 300, machines=None) -> Preview:  # noqa: B008
    return preview(machines or [a_machine()], pods, budgets, exits or {}, NOW, window)


LATE = [
    # asked grace, window, how its kind ended before, why it might be late
    (30, 300, Exit(), ""),
    (300, 300, Exit(), ""),
    (301, 300, Exit(), "asks for 5:01 of grace and gets 5:00"),
    (3600, 300, Exit(), "asks for 1 h of grace and gets 5:00"),
    (60, 30, Exit(), "asks for 1:00 of grace and gets 28 s"),
    (30, 30, Exit(), "asks for 30 s of grace and gets 28 s"),  # two are the kubelet's, to report the end
    (120, 120, Exit(), "asks for 2:00 of grace and gets 1:58"),
    (120, 300, Exit(finished=45), ""),
    (30, 300, Exit(finished=45), "its kind took 45 s before and gets 30 s"),
    (30, 300, Exit(killed=30), "its kind was killed before after 30 s and gets 30 s"),
    (120, 300, Exit(killed=30), ""),
    (30, 300, Exit(finished=4, killed=31), "its kind was killed before after 31 s and gets 30 s"),
]


@pytest.mark.parametrize(("grace", "window", "known", "late"), LATE)
def test_who_could_not_exit_in_the_window_is_said_with_the_reason(grace: int, window: int, known: Exit, late: str) -> None:
    pod = a_pod("train-0", grace_seconds=grace, owner_kind="Job", owner_name="train")
    found = look(pod, exits={("ml", "Job", "train"): known}, window=window)
    assert [one.late for one in found.pods] == [late]
    assert found.pods[0].given_grace == min(grace, most_grace(window))
    assert len(found.late) == bool(late)


UNSAVED = [
    # started, last checkpoint, unsaved seconds, running seconds
    (ago(hours=2), ago(minutes=7), 420.0, 7200.0),
    (ago(hours=2), None, None, 7200.0),  # nothing says: unknown, and never 0 nor "all of it"
    (None, None, None, None),
    (None, ago(minutes=1), 60.0, None),
    (ago(minutes=2), ago(days=9), 120.0, 120.0),  # a checkpoint from before its start is one at its start
    (ago(minutes=2), NOW + timedelta(hours=1), 0.0, 120.0),  # … and one of the future is now
]


@pytest.mark.parametrize(("started", "saved", "unsaved", "running"), UNSAVED)
def test_unsaved_work_is_known_only_where_something_says_it(
    started: datetime | None, saved: datetime | None, unsaved: float | None, running: float | None
) -> None:
    found = look(a_pod("train-0", started_at=started, last_checkpoint=saved))
    assert (found.pods[0].unsaved, found.pods[0].running) == (unsaved, running)
    assert found.unsaved_unknown == (unsaved is None)
    assert found.longest_unsaved == unsaved


SAYS = [
    ([], True, True, "no pods but DaemonSets"),
    ([a_pod("log", daemonset=True), a_pod("done", finished=True)], True, True, "no pods but DaemonSets"),
    ([], False, True, "not Ready"),
    ([], None, True, "not Ready"),
    ([], True, False, "not yet Ready"),
    ([a_pod("a", last_checkpoint=ago(seconds=42))], True, True, "1 pod, 42 s since the last checkpoint"),
    ([a_pod("a", last_checkpoint=ago(minutes=3)), a_pod("b")], True, True, "2 pods, unsaved work unknown of 1"),
]


@pytest.mark.parametrize(("pods", "ready", "node", "says"), SAYS)
def test_each_node_says_why_it_is_among_the_first(pods: list[Pod], ready: bool | None, node: bool, says: str) -> None:
    found = look(*pods, machines=[a_machine("one", ready, node)])
    assert [one.says for one in found.nodes] == [says]


def test_pods_that_stay_or_have_ended_are_not_told_and_other_nodes_pods_are_not_here() -> None:
    found = look(
        a_pod("log", daemonset=True), a_pod("static", mirror=True), a_pod("done", finished=True),
        a_pod("done-log", daemonset=True, finished=True), a_pod("elsewhere", node="two"), a_pod("train"),
    )  # fmt: skip
    assert [pod.name for pod in found.pods] == ["train"]
    assert found.nodes[0].staying == 2


def budgets(allowed: int, *names: str) -> Budgets:
    return Budgets({("ml", "infer"): allowed}, {f"uid-{name}": (("ml", "infer"),) for name in names}, round_trip=0.01)


@pytest.mark.parametrize(("allowed", "over"), [(0, 3), (1, 2), (3, 0), (9, 0)])
def test_a_budget_is_overridden_for_as_many_pods_as_it_does_not_allow(allowed: int, over: int) -> None:
    pods = [a_pod(name, node) for name, node in (("a", "one"), ("b", "two"), ("c", "two"))]
    found = look(*pods, budgets=budgets(allowed, "a", "b", "c"), machines=[a_machine("one"), a_machine("two")])
    [budget] = found.budgets
    assert (budget.name, budget.pods, budget.over) == ("infer", 3, over)
    assert all(bool(pod.budgets) == bool(over) for pod in found.pods), "it is not known which of them it would be"


def test_a_pod_that_is_stopping_already_asks_no_budget() -> None:
    found = look(a_pod("a", deleting_since=ago(seconds=5)), budgets=budgets(0, "a"))
    assert found.budgets == ()
    assert found.pods[0].stopping


def test_where_kubernetes_says_nothing_of_budgets_the_sentence_stands_and_the_rest_holds() -> None:
    found = look(a_pod("a", grace_seconds=900), budgets=Budgets(unknown="The Kubernetes API cannot be reached."))
    assert found.budgets_unknown == "The Kubernetes API cannot be reached."
    assert found.telling is None
    assert len(found.late) == 1


TELLING = [
    # nodes, pods, over, seconds at 10 ms a request
    (1, 0, 0, 0.06),  # four reads, cordon, Event
    (1, 9, 0, 0.06),
    (1, 9, 2, 0.07),  # … and past the budget
    (100, 1500, 0, 0.35),  # reads in 8 rounds, cordons in 2, 1,600 Events and evictions in 25
]


@pytest.mark.parametrize(("nodes", "pods", "over", "seconds"), TELLING)
def test_telling_takes_its_requests_64_at_a_time(nodes: int, pods: int, over: int, seconds: float) -> None:
    assert telling_seconds(nodes, pods, over, 0.01) == pytest.approx(seconds)
    assert telling_seconds(nodes, pods, over, None) is None


def a_shape(name: str, labels: dict[str, str], namespace: str = "ml") -> PodShape:
    return PodShape(
        uid=f"uid-{name}", namespace=namespace, name=name, resource_version="1", node_name="one", phase="Running", owner_kind="",
        owner_name="", daemonset=False, mirror=False, created_at=NOW, started_at=NOW, ready=True, deletion_at=None,
        deletion_grace=None, grace_seconds=30, labels=labels, last_checkpoint=None, finished=False, ended_at=None, exit_code=None,
        reason="", gpus=0, prefers={}, finalizers=(),
    )  # fmt: skip


SELECTORS = [
    ({"app": "infer"}, (), True),
    ({"app": "train"}, (), False),
    ({"app": "infer", "tier": "gold"}, (), False),
    ({}, (), True),  # policy/v1: an empty selector selects all of the namespace
    ({}, (Requirement("app", "In", ("infer", "train")),), True),
    ({}, (Requirement("app", "NotIn", ("infer",)),), False),
    ({}, (Requirement("tier", "NotIn", ("gold",)),), True),  # an absent label is not in
    ({}, (Requirement("app", "Exists", ()),), True),
    ({}, (Requirement("tier", "Exists", ()),), False),
    ({}, (Requirement("tier", "DoesNotExist", ()),), True),
    ({"app": "infer"}, (Requirement("app", "DoesNotExist", ()),), False),
]


@pytest.mark.parametrize(("labels", "lines", "covered"), SELECTORS)
def test_a_budget_covers_what_its_selector_selects(labels: dict[str, str], lines: tuple[Requirement, ...], covered: bool) -> None:
    budget = BudgetShape("uid", "ml", "infer", "1", labels, lines, 0)
    found = budgets_of([budget], [a_shape("a", {"app": "infer"}), a_shape("far", {"app": "infer"}, "other")], 0.01)
    assert found.covers["uid-a"] == ((("ml", "infer"),) if covered else ())
    assert found.covers["uid-far"] == (), "a budget stays in its namespace"


@pytest.mark.parametrize(
    ("seconds", "says"), [(0, "0 s"), (59.9, "59 s"), (60, "1:00"), (298, "4:58"), (3600, "1 h"), (7800, "2 h 10 min")]
)
def test_lengths_are_said_as_people_do(seconds: float, says: str) -> None:
    assert length(seconds) == says


def test_what_it_adds_up_to() -> None:
    found = look(a_pod("a", last_checkpoint=ago(minutes=3)), a_pod("b", "two"), machines=[a_machine("one"), a_machine("two")])
    assert (found.gpus, len(found.pods), found.longest_unsaved, found.unsaved_unknown) == (16, 2, 180.0, 1)
    assert found.deadline == NOW + timedelta(seconds=300)
