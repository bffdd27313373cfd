"""The script of real kubectl commands: exit codes, and the columns and words that people's scripts look for."""

import re
import threading
import time
from collections.abc import Callable

import pytest

from tests.contract.kubectl import Kubectl, Ran
from tests.simulator.conftest import Api, Simulation, eventually, pod

POD = """
apiVersion: v1
kind: Pod
metadata: {name: box, labels: {app: box}}
spec:
  terminationGracePeriodSeconds: 5
  nodeSelector: {lab: NODE}
  containers: [{name: main, image: "registry.example/box:1", resources: {limits: {nvidia.com/gpu: 2}}}]
"""
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      nodeSelector: {lab: NODE}
      containers: [{name: main, image: "registry.example/agent:1"}]
"""


@pytest.fixture
def manifest(node: str) -> str:
    return POD.replace("NODE", node)


@pytest.fixture
def bare(kubectl: Kubectl, either: Api, node: str) -> Callable[[str], None]:
    """Makes a pod without a controller and waits until it runs."""

    def make(name: str) -> None:
        made = either.post(f"/api/v1/namespaces/{kubectl.namespace}/pods", pod(name, gpus=1, nodeSelector={"lab": node}))
        assert made.status_code == 201
        assert kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=20s").code == 0

    return make


def test_get_shows_nodes_as_people_know_them(kubectl: Kubectl, node: str) -> None:
    ran = kubectl("get", "nodes", "-l", f"lab={node}")
    assert ran.code == 0
    assert ran.heads == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert ran.out.splitlines()[1].split()[:3] == [node, "Ready", "<none>"]
    wide = kubectl("get", "no", "-o", "wide")
    assert wide.heads[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert re.search(r" 127\.\d+\.\d+\.\d+ ", wide.out)
    assert kubectl("get", "node", node, "-o", "jsonpath={.status.allocatable.nvidia\\.com/gpu}").out == "8"
    missing = kubectl("get", "node", "nope")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): nodes "nope" not found\n')


def test_labels_annotations_and_taints_are_set_and_taken_off(kubectl: Kubectl, node: str) -> None:
    assert kubectl("label", "node", node, "team=blue").out == f"node/{node} labeled\n"
    assert kubectl("label", "node", node, "team=red").code == 1
    assert kubectl("get", "nodes", "-l", f"team=blue,lab={node}", "-o", "name").out == f"node/{node}\n"
    assert kubectl("label", "node", node, "team-").out == f"node/{node} unlabeled\n"
    assert kubectl("annotate", "node", node, "note=x").code == 0
    assert kubectl("taint", "node", node, "a=b:NoSchedule", "c=d:NoExecute").out == f"node/{node} tainted\n"
    assert kubectl("taint", "node", node, "a=b:NoSchedule-").out == f"node/{node} untainted\n"
    assert kubectl("get", "node", node, "-o", "jsonpath={.spec.taints[*].key}").out == "c"
    assert kubectl("taint", "node", node, "c=d:NoExecute-").code == 0


def test_cordon_and_uncordon_say_what_they_did(kubectl: Kubectl, node: str) -> None:
    assert kubectl("cordon", node).out == f"node/{node} cordoned\n"
    assert kubectl("cordon", node).out == f"node/{node} already cordoned\n"
    assert kubectl("get", "node", node).out.splitlines()[1].split()[1] == "Ready,SchedulingDisabled"
    eventually(lambda: "node.kubernetes.io/unschedulable" in kubectl("get", "node", node, "-o", "yaml").out)
    assert kubectl("uncordon", node).out == f"node/{node} uncordoned\n"


def test_a_pod_is_created_waited_for_described_and_deleted(kubectl: Kubectl, node: str, manifest: str) -> None:
    assert kubectl("apply", "-f", "-", feed=manifest).out == "pod/box created\n"
    assert kubectl("wait", "--for=condition=Ready", "pod/box", "--timeout=20s").out == "pod/box condition met\n"
    assert kubectl("apply", "-f", "-", feed=manifest.replace("gpu: 2", 'gpu: "2"')).out == "pod/box configured\n"
    assert kubectl("apply", "-f", "-", feed=manifest.replace("gpu: 2", 'gpu: "2"')).out == "pod/box unchanged\n"
    ran = kubectl("get", "pods", "-o", "wide")
    assert ran.heads == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert ran.out.splitlines()[1].split()[:4] == ["box", "1/1", "Running", "0"]
    described = kubectl("describe", "pod", "box")
    assert described.code == 0
    order = [described.out.index(f"  {reason}  ") for reason in ("Scheduled", "Pulled", "Created", "Started")]
    assert order == sorted(order)
    assert re.search(r"nvidia.com/gpu\s+2\s+2", kubectl("describe", "node", node).out)
    assert kubectl("create", "-f", "-", feed=manifest).code == 1
    assert kubectl("delete", "pod", "box").out == f'pod "box" deleted from {kubectl.namespace} namespace\n'
    assert kubectl("get", "pod", "box").code == 1
    assert kubectl("get", "pods").err == f"No resources found in {kubectl.namespace} namespace.\n"


def test_a_drain_evicts_waits_and_leaves_daemon_sets(kubectl: Kubectl, node: str, bare: Callable[[str], None]) -> None:
    bare("bare")
    assert kubectl("create", "-f", "-", feed=AGENT.replace("NODE", node)).out == "daemonset.apps/agent created\n"
    assert kubectl("rollout", "status", "ds/agent", "--timeout=20s").out.endswith('daemon set "agent" successfully rolled out\n')
    refused = kubectl("drain", node)
    assert refused.code == 1
    daemons = r"cannot delete DaemonSet-managed Pods \(use --ignore-daemonsets to ignore\): (\S+, )?"
    assert re.search(f"{daemons}{kubectl.namespace}/agent-", refused.err)
    assert f"(use --force to override): {kubectl.namespace}/bare" in refused.err
    drained = kubectl("drain", node, "--ignore-daemonsets", "--force", "--timeout=30s")
    assert drained.code == 0
    assert "pod/bare evicted" in drained.out
    assert drained.out.endswith(f"node/{node} drained\n")
    assert "agent-" in kubectl("get", "pods").out
    kubectl("uncordon", node)


def test_a_drain_is_held_by_a_budget_until_its_time_is_over(kubectl: Kubectl, node: str, manifest: str) -> None:
    """kubernetes/kubernetes#106286: kubectl too goes on asking."""
    assert kubectl("create", "pdb", "b", "--selector=app=box", "--min-available=1").code == 0
    kubectl("apply", "-f", "-", feed=manifest)
    kubectl("wait", "--for=condition=Ready", "pod/box", "--timeout=20s")
    eventually(lambda: kubectl("get", "pdb", "b", "-o", "jsonpath={.status.currentHealthy}").out == "1")
    assert kubectl("get", "pdb", "b", "--no-headers").out.split()[:4] == ["b", "1", "N/A", "0"]
    held = kubectl("drain", node, "--ignore-daemonsets", "--force", "--timeout=3s")
    assert held.code == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in held.err
    kubectl("uncordon", node)


def test_events_are_followed_as_they_come(kubectl: Kubectl, node: str, manifest: str) -> None:
    follower = kubectl.start("get", "events", "-w")
    kubectl("create", "-f", "-", feed=manifest)
    kubectl("wait", "--for=condition=Ready", "pod/box", "--timeout=20s")
    time.sleep(0.5)
    follower.terminate()
    out = follower.communicate()[0]
    assert re.split(r"\s{2,}", out.splitlines()[0]) == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert re.search(r"Normal\s+Started\s+pod/box\s+Container started", out)
    assert kubectl("events", "--for", "pod/box").code == 0


def test_waiting_for_a_reclaimed_node_ends_well(simulation: Simulation, kubectl: Kubectl, either: Api, name: str) -> None:
    """The order of a reclaim: terminate at the provider, then delete the Node; who waits for that gets 0."""
    machine = simulation.node(either, name)
    result: list[Ran] = []
    words = ("wait", "--for=delete", f"node/{name}", "--timeout=320s")
    waiter = threading.Thread(target=lambda: result.append(kubectl(*words, seconds=330)))
    waiter.start()
    time.sleep(1)
    simulation.control("DELETE", f"machines/{machine['token']}")
    eventually(lambda: simulation.control("GET", f"machines/{machine['token']}").json()["state"] == "terminated")
    assert waiter.is_alive()
    assert kubectl("delete", "node", name).out == f'node "{name}" deleted\n'
    waiter.join(20)
    assert (result[0].code, result[0].out) == (0, f"node/{name} condition met\n")


def test_other_verbs_work_too(kubectl: Kubectl, either: Api) -> None:
    lab = f"{kubectl.namespace}-lab"
    made = kubectl("create", "namespace", lab)
    assert (made.code, made.out) == (0, f"namespace/{lab} created\n"), made.err
    assert kubectl("create", "secret", "generic", "key", "-n", lab, "--from-literal=a=b").code == 0
    assert kubectl("get", "secret", "key", "-n", lab, "-o", "jsonpath={.data.a}").out == "Yg=="
    assert kubectl("create", "configmap", "map", "-n", lab, "--from-literal=a=b").code == 0
    patched = kubectl("patch", "configmap", "map", "-n", lab, "-p", '{"data":{"a":"c"}}')
    assert patched.out == "configmap/map patched\n"
    assert kubectl("replace", "-n", lab, "-f", "-", feed=kubectl("get", "cm", "map", "-n", lab, "-o", "yaml").out).code == 0
    assert "poddisruptionbudgets" in kubectl("api-resources").out
    assert kubectl("version").out.splitlines()[-1] == "Server Version: v1.36.3"
    assert kubectl("get", "all", "-A").code == 0
    assert kubectl("delete", "namespace", lab, "--timeout=30s").code == 0
    assert either.get(f"/api/v1/namespaces/{lab}").status_code == 404


def test_a_drain_can_delete_instead_of_evict(kubectl: Kubectl, node: str, bare: Callable[[str], None]) -> None:
    """kubectl's typed clients send protobuf: here the DeleteOptions, elsewhere whole objects."""
    bare("bare")
    drained = kubectl("drain", node, "--ignore-daemonsets", "--force", "--disable-eviction", "--grace-period=7", "--timeout=30s")
    assert (drained.code, "pod/bare deleted" in drained.out) == (0, True), drained.err


def test_a_budget_is_created_by_its_own_command(kubectl: Kubectl, either: Api) -> None:
    budgets = f"/apis/policy/v1/namespaces/{kubectl.namespace}/poddisruptionbudgets"
    assert kubectl("create", "pdb", "half", "--selector=app=web", "--min-available=50%").code == 0
    spec = either.get(f"{budgets}/half").json()["spec"]
    assert spec == {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    assert kubectl("create", "pdb", "one", "--selector=app=web", "--max-unavailable=1").code == 0
    assert either.get(f"{budgets}/one").json()["spec"]["maxUnavailable"] == 1
