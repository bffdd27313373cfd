"""A network and an API that misbehave, between Halftide and a real Kubernetes.

For each fault the same is held: nothing is created, deleted or evicted that should not be (the API server's audit log says
it), nothing is asked in a loop, the console says what it cannot see and since when, and afterwards its picture is whole.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Timer
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from console.capacity.drains.cordons import cordon
from console.capacity.models import Drain, PodVerdict
from console.capacity.providers.base import Standing
from console.clusters.models import Cluster, Node, Pod
from console.clusters.secrets import seal
from console.pages.queries import STALE_AFTER
from console.runner.controlplane.files import kubeconfig
from console.sync import tasks
from console.timeline.models import Entry
from tests.controlplane.plane import Json
from tests.real.proxy import Proxy
from tests.real.world import MINE, Fleet
from tests.reports import report

pytestmark = pytest.mark.django_db(transaction=True)

TOTAL = 9
PREEMPTIBLE = 4  # five nodes in all, a page each
WRITES = {"create", "delete", "patch", "update"}
PATHS = ("/nodes", "/pods", "/events")
SHOWN: dict[str, list[str]] = {}  # excerpts of the audit log, by fault


@pytest.fixture(scope="module")
def proxy(fleet: Fleet) -> Iterator[Proxy]:
    """Halftide goes through it from now on."""
    with Proxy(fleet.plane) as between:
        point(fleet, between, fleet.account.token)
        fleet.wants(PREEMPTIBLE)
        yield between
        fleet.watching.stop()


@pytest.fixture(scope="module", autouse=True)
def excerpts(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the audit log held of each fault, kept for people."""
    yield
    text = "\n\n".join(f"## {fault}\n\n" + "\n".join(lines or ["(no write)"]) for fault, lines in SHOWN.items())
    report(request.config, "audit-of-faults.md", f"# What the API server's audit log says of Halftide's writes\n\n{text}")


def point(fleet: Fleet, proxy: Proxy, token: str) -> None:
    text = kubeconfig(proxy.url, fleet.plane.authority.read_bytes(), token)
    Cluster.objects.filter(pk=fleet.cluster.pk).update(kubeconfig=seal(text))


@contextmanager
def nothing_but(fleet: Fleet, name: str, *expected: str, arrivals: bool = True) -> Iterator[None]:
    """Of what Halftide writes meanwhile, the API server was asked exactly this much: `verb resource` for each object.

    Without `arrivals` the Event of a machine that refills does not count, which comes when it comes.
    """
    audit = fleet.plane.audit()
    yield
    asked = [one for one in audit.asked(fleet.account.user) if one.verb in WRITES]
    asked = [one for one in asked if arrivals or not one.name.startswith("halftide-scaled-up")]
    SHOWN[name] = [
        f"{one.at:%H:%M:%S.%f} {one.code} {one.verb} {one.resource}{'/' + one.subresource if one.subresource else ''} {one.name}"
        for one in asked
    ]
    done = Counter(f"{one.verb} {one.subresource or one.resource}" for one in asked if one.code < 300)
    assert done == Counter(expected), SHOWN[name]


def paced(proxy: Proxy, start: Any, verb: str, ends: str) -> int:
    """That no five seconds saw more than one request a second of this kind; how many there were."""
    times = proxy.since(start, verb, ends)
    for first in times:
        assert sum(first <= at < first + timedelta(seconds=5) for at in times) <= 6, times
    return len(times)


def uids(items: list[Json]) -> set[str]:
    return {one["metadata"]["uid"] for one in items}


def whole(fleet: Fleet, seconds: float = 45) -> None:
    """The console has what Kubernetes has: nodes and pods by uid, and how many GPUs count; nothing is said to be amiss."""

    def same() -> bool:
        nodes = fleet.ask("GET", f"/api/v1/nodes?labelSelector={MINE}={fleet.namespace}")["items"]
        pods = [one for one in fleet.pods() if one["spec"].get("nodeName")]
        mine = Node.objects.filter(cluster=fleet.cluster, machine__isnull=False)
        shown = Pod.objects.filter(cluster=fleet.cluster, namespace=fleet.namespace)
        return (
            uids(nodes) == set(mine.values_list("uid", flat=True))
            and uids(pods) == set(shown.values_list("uid", flat=True))
            and fleet.fresh().allocated_preemptible_gpus == 8 * fleet.open_nodes().count()
            and fleet.cluster.unreachable_since is None
        )

    fleet.until(same, seconds)


def said(fleet: Fleet, reason: str, start: Any) -> int:
    return Entry.objects.filter(stream=fleet.cluster.stream, reason=reason, recorded_at__gte=start).count()


def up(fleet: Fleet, name: str) -> Node:
    """A node with a pod that runs."""
    node = fleet.node()
    fleet.run(name, node.name, 8)
    fleet.until(lambda: fleet.ask("GET", f"/api/v1/namespaces/{{ns}}/pods/{name}")["status"]["phase"] == "Running")
    return node


def stir(fleet: Fleet) -> None:
    """Something happens on every watch, so that the one before counts as well again."""
    fleet.run(name := f"stir-{uuid4().hex[:6]}", fleet.open_nodes()[0].name, 1)
    fleet.patch(f"/api/v1/nodes/{fleet.open_nodes()[0].name}", {"metadata": {"annotations": {"example.com/stirred": name}}})
    fleet.until(lambda: Pod.objects.filter(name=name, phase="Running").exists())
    fleet.ask("DELETE", f"/api/v1/namespaces/{{ns}}/pods/{name}", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize("kind", ["gone in stream", "gone", "cut"])
def test_a_watch_that_ends_badly_three_times_is_taken_up_again(fleet: Fleet, proxy: Proxy, kind: str) -> None:
    """apache/airflow#21087, kubernetes-client/python-base#57, kr8s-org/kr8s#476: 410 within 200, 410 at once, half an object."""
    stir(fleet)
    start = timezone.now()
    with nothing_but(fleet, f"watch: {kind}"):
        with proxy.fault(kind, "watch", times=6) as fault:
            fleet.run(name := f"late-{kind.split()[-1]}", fleet.open_nodes()[0].name, 8)
            fleet.until(lambda: fault.hits >= 6, 60)
        fleet.until(lambda: Pod.objects.filter(name=name).exists(), 15)
        whole(fleet)

    def asked(verb: str) -> int:
        return sum(paced(proxy, start, verb, path) for path in PATHS)

    # Whoever failed more than once may still wait for its turn.
    fleet.until(lambda: asked("watch") >= 3 and (kind == "cut" or asked("list") >= 3), 60)
    fleet.ask("DELETE", f"/api/v1/namespaces/{{ns}}/pods/{name}", {"gracePeriodSeconds": 0})


def test_a_frozen_connection_is_noticed_shown_and_outlived(fleet: Fleet, proxy: Proxy) -> None:
    """kubernetes-client/python#1148, nolar/kopf#810: no data, no error, no end. What happened is seen afterwards."""
    stir(fleet)
    whole(fleet)
    node, start = fleet.node(), timezone.now()
    with nothing_but(fleet, "frozen without closing"):
        with proxy.fault("freeze", "watch", "list", "get"):
            fleet.plane.kubectl("cordon", node.name)
            fleet.until(lambda: timezone.now() - fleet.fresh().proved_to > STALE_AFTER, 45)
            assert fleet.cluster.unreachable_since is None, "old is said before lost"
            fleet.until(lambda: fleet.fresh().unreachable_since, 60)
            assert fleet.cluster.unreachable_since - start < timedelta(seconds=60)
            assert not Node.objects.get(pk=node.pk).unschedulable
        fleet.until(lambda: Node.objects.get(pk=node.pk).unschedulable, 60)
        whole(fleet)
    assert said(fleet, "KubernetesUnreachable", start) == said(fleet, "KubernetesBack", start) == 1
    fleet.plane.kubectl("uncordon", node.name)
    fleet.until(lambda: not Node.objects.get(pk=node.pk).unschedulable)


def test_a_list_that_breaks_off_in_its_middle_or_is_late_or_old_removes_nothing(
    fleet: Fleet, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubernetes/kubernetes (continue tokens end after five minutes): page 3 of 5 is gone; then a snapshot from before.

    Between the two UKGovernmentBEIS/inspect_k8s_sandbox#210, skypilot-org/skypilot PR#7469: a list that is too large for its time
    is an error, and no empty cluster.
    """
    monkeypatch.setattr(tasks, "LIST_LIMIT", 3)
    fleet.watching.stop()
    try:
        Cluster.objects.filter(pk=fleet.cluster.pk).update(proved_to=timezone.now() - timedelta(minutes=1))
        tasks.relist_cluster(str(fleet.cluster.pk))
        fleet.patch(f"/api/v1/nodes/{fleet.node().name}", {"metadata": {"annotations": {"example.com/newer": "yes"}}})
        before = set(Node.objects.values_list("uid", flat=True)), set(Pod.objects.values_list("uid", flat=True))
        faults = (("expired", "continue parameter is too old"), ("delay", "takes longer than 3 s"), ("older", "was seen before"))
        for kind, words in faults:
            start = timezone.now()
            Cluster.objects.filter(pk=fleet.cluster.pk).update(proved_to=start - timedelta(minutes=1))
            with nothing_but(fleet, f"list: {kind}"):
                with proxy.fault(kind, "list", ends="/nodes", seconds=4.0) as fault:
                    tasks.relist_cluster(str(fleet.cluster.pk))
                    assert fault.hits
                assert words in fleet.fresh().unreachable_why
                assert (set(Node.objects.values_list("uid", flat=True)), set(Pod.objects.values_list("uid", flat=True))) == before
                tasks.relist_cluster(str(fleet.cluster.pk))
            assert fleet.fresh().unreachable_since is None
    finally:
        fleet.watching.__enter__()
    whole(fleet)


# What a drain sends, in its order: the verb, what its path ends with, and what has been done when it is refused.
SENT = (
    ("get", "/nodes/{node}", ()),
    ("list", "/pods", ()),
    ("patch", "/nodes/{node}", ("create events",)),  # it goes in any case, and people are told
    ("create", "/{pod}/eviction", ("patch nodes",)),
    ("delete", "/pods/{pod}", ()),  # a budget refuses the eviction now
    ("delete", "/nodes/{node}", ("delete pods",)),
)
REFUSED = 3  # times, each


def test_a_drain_that_may_not_do_one_thing_says_so_begins_nothing_else_and_asks_once_a_second(fleet: Fleet, proxy: Proxy) -> None:
    """One drain, 403 on all of its verbs, which are given back one by one, in the order in which it needs them."""
    node = up(fleet, "refused")
    fleet.budget("refused", 1, app="refused")
    rows = [(verb, ends.format(node=node.name, pod="refused"), done) for verb, ends, done in SENT]
    with ExitStack() as armed:
        faults = [armed.enter_context(proxy.fault("forbidden", verb, ends=path)) for verb, path, _ in rows]
        [drain] = fleet.preempt(node)
        for number, (verb, path, done) in enumerate(rows):
            start, enough = timezone.now(), faults[number].hits + REFUSED  # an eviction that is refused is tried as a deletion
            with nothing_but(fleet, f"403 on {verb} {SENT[number][1]}", *done, arrivals=False):
                fleet.until(lambda: faults[number].hits >= enough, 40)  # noqa: B023 - called at once
                fleet.until(lambda: "is forbidden by the proxy" in Drain.objects.get(pk=drain.pk).note)
                if verb != "delete":
                    assert fleet.machines.known[node.machine_id].standing is Standing.RUNNING
            assert paced(proxy, start, verb, path) >= REFUSED
            proxy.lift(faults[number])
        with nothing_but(fleet, "nothing refused any more", "delete nodes", arrivals=False):
            fleet.finish(drain)
    assert (drain.state, fleet.fates(drain)["refused"].verdict) == (Drain.State.REMOVED, PodVerdict.Verdict.BUDGET_OVERRIDDEN)
    fleet.wants(PREEMPTIBLE)
    whole(fleet)


def test_a_node_that_may_not_be_closed_keeps_no_pod_from_its_sigterm(fleet: Fleet, proxy: Proxy) -> None:
    """Decision 0018. The cordon is asked for again each second, and is there before the node goes."""
    node, start = up(fleet, "open"), timezone.now()
    writes = ["create events", "create eviction", "patch nodes", "delete nodes"]
    with nothing_but(fleet, "403 on the cordon for as long as pods are told", *writes, arrivals=False):
        with proxy.fault("forbidden", "patch", ends=f"/nodes/{node.name}"):
            [drain] = fleet.preempt(node)
            fleet.until(lambda: PodVerdict.objects.filter(drain=drain, told_at__isnull=False).exists(), 40)
            drain.refresh_from_db()
            assert (drain.state, drain.cordoned_at) == (Drain.State.ASKED, None)
            assert "is forbidden by the proxy" in drain.note
        fleet.finish(drain)
    told = fleet.fates(drain)["open"]
    assert told.told_at - drain.announced_at >= timedelta(seconds=10)
    assert (drain.state, told.exit_code) == (Drain.State.REMOVED, 143)
    assert paced(proxy, start, "patch", f"/nodes/{node.name}") >= 8
    fleet.wants(PREEMPTIBLE)
    whole(fleet)


def test_a_server_that_asks_to_wait_is_waited_for(fleet: Fleet, proxy: Proxy) -> None:
    """kubernetes/client-go#222, kubernetes/kubernetes#36409: Retry-After is obeyed by each verb of a drain, and by the list of a
    watch that has to begin anew."""
    node, start = up(fleet, "throttled"), timezone.now()
    rows = [(verb, ends.format(node=node.name, pod="throttled")) for verb, ends, _ in SENT if ends != "/pods/{pod}"]
    rows.append(("list", "/nodes"))
    asks = ["patch nodes", "create eviction", "create events", "delete nodes"]
    with nothing_but(fleet, "429 with Retry-After: 2, on each verb once", *asks, arrivals=False), ExitStack() as armed:
        for verb, ends in rows:
            armed.enter_context(proxy.fault("throttle", verb, ends=ends, times=1, seconds=2.0))
        armed.enter_context(proxy.fault("gone in stream", "watch", ends="/nodes", times=1))
        [drain] = fleet.preempt(node)
        fleet.finish(drain)
        assert drain.state == Drain.State.REMOVED
        fleet.wants(PREEMPTIBLE)
        whole(fleet)
    for verb, ends in rows:
        first, second, *_ = proxy.since(start, verb, ends)
        assert second - first >= timedelta(seconds=2), (verb, ends)
    assert len(proxy.since(start, "create", "/throttled/eviction")) == 2


def test_an_eviction_whose_answer_is_lost_is_not_sent_again(fleet: Fleet, proxy: Proxy) -> None:
    """A preemption is announced once and each pod told once, although no answer to the telling arrives."""
    node = up(fleet, "told-once")
    writes = ["patch nodes", "create eviction", "create events", "delete nodes", "create events"]
    with nothing_but(fleet, "the answer to an eviction is lost", *writes):
        with proxy.fault("lost", "create", ends="/eviction", times=1):
            [drain] = fleet.preempt(node)
            fleet.finish(drain)
        assert drain.state == Drain.State.REMOVED
        assert fleet.fates(drain)["told-once"].exit_code == 143
        fleet.wants(PREEMPTIBLE)
        whole(fleet)


def test_a_fault_is_not_spent_on_a_watch_whose_client_has_gone(fleet: Fleet, proxy: Proxy) -> None:
    """The proxy's own: a stream that nobody holds took a fault away from those who are there."""
    path = "/api/v1/namespaces/default/configmaps"
    admin = fleet.plane.client(fleet.plane.token)
    asked = f"{proxy.url}{path}?watch=1&timeoutSeconds=20"
    with admin.stream("GET", asked):
        pass
    with admin.stream("GET", asked) as there:
        with admin.stream("GET", asked):  # whichever of the three is woken first: it is not one that has gone
            pass
        with proxy.fault("gone in stream", "watch", ends="/configmaps", times=1):
            assert any("too old resource version" in line for line in there.iter_lines())


def test_a_slow_write_keeps_what_others_write_meanwhile(fleet: Fleet, proxy: Proxy) -> None:
    """kubernetes/kubernetes#128304, NVIDIA/nodewright#447: a taint and an annotation set between our decision and its arrival."""
    node = fleet.node()
    taint = {"key": "example.com/mine", "value": "yes", "effect": "NoSchedule"}
    other = {"spec": {"taints": [taint]}, "metadata": {"annotations": {"example.com/a": "b"}}}
    with nothing_but(fleet, "delayed patch of a node", "patch nodes"), proxy.fault("delay", "patch", seconds=1.0):
        somebody = Timer(0.4, fleet.patch, [f"/api/v1/nodes/{node.name}", other])
        somebody.start()
        cordon(fleet.olu, fleet.cluster, node, True)
        somebody.join()
    found = fleet.ask("GET", f"/api/v1/nodes/{node.name}")
    assert taint in found["spec"]["taints"]
    assert (found["spec"]["unschedulable"], found["metadata"]["annotations"]["example.com/a"]) == (True, "b")
    fleet.patch(f"/api/v1/nodes/{node.name}", {"spec": {"taints": None}})
    cordon(fleet.olu, fleet.cluster, node, False)
    whole(fleet)


def test_a_token_that_is_refused_is_said_and_a_new_one_heals(fleet: Fleet, proxy: Proxy) -> None:
    """kubernetes-client/python#1768, galaxyproject/galaxy#23187."""
    newer, start = fleet.plane.kubectl("-n", "halftide", "create", "token", "halftide").stdout.strip(), timezone.now()
    with nothing_but(fleet, "401, then a new token"):
        proxy.accepts = newer
        with proxy.fault("refuse", "watch", times=3):  # what was open before is asked for anew
            fleet.until(lambda: "Unauthorized" in fleet.fresh().unreachable_why, 30)
        point(fleet, proxy, newer)
        fleet.until(lambda: fleet.fresh().unreachable_since is None, 30)
        whole(fleet)
    assert paced(proxy, start, "watch", "/nodes") + paced(proxy, start, "list", "/nodes") >= 2
    assert said(fleet, "KubernetesUnreachable", start) == said(fleet, "KubernetesBack", start) == 1
    proxy.accepts = ""


@pytest.mark.parametrize("verb", ["watch", "list"])
def test_a_picture_that_may_not_be_read_is_said_and_nothing_is_begun_on_it(fleet: Fleet, proxy: Proxy, verb: str) -> None:
    """403 on one verb to a good token: lists are answered and watches refused, or a watch has to list anew and may not."""
    start, machines = timezone.now(), len(fleet.machines.known)

    def asked(times: int) -> bool:
        return all(paced(proxy, start, verb, path) >= times for path in PATHS)

    with nothing_but(fleet, f"403 on {verb}"):
        with proxy.fault("forbidden", verb), proxy.fault("gone in stream", "watch", times=3):
            fleet.until(lambda: "forbidden by the proxy" in fleet.fresh().unreachable_why, 40)
            fleet.until(lambda: asked(1), 60)  # whoever failed in the test before this one waits longer for its turn
            assert len(fleet.machines.known) == machines
        if verb == "list":  # whose next try is half a minute away by now: a kubeconfig that is replaced is taken up at once
            point(fleet, proxy, fleet.account.token)
        whole(fleet)
    fleet.until(lambda: asked(2), 60)
    assert said(fleet, "KubernetesUnreachable", start) == said(fleet, "KubernetesBack", start) == 1


def test_what_went_while_nobody_could_look_is_taken_away_and_said(fleet: Fleet, proxy: Proxy) -> None:
    """lensapp/lens#2375: a node and a pod are deleted while the connection is refused."""
    stir(fleet)
    node = up(fleet, "ghost")
    fleet.machines.lose(node.name)
    start, machines = timezone.now(), len(fleet.machines.known)
    outage = "connection refused, a node and a pod deleted meanwhile"
    with proxy.fault("refuse", "watch", "list"), nothing_but(fleet, outage):
        fleet.ask("DELETE", "/api/v1/namespaces/{ns}/pods/ghost", {"gracePeriodSeconds": 0})
        fleet.ask("DELETE", f"/api/v1/nodes/{node.name}")
        fleet.until(lambda: fleet.fresh().unreachable_since, 30)
        assert Node.objects.filter(pk=node.pk).exists()
        assert "as of" in Entry.objects.get(reason="KubernetesUnreachable", recorded_at__gte=start).message
        assert len(fleet.machines.known) == machines, "nothing is launched on an old picture"
        fleet.machines.end(node.machine_id)
    fleet.until(lambda: said(fleet, "KubernetesBack", start), 60)
    assert not Node.objects.filter(pk=node.pk).exists()
    assert (said(fleet, "KubernetesUnreachable", start), said(fleet, "KubernetesBack", start)) == (1, 1)
    assert said(fleet, "NodeLost", start) == 1
    assert paced(proxy, start, "watch", "/nodes") + paced(proxy, start, "list", "/nodes") >= 2
    whole(fleet)
