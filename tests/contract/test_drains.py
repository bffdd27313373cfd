"""Drains from end to end, on the simulator and on a real API server with its scheduler and controllers, by an account that has
the shipped rights and no other.

One fleet for the whole file on each, so tests take nodes of their own. What only real controllers do is tried on them alone.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from console.capacity.drains.acts import Doors
from console.capacity.drains.doors import Keys, open_doors
from console.capacity.drains.run import OpenDoors, drive
from console.capacity.models import Drain, PodVerdict, Pool, RefusedNotices
from console.capacity.services import set_target
from console.clusters.models import Machine, Node
from console.kube.marks import CLASS_LABEL
from console.timeline.models import Entry
from tests.capacity.nine import WINDOW, evictable, nine
from tests.controlplane.plane import Asked, Json
from tests.real import world
from tests.real.world import MINE, Fleet, pod, program, since
from tests.simulator.conftest import Simulation, eventually

pytestmark = pytest.mark.django_db(transaction=True)

TOTAL = 9
PREEMPTIBLE = 4

Cause, State, Verdict = Drain.Cause, Drain.State, PodVerdict.Verdict


@pytest.fixture
def _django_db_helper() -> None:
    """Instead of pytest-django's: the rows of the file's fleet live as long as its nodes do, so no test ends with a flush."""


@pytest.fixture(scope="module", params=["simulator", "real"])
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Fleet]:
    """The one, then the other."""
    if request.param == "real":
        with world.fleet(request.getfixturevalue("control_plane"), django_db_blocker, TOTAL) as found:
            yield found
        return
    simulation = Simulation(tmp_path_factory.mktemp("simulator")).start()
    with world.simulated(simulation, django_db_blocker, TOTAL) as found:
        yield found
    simulation.end()


REAL = pytest.mark.parametrize("fleet", ["real"], indirect=True)


@pytest.fixture
def ready(fleet: Fleet) -> Fleet:
    """Everything that is wanted is there."""
    fleet.wants(PREEMPTIBLE)
    return fleet


def told(fleet: Fleet, kind: str, name: str | None = None) -> list[Asked]:
    """What Halftide was answered: evictions (`evict`) and deletions (`delete`) of this fleet's pods."""
    found = [one for one in fleet.audit.asked(fleet.account.user) if one.resource == "pods" and one.namespace == fleet.namespace]
    sub = "eviction" if kind == "evict" else ""
    verb = "create" if kind == "evict" else "delete"
    return [one for one in found if (one.verb, one.subresource) == (verb, sub) and name in (None, one.name)]


def force_away(fleet: Fleet, name: str) -> None:
    """As soon as it is stopping, so that nobody sees its end."""
    eventually(lambda: "deletionTimestamp" in fleet.ask("GET", f"/api/v1/namespaces/{{ns}}/pods/{name}")["metadata"], 30)
    fleet.ask("DELETE", f"/api/v1/namespaces/{{ns}}/pods/{name}", {"gracePeriodSeconds": 0})


def running(fleet: Fleet, *names: str) -> None:
    wanted = set(names)
    fleet.until(lambda: wanted <= {one["metadata"]["name"] for one in fleet.pods() if one["status"]["phase"] == "Running"})


def agents(fleet: Fleet, node: Node) -> int:
    """How many pods of the cluster's own DaemonSets are on a node, once each has its one there."""
    mine = fleet.namespace
    sets = [one for one in fleet.ask("GET", "/apis/apps/v1/daemonsets")["items"] if one["metadata"]["namespace"] != mine]

    def settled() -> bool:
        here = fleet.ask("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node.name}")["items"]
        found = [one["status"]["phase"] for one in here if one["metadata"]["namespace"] != mine]
        return found == ["Running"] * len(sets)

    fleet.until(settled)
    return len(sets)


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def anywhere(node: Node, *others: Node) -> Json:
    """Affinity: on this node while it is open, else on one of the others."""

    def among(*nodes: Node) -> Json:
        names = [one.name for one in nodes]
        return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}

    rule = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [among(node, *others)]},
        PREFERRED: [{"weight": 100, "preference": among(node)}],
    }
    return {"affinity": {"nodeAffinity": rule}}


def test_nine_pods_meet_nine_fates(ready: Fleet) -> None:
    """aws/aws-node-termination-handler#433, aws/aws-node-termination-handler#936, kubernetes-sigs/headlamp#7268,
    kubernetes/kubernetes#26080.

    The table of `tests/capacity/nine.py`, on an API: a budget that a disruption controller counts, a pod of a DaemonSet, and a
    pod that somebody forces away while it is stopping.
    """
    fleet, node, cases = ready, ready.node(), nine()
    for name, case in cases.items():
        what = case.pod
        ends = {"ignore_sigterm": "true"} if what.stops_after is None else {"exit_seconds": str(what.stops_after)}
        notes = program(**ends, exit_code=str(what.code))
        if name == "agent":
            only = pod(what.grace, nodeSelector={"kubernetes.io/hostname": node.name})
            spec = {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": only}}
            fleet.ask("POST", "/apis/apps/v1/namespaces/{ns}/daemonsets", {"metadata": {"name": name}, "spec": spec})
        else:
            mirror = {"kubernetes.io/config.mirror": "by-a-kubelet"} if name == "static" else {}
            fleet.run(name, node.name, what.grace, notes | mirror, app=what.budget)
    fleet.run("done", node.name, notes=program(run_seconds="0"), restartPolicy="Never")
    running(fleet, *(cases.keys() - {"agent"}))
    fleet.budget("web", 1, app="web")
    fleet.ask("DELETE", "/api/v1/namespaces/{ns}/pods/going", {"gracePeriodSeconds": cases["going"].pod.grace})
    of_all_nodes = agents(fleet, node)
    with ThreadPoolExecutor(1) as somebody:
        forced = somebody.submit(force_away, fleet, "unseen")
        [drain] = fleet.preempt(node, window=WINDOW)
        fleet.finish(drain)
        forced.result()

    found = fleet.fates(drain)
    assert {name: (row.verdict, row.exit_code) for name, row in found.items()} == {
        name: (cases[name].verdict, cases[name].code) for name in evictable()
    }
    assert (drain.state, drain.staying, found["served"].budget) == (State.REMOVED, 2 + of_all_nodes, "web")
    assert found["going"].told_at < drain.started_at
    assert drain.removed_at <= drain.deadline
    assert not fleet.there(f"/api/v1/nodes/{node.name}")
    evictions = Counter(one.name for one in told(fleet, "evict"))
    assert evictions == Counter(evictable() - {"going"})
    graces = {one.name: one.body["deleteOptions"]["gracePeriodSeconds"] for one in told(fleet, "evict")}
    most = graces["notebook"]
    assert WINDOW // 2 <= most == found["notebook"].given_grace <= WINDOW - 2
    assert all(min(cases[name].pod.grace, most) - 1 <= grace <= cases[name].pod.grace for name, grace in graces.items())
    assert [(one.name, one.body["gracePeriodSeconds"]) for one in told(fleet, "delete")] == [("served", graces["served"])]
    assert sorted(fleet.entries(drain)) == sorted(
        ["NodeBooting", "TogetherScaledUp", "TogetherPreempted", "GraceCapped", "BudgetOverridden", "DrainFinished"]
    )
    events = fleet.ask("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={node.name}")["items"]
    assert [one["type"] for one in events if one["reason"] == "TogetherPreempted"] == ["Warning"]
    fleet.until(lambda: Entry.objects.filter(drain_id=drain.pk, seen_at__isnull=False).exists())
    fleet.ask("DELETE", "/apis/apps/v1/namespaces/{ns}/daemonsets/agent")


def test_a_pod_that_tolerates_the_cordon_is_told_as_soon_as_it_is_met_and_has_its_verdict(ready: Fleet) -> None:
    """The scheduler puts it on the node that is already draining."""
    fleet, node = ready, ready.node()
    fleet.run("early", node.name, 60, program(exit_seconds="12"))
    running(fleet, "early")
    [drain] = fleet.preempt(node)
    fleet.until(lambda: Drain.objects.get(pk=drain.pk).told_at)
    closed = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    place = {"kubernetes.io/hostname": node.name}
    notes = program(exit_seconds="1", exit_code="3")
    spec = pod(30, nodeSelector=place, tolerations=closed)
    fleet.ask("POST", "/api/v1/namespaces/{ns}/pods", {"metadata": {"name": "late", "annotations": notes}, "spec": spec})
    fleet.finish(drain)
    late = fleet.fates(drain)["late"]
    assert (drain.state, late.verdict, late.exit_code) == (State.REMOVED, Verdict.FINISHED, 3)
    assert drain.cordoned_at < late.told_at <= late.ended_at <= drain.emptied_at
    assert [one.body["deleteOptions"]["gracePeriodSeconds"] for one in told(fleet, "evict", "late")] == [30]
    assert Entry.objects.filter(reason="PodsCameLate", message__startswith=f"late came to {node.name} after").count() == 1


@REAL
def test_the_real_controllers_make_the_pods_anew_where_their_selectors_allow(ready: Fleet) -> None:
    """kubernetes/kubernetes#113278, flyteorg/flyteplugins PR#354: a Job whose pod is preempted has not failed.

    Deployment, StatefulSet and Job come back on the standard node; what asks for preemptible ones waits for the refill; a
    finalizer of somebody's is left alone.
    """
    fleet, node, standard = ready, ready.node(), ready.standard()
    place = anywhere(node, standard)

    def template(app: str, **spec: object) -> Json:
        notes = program(exit_seconds="1", exit_code="3")
        return {"metadata": {"labels": {"app": app}, "annotations": notes}, "spec": pod(8, **spec)}

    def made(kind: str, group: str, name: str, **spec: object) -> None:
        fleet.ask("POST", f"/apis/{group}/namespaces/{{ns}}/{kind}", {"metadata": {"name": name}, "spec": spec})

    match = {app: {"matchLabels": {"app": app}} for app in ("front", "pinned", "db")}
    made("deployments", "apps/v1", "front", selector=match["front"], replicas=2, template=template("front", **place))
    preemptible = {CLASS_LABEL: "preemptible", MINE: fleet.namespace}
    wish = {"affinity": {"nodeAffinity": {PREFERRED: place["affinity"]["nodeAffinity"][PREFERRED]}}}
    made(
        "deployments",
        "apps/v1",
        "pinned",
        selector=match["pinned"],
        template=template("pinned", nodeSelector=preemptible, **wish),
    )
    made("statefulsets", "apps/v1", "db", selector=match["db"], serviceName="db", template=template("db", **place))
    ignore = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
    made(
        "jobs",
        "batch/v1",
        "train",
        backoffLimit=0,
        podFailurePolicy=ignore,
        template=template("train", restartPolicy="Never", **place),
    )
    fleet.run("held", node.name, 8)
    fleet.patch("/api/v1/namespaces/{ns}/pods/held", {"metadata": {"finalizers": ["example.com/hold"]}})

    def up() -> list[str]:
        return sorted(
            one["metadata"]["labels"].get("app", "")
            for one in fleet.pods()
            if one["status"]["phase"] == "Running" and one["spec"]["nodeName"] == node.name
        )

    fleet.until(lambda: up() == ["db", "front", "front", "held", "pinned", "train"])
    before = {one["metadata"]["uid"]: one["metadata"]["name"] for one in fleet.pods() if one["spec"]["nodeName"] == node.name}
    [drain] = fleet.preempt(node)
    fleet.finish(drain)
    assert drain.state == State.REMOVED
    assert {row.verdict for row in fleet.fates(drain).values()} == {Verdict.FINISHED}
    assert fleet.fates(drain).keys() == set(before.values())

    def again() -> dict[str, list[str]]:
        places: dict[str, list[str]] = {}
        apps = {"front", "pinned", "db", "train"}
        for one in fleet.pods():
            app = one["metadata"].get("labels", {}).get("app")
            if app in apps and one["metadata"]["uid"] not in before and one["status"]["phase"] == "Running":
                places.setdefault(app, []).append(one["spec"]["nodeName"])
        return places

    fleet.until(lambda: sum(map(len, again().values())) == 5)
    places = again()
    assert (places["front"], places["db"], places["train"]) == ([standard.name] * 2, [standard.name], [standard.name])
    assert places["pinned"] not in ([standard.name], [node.name])
    job = fleet.ask("GET", "/apis/batch/v1/namespaces/{ns}/jobs/train")["status"]
    assert (job.get("failed", 0), job["active"]) == (0, 1)
    held = fleet.ask("GET", "/api/v1/namespaces/{ns}/pods/held")
    assert held["metadata"]["finalizers"] == ["example.com/hold"]
    fleet.patch("/api/v1/namespaces/{ns}/pods/held", {"metadata": {"finalizers": None}})
    for kind, group, name in (
        ("deployments", "apps", "front"),
        ("deployments", "apps", "pinned"),
        ("statefulsets", "apps", "db"),
        ("jobs", "batch", "train"),
    ):
        fleet.ask("DELETE", f"/apis/{group}/v1/namespaces/{{ns}}/{kind}/{name}", {"propagationPolicy": "Background"})


@REAL
def test_a_new_node_loses_admissions_taints_and_never_more_are_made_than_wanted(ready: Fleet) -> None:
    """kubernetes/autoscaler#687, kubernetes/kubernetes#43709: answers that are lost, machines that take their time."""
    fleet = ready
    made = set(fleet.machines.known)
    fleet.machines.swallow, fleet.machines.boot_seconds = {"launch"}, 2.0
    try:
        fleet.wants(PREEMPTIBLE + 1)
    finally:
        fleet.machines.swallow, fleet.machines.boot_seconds = set(), 0.1
    assert len(fleet.machines.known.keys() - made) == 1
    assert len(fleet.machines.there) == 2 + PREEMPTIBLE == fleet.machine_rows()
    fresh = Node.objects.filter(cluster=fleet.cluster).latest("created_at")
    # A node counts from its own word Ready; Kubernetes' controller takes the taints off a moment later.
    eventually(lambda: not fleet.ask("GET", f"/api/v1/nodes/{fresh.name}")["spec"].get("taints"), 30)
    assert Entry.objects.filter(reason="NodeBooting", subject_name=fresh.name).count() == 1
    set_target(fleet.olu, fleet.cluster, 8 * PREEMPTIBLE)


def test_a_budget_holds_a_scale_down_until_it_lets_go_and_at_the_deadline_nobody_is_killed(ready: Fleet) -> None:
    """berops/claudie#1508, kubernetes/kubernetes#106286: asked again every five seconds, named, and then a person decides."""
    fleet = ready
    first = fleet.node()
    fleet.run("kept", first.name, 8)
    second = fleet.node()
    fleet.run("let", second.name, 8)
    running(fleet, "kept", "let")
    fleet.budget("kept", 1, app="kept")
    fleet.budget("let", 1, app="let")
    held, freed = fleet.scale_down(first, WINDOW), fleet.scale_down(second, WINDOW)
    fleet.until(lambda: Drain.objects.get(pk=freed.pk).note == "held by budget let")
    assert len(told(fleet, "evict", "let")) <= 2
    fleet.patch("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/let", {"spec": {"minAvailable": 0}})
    fleet.finish(held, freed)
    assert (freed.state, fleet.fates(freed)["let"].verdict) == (State.REMOVED, Verdict.FINISHED)
    assert (held.state, held.note) == (State.STOPPED, "held by budget kept")
    assert fleet.ask("GET", "/api/v1/namespaces/{ns}/pods/kept")["status"]["phase"] == "Running"
    assert fleet.ask("GET", f"/api/v1/nodes/{first.name}")["spec"]["unschedulable"] is True
    times = [one.at for one in told(fleet, "evict", "kept")]
    assert all(later - earlier >= timedelta(seconds=4.5) for earlier, later in pairwise(times))
    assert {one.code for one in told(fleet, "evict", "kept")} == {429}
    assert told(fleet, "delete", "kept") == []
    fleet.ask("DELETE", "/api/v1/namespaces/{ns}/pods/kept", {"gracePeriodSeconds": 0})
    fleet.plane.uncordon(first.name)


def test_whoever_opens_a_node_keeps_it_but_not_a_preempted_one(ready: Fleet) -> None:
    """planetlabs/draino#17, openshift/machine-config-operator PR#6028."""
    fleet, node = ready, ready.node()
    fleet.run("mine", node.name, 8)
    running(fleet, "mine")
    fleet.budget("mine", 1, app="mine")
    drain = fleet.scale_down(node, WINDOW)
    fleet.until(lambda: Drain.objects.get(pk=drain.pk).note)
    opened = timezone.now()
    fleet.plane.uncordon(node.name)
    fleet.finish(drain)
    assert (drain.state, drain.note) == (State.STOPPED, "taken back by a person")
    assert [one for one in told(fleet, "evict", "mine") if one.at > opened + timedelta(seconds=2)] == []
    notes = fleet.ask("GET", f"/api/v1/nodes/{node.name}")["metadata"].get("annotations", {})
    assert not [key for key in notes if key.startswith("halftide.io/")]

    [drain] = fleet.preempt(node)
    fleet.until(lambda: Drain.objects.get(pk=drain.pk).told_at)
    fleet.plane.uncordon(node.name)
    fleet.finish(drain)
    assert drain.state == State.REMOVED
    said = Entry.objects.filter(stream=fleet.cluster.stream, reason="NodeUncordoned", subject_uid=node.uid)
    assert said.filter(message__contains="goes anyway").count() == 1


def test_pods_of_a_dead_machine_are_released_once_it_is_gone_for_certain_and_no_earlier(ready: Fleet) -> None:
    """kubernetes/kubernetes#72226, rancher/rke2#3913; aws/karpenter-provider-aws#9226, Azure/AKS#1808 (a finalizer)."""
    fleet, node, standard = ready, ready.node(), ready.standard()
    spec = {
        "selector": {"matchLabels": {"app": "store"}},
        "serviceName": "store",
        "template": {"metadata": {"labels": {"app": "store"}}, "spec": pod(3, **anywhere(node, standard))},
    }
    if fleet.real:
        fleet.ask("POST", "/apis/apps/v1/namespaces/{ns}/statefulsets", {"metadata": {"name": "store"}, "spec": spec})
    else:  # which has none
        fleet.run("store-0", node.name, 3, app="store")
    running(fleet, "store-0")
    [old] = fleet.pods(app="store")
    assert old["spec"]["nodeName"] == node.name
    fleet.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"finalizers": ["example.com/volumes"]}})
    fleet.machines.lose(node.name)
    [drain] = fleet.preempt(node, window=6)
    fleet.until(lambda: "example.com/volumes" in Drain.objects.get(pk=drain.pk).note)
    drain.refresh_from_db()
    assert drain.terminated_at is not None
    assert told(fleet, "delete", "store-0") == []
    assert fleet.fresh().allocated_preemptible_gpus == 8 * fleet.open_nodes().count()
    fleet.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"finalizers": None}})
    fleet.finish(drain)
    assert (drain.state, fleet.fates(drain)["store-0"].verdict) == (State.REMOVED, Verdict.KILLED)
    [released] = told(fleet, "delete", "store-0")
    assert released.body["gracePeriodSeconds"] == 0
    assert released.at > drain.terminated_at
    if fleet.real:
        fleet.until(lambda: [one["metadata"]["uid"] for one in fleet.pods(app="store")] not in ([], [old["metadata"]["uid"]]))
        running(fleet, "store-0")
        assert [one["spec"]["nodeName"] for one in fleet.pods(app="store")] == [standard.name]
        fleet.ask("DELETE", "/apis/apps/v1/namespaces/{ns}/statefulsets/store", {"propagationPolicy": "Background"})


def test_a_node_of_the_same_name_that_is_another_one_is_left_alone(ready: Fleet) -> None:
    """A machine hangs in the middle of its drain, somebody takes its Node away, and another comes up under its name."""
    fleet, node = ready, ready.node()
    fleet.run("first", node.name, 3)
    running(fleet, "first")
    fleet.machines.lose(node.name)
    [drain] = fleet.preempt(node, window=6)
    fleet.until(lambda: Drain.objects.get(pk=drain.pk).told_at)
    fleet.ask("DELETE", f"/api/v1/nodes/{node.name}")
    fleet.until(lambda: not fleet.there(f"/api/v1/nodes/{node.name}"))
    another = fleet.ask("POST", "/api/v1/nodes", {"metadata": {"name": node.name}})
    fleet.run("second", node.name, 3)
    fleet.finish(drain)
    assert drain.state == State.REMOVED
    found = fleet.ask("GET", f"/api/v1/nodes/{node.name}")
    assert (found["metadata"]["uid"], found["spec"].get("unschedulable")) == (another["metadata"]["uid"], None)
    assert not [key for key in found["metadata"].get("annotations", {}) if key.startswith("halftide.io/")]
    assert told(fleet, "evict", "second") == told(fleet, "delete", "second") == []
    assert not fleet.there("/api/v1/namespaces/{ns}/pods/first")
    fleet.ask("DELETE", "/api/v1/namespaces/{ns}/pods/second", {"gracePeriodSeconds": 0})
    fleet.ask("DELETE", f"/api/v1/nodes/{node.name}")


def test_one_stuck_drain_holds_up_no_other_and_a_notice_for_nobody_holds_up_none(ready: Fleet) -> None:
    """aws/aws-node-termination-handler#310, aws/aws-node-termination-handler#272, aws/karpenter-provider-aws#5400: some by
    name, one by its cloud's own taint."""
    fleet = ready
    nodes = list(fleet.open_nodes())
    for number, node in enumerate(nodes):
        fleet.run(f"p{number}", node.name, 8)
    running(fleet, *(f"p{number}" for number in range(len(nodes))))
    fleet.budget("p0", 1, app="p0")
    by_cloud, rest = nodes[-1], nodes[:-1]
    fleet.patch(
        f"/api/v1/nodes/{by_cloud.name}",
        {"spec": {"taints": [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]}},
    )
    drains = fleet.preempt(*rest, Node(name="nobody-1"), fleet.standard())
    assert len(drains) == len(rest)
    drains += [fleet.until(lambda: Drain.objects.filter(node_uid=by_cloud.uid).first())]
    fleet.finish(*drains)
    assert {drain.state for drain in drains} == {State.REMOVED}
    assert max(since(drain.started_at, drain.cordoned_at) for drain in drains) < timedelta(seconds=5)
    assert max(since(drain.started_at, drain.told_at) for drain in drains) < timedelta(seconds=8)
    assert {fate.verdict for drain in drains for fate in fleet.fates(drain).values()} == {
        Verdict.FINISHED,
        Verdict.BUDGET_OVERRIDDEN,
    }
    counted = dict(RefusedNotices.objects.filter(cluster=fleet.cluster).values_list("reason", "count"))
    assert counted == {"unknown": 1, "standard": 1}
    assert not fleet.ask("GET", f"/api/v1/nodes/{fleet.standard().name}")["spec"].get("unschedulable")


class Died(BaseException):
    """A worker's end: nothing that catches errors sees it."""


def dies_at_its_first_eviction(fleet: Fleet) -> OpenDoors:
    """Doors of a worker that sends one eviction and hears no answer; the others of its round never leave it."""

    @asynccontextmanager
    async def doors(keys: Keys) -> AsyncIterator[Doors]:
        async with open_doors(keys, fleet.provider) as found:
            assert found.kube is not None
            evict, one = found.kube.evict, asyncio.Lock()

            async def evict_and_die(*pod: Any) -> None:
                await one.acquire()  # and never given back
                await evict(*pod)
                raise Died

            found.kube.evict = evict_and_die  # type: ignore[method-assign, assignment]
            yield found

    return doors


def test_a_worker_that_dies_and_two_that_do_the_same_tell_each_pod_once(ready: Fleet) -> None:
    """celery/celery#1628, celery/celery#2856, celery/kombu#337: killed after the first eviction, and then every task
    delivered to two workers of two schedulers at once."""
    fleet, node = ready, ready.node()
    pods = [f"of-{number}" for number in range(3)]
    for name in pods:
        fleet.run(name, node.name, 8)
    running(fleet, *pods)
    [drain] = fleet.preempt(node)
    with pytest.raises(Died):
        drive(fleet.cluster.pk, doors=dies_at_its_first_eviction(fleet))
    assert not Drain.objects.filter(pk=drain.pk, told_at__isnull=False).exists()

    def work() -> None:
        fleet.turn()
        connection.close()

    with ThreadPoolExecutor(2) as workers:

        def removed() -> bool:
            for done in [workers.submit(work), workers.submit(work)]:
                done.result()
            return Drain.objects.filter(pk=drain.pk, state=State.REMOVED).exists()

        fleet.until(removed)
    drain.refresh_from_db()
    assert [len(told(fleet, "evict", name)) for name in pods] == [1, 1, 1]
    assert {name: row.verdict for name, row in fleet.fates(drain).items()} == dict.fromkeys(pods, Verdict.FINISHED)
    fleet.wants(PREEMPTIBLE)
    assert len(fleet.machines.tokens) == 1 + PREEMPTIBLE == fleet.machine_rows()


def test_a_pool_that_lost_everything_tries_seldom_says_so_once_and_is_filled_again(ready: Fleet) -> None:
    """kubernetes-sigs/karpenter#3198, aws/karpenter-provider-aws#6643, Azure/AKS#5736: no node is left to read anything from."""
    fleet, start = ready, timezone.now()
    drains = fleet.preempt(*fleet.open_nodes())
    fleet.machines.room(1)
    try:
        fleet.finish(*drains)
        fleet.until(lambda: Pool.objects.filter(tries__gte=2).exists())
        assert {drain.state for drain in drains} == {State.REMOVED}
        assert fleet.fresh().allocated_preemptible_gpus == 0
        assert len(fleet.machines.tokens) == 1
        assert len(fleet.nodes()) == 1
        pool = Pool.objects.get()
        assert pool.next_try_at - pool.waiting_since > timedelta(seconds=10)  # 5 s, and then twice as many
    finally:
        fleet.machines.room(TOTAL)
    fleet.wants(PREEMPTIBLE)
    said = Entry.objects.filter(stream=fleet.cluster.stream, recorded_at__gte=start)
    assert [said.filter(reason=reason).count() for reason in ("WaitingForCapacity", "CapacityReturned")] == [1, 1]


def test_at_the_end_nothing_was_announced_twice_and_no_machine_is_unknown(ready: Fleet) -> None:
    """The whole file's run: no entry lost or doubled, each preemption announced once, every machine is a row."""
    fleet = ready
    for drain in Drain.objects.filter(cluster=fleet.cluster):
        assert Entry.objects.filter(drain_id=drain.pk, reason="TogetherPreempted").count() == (drain.cause == Cause.PREEMPTED)
    said = set(Entry.objects.filter(stream=fleet.cluster.stream).exclude(own_event=None).values_list("own_event", flat=True))
    names = {one["metadata"]["name"] for one in fleet.ask("GET", "/api/v1/namespaces/default/events")["items"]} & said
    created = [one for one in fleet.audit.asked(fleet.account.user) if (one.resource, one.code) == ("events", 201)]
    assert len(created) == len(names)
    alive = {
        str(token)
        for token in Machine.objects.filter(cluster=fleet.cluster, state__in=Machine.ALIVE).values_list("pk", flat=True)
    }
    assert fleet.machines.tokens == alive
    assert {one["metadata"]["uid"] for one in fleet.nodes()} == set(
        Node.objects.filter(cluster=fleet.cluster, machine__isnull=False).values_list("uid", flat=True)
    )
