"""Least rights: `deploy/rbac.yaml` is enough, nothing in it is too much, and what is missing is said in the console.

The last test of the file looks at the audit log of all of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from console.capacity.drains.cordons import cordon
from console.capacity.models import Drain
from console.capacity.reclaims.previewing import read_budgets
from console.clusters.models import Cluster, Machine, Node
from console.clusters.secrets import seal
from console.http import Unavailable
from console.kube.marks import CLASS_LABEL
from console.sync import tasks
from console.timeline.models import Entry
from tests.controlplane.plane import Json
from tests.real.world import Fleet, Watching, rules
from tests.simulator.conftest import eventually

pytestmark = pytest.mark.django_db(transaction=True)

TOTAL = 7
PREEMPTIBLE = 3
READS = {"get", "list", "watch"}
OBSERVE, ACT = rules("halftide-observe"), rules("halftide-act")
EVERY = [*OBSERVE, *ACT]


def key(rule: Json) -> str:
    """A rule in one word: what it lets do to what."""
    [resource] = rule["resources"]
    return f"{'+'.join(rule['verbs'])} {resource}"


def granted() -> set[tuple[str, str]]:
    return {(verb, resource) for rule in EVERY for resource in rule["resources"] for verb in rule["verbs"]}


def test_the_role_that_observes_has_no_write_verb() -> None:
    assert {verb for rule in OBSERVE for verb in rule["verbs"]} == READS
    assert all("*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]] for rule in EVERY)


def test_with_these_rights_everything_works(fleet: Fleet) -> None:
    """Watch, arrivals, preview, a person's cordon, a label put back, a silent node, a drain of each kind of telling, a relist."""
    fleet.wants(PREEMPTIBLE)
    node, quiet = fleet.node(), fleet.open_nodes().last()
    assert read_budgets(fleet.cluster, [node.name]).unknown == ""
    for on in (True, False):
        cordon(fleet.olu, fleet.cluster, node, on)
    fleet.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": {CLASS_LABEL: None}}})
    fleet.until(lambda: fleet.ask("GET", f"/api/v1/nodes/{node.name}")["metadata"]["labels"].get(CLASS_LABEL) == "preemptible")
    silent(fleet, quiet)
    fleet.until(lambda: "get leases" in {f"{one.verb} {one.resource}" for one in fleet.audit.asked(fleet.account.user)})
    fleet.run("served", node.name, 8)
    fleet.run("plain", node.name, 8)
    fleet.until(lambda: [one["status"]["phase"] for one in fleet.pods()] == ["Running"] * 2)
    fleet.budget("served", 1, app="served")
    [drain] = fleet.preempt(node)
    fleet.finish(drain)
    assert drain.state == Drain.State.REMOVED
    assert not Entry.objects.filter(reason__in=["KubernetesRefused", "EventsUnread", "KubernetesUnreachable"]).exists()
    fleet.wants(PREEMPTIBLE)


def silent(fleet: Fleet, node: Node, status: str = "Unknown") -> None:
    """As the node controller writes it of a machine that is not heard of."""
    path, found = f"/api/v1/nodes/{node.name}/status", fleet.ask("GET", f"/api/v1/nodes/{node.name}")
    others = [one for one in found["status"]["conditions"] if one["type"] != "Ready"]
    condition = {
        "type": "Ready",
        "status": status,
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }
    fleet.patch(path, {"status": {"conditions": [*others, condition]}})


@contextmanager
def without(fleet: Fleet, rule: Json) -> Iterator[None]:
    """Halftide with one rule less; afterwards with all of them again."""
    account = fleet.plane.account(fleet.namespace, *(one for one in EVERY if one is not rule), name=f"less-{EVERY.index(rule)}")
    mine = Cluster.objects.filter(pk=fleet.cluster.pk)
    mine.update(kubeconfig=seal(account.kubeconfig))
    try:
        yield
    finally:
        mine.update(kubeconfig=seal(fleet.account.kubeconfig))


def relist(fleet: Fleet) -> None:
    """What beat does where nobody watches, a minute after the last good look."""
    Cluster.objects.filter(pk=fleet.cluster.pk).update(proved_to=timezone.now() - timedelta(seconds=60))
    tasks.relist_cluster(str(fleet.cluster.pk))


def unread(kind: str) -> Callable[[Fleet], None]:
    def check(fleet: Fleet) -> None:
        nodes = fleet.open_nodes().count()
        relist(fleet)
        assert f"Kubernetes says: {kind} is forbidden" in fleet.fresh().unreachable_why
        assert fleet.open_nodes().count() == nodes, "what cannot be seen is not gone"

    return check


def untold_events(fleet: Fleet) -> None:
    relist(fleet)
    assert "events is forbidden" in Entry.objects.get(reason="EventsUnread").message
    assert fleet.fresh().unreachable_since is None


def no_preview(fleet: Fleet) -> None:
    assert "poddisruptionbudgets.policy is forbidden" in read_budgets(fleet.fresh(), [fleet.node().name]).unknown


def no_lease(fleet: Fleet) -> None:
    node = fleet.node()
    silent(fleet, node)
    relist(fleet)
    said = Entry.objects.get(reason="KubernetesRefused").message
    assert said.startswith("Halftide may not read when a silent node was last known to live in ")
    assert "leases.coordination.k8s.io" in said
    silent(fleet, node, "True")
    relist(fleet)


def no_cordon(fleet: Fleet) -> None:
    node = fleet.node()
    with pytest.raises(Unavailable, match=r"was not changed\. Kubernetes says: nodes .* is forbidden"):
        cordon(fleet.olu, fleet.fresh(), node, True)
    assert not Node.objects.get(pk=node.pk).unschedulable


def drain_says(words: str, *, budget: bool = False, down: bool = False) -> Callable[[Fleet], Drain]:
    """A drain goes as far as it may, and says what it may not. `down`: of a scale-down, which deletes no pod."""

    def check(fleet: Fleet) -> Drain:
        node = fleet.node()
        name = f"p-{node.name}"
        fleet.run(name, node.name, 5)
        fleet.until(lambda: fleet.ask("GET", f"/api/v1/namespaces/{{ns}}/pods/{name}")["status"]["phase"] == "Running")
        if budget:
            fleet.budget(name, 1, app=name)
        [drain] = [fleet.scale_down(node)] if down else fleet.preempt(node)
        fleet.until(lambda: words in Drain.objects.get(pk=drain.pk).note)
        return drain

    return check


# What people see with the rule taken away. A drain that is given back goes on once the rule is there again.
FAILS: dict[str, Callable[[Fleet], Drain | None]] = {
    "get+list+watch nodes": unread("nodes"),
    "list+watch pods": unread("pods"),
    "list+watch events": untold_events,
    "list poddisruptionbudgets": no_preview,
    "get leases": no_lease,
    "patch nodes": no_cordon,
    "delete nodes": drain_says('cannot delete resource "nodes"'),
    "create pods/eviction": drain_says('cannot create resource "pods/eviction"', down=True),
    "delete pods": drain_says('cannot delete resource "pods"', budget=True),
    "create events": drain_says('cannot create resource "events"'),
}


def test_every_rule_has_something_that_fails_without_it() -> None:
    assert FAILS.keys() == {key(rule) for rule in EVERY}


@pytest.mark.parametrize("rule", EVERY, ids=key)
def test_without_one_rule_its_part_fails_and_says_so_and_nothing_else_does(fleet: Fleet, rule: Json) -> None:
    fleet.watching.stop()
    relist(fleet)
    fleet.until(lambda: relist(fleet) or fleet.open_nodes().count() >= 2)
    with without(fleet, rule):
        drain = FAILS[key(rule)](fleet)
    if drain is not None:
        fleet.finish(drain)
        assert drain.state == Drain.State.REMOVED
    relist(fleet)
    assert (fleet.fresh().unreachable_since, fleet.cluster.unreachable_why) == (None, "")
    assert Machine.objects.filter(cluster=fleet.cluster, state__in=Machine.ALIVE).count() == len(fleet.machines.there)


def test_a_cluster_is_connected_by_its_kubeconfig_read_and_never_written_to(fleet: Fleet) -> None:
    """With the role that observes and no other; what leads nowhere is refused with a sentence."""
    account = fleet.plane.account(fleet.namespace, *OBSERVE, name="observer")
    blind = fleet.plane.account(fleet.namespace, *ACT, name="blind")
    place = {"project": fleet.cluster.project.slug, "region": fleet.pool.region_id, "gpu_type": fleet.pool.gpu_type_id}
    with pytest.raises(CommandError, match=r"leads to no cluster that can be read\. Kubernetes says: nodes is forbidden"):
        call_command("connect", "prod", **place, stdin=StringIO(blind.kubeconfig))
    for _ in range(2):  # the second time it is known, and gets another way in
        call_command("connect", "prod", **place, stdin=StringIO(account.kubeconfig), stdout=StringIO())
    row = Cluster.objects.get(name="prod")
    assert (row.mode, row.kubernetes_version[:2]) == (Cluster.Mode.OBSERVE, "v1")
    with Watching():
        eventually(lambda: row.nodes.filter(ready=True).count() == fleet.cluster.nodes.filter(ready=True).count() > 0, 30)
    assert {one.verb for one in fleet.audit.asked(account.user)} == READS
    said = Entry.objects.filter(stream=row.stream).exclude(actor_kind="kubernetes").order_by("revision")
    assert list(said.values_list("reason", flat=True)[:2]) == ["ClusterConnected", "KubeconfigReplaced"]


def test_the_audit_log_shows_all_of_these_rights_used_and_no_other_asked_for(fleet: Fleet) -> None:
    fleet.watching.stop()  # a watch is there once it has ended
    asked = fleet.audit.asked(fleet.account.user)
    used = {(one.verb, f"{one.resource}/{one.subresource}" if one.subresource else one.resource) for one in asked if one.resource}
    assert used == granted()
    assert [one for one in asked if one.code == 403] == []
    assert {one.uri for one in asked if not one.resource} == {"/version"}
