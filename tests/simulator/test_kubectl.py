"""The script of real kubectl commands: exit codes, and the columns and words that people's scripts look for."""

import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.simulator.conftest import Api, Simulation, eventually, pod


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def heads(self) -> list[str]:
        return re.split(r"\s{2,}", self.out.splitlines()[0].strip())


class Kubectl:
    """kubectl, pointed at one cluster."""

    def __init__(self, program: str, server: str, home: Path) -> None:
        self.environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        self._base = [program, "--server", server]
        self.home = home

    def __call__(self, *words: str, feed: str | None = None, seconds: float = 60) -> Ran:
        run = subprocess.run(
            [*self._base, *words], capture_output=True, text=True, input=feed, timeout=seconds, env=self.environment, check=False
        )
        return Ran(run.returncode, run.stdout, run.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [*self._base, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment)


@pytest.fixture
def kube(kubectl_program: Path, api: Api, tmp_path: Path) -> Kubectl:
    return Kubectl(str(kubectl_program), api.url, tmp_path)


@pytest.fixture
def node(simulation: Simulation, api: Api) -> str:
    simulation.node(api, "gpu-dp-1", compute_class="standard", labels={"halftide.io/machine": "m-1"})
    return "gpu-dp-1"


MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: box, labels: {app: box}}
spec:
  terminationGracePeriodSeconds: 5
  containers: [{name: main, image: "registry.example/box:1", resources: {limits: {nvidia.com/gpu: 2}}}]
"""


def test_get_shows_nodes_as_the_real_one_does(kube: Kubectl, node: str) -> None:
    ran = kube("get", "nodes")
    assert ran.code == 0
    assert ran.heads == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert ran.out.splitlines()[1].split()[:3] == [node, "Ready", "<none>"]
    wide = kube("get", "no", "-o", "wide")
    assert wide.heads[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert re.search(r" 127\.\d+\.\d+\.\d+ ", wide.out)
    assert kube("get", "node", node, "-o", "jsonpath={.status.allocatable.nvidia\\.com/gpu}").out == "8"
    missing = kube("get", "node", "nope")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): nodes "nope" not found\n')


def test_labels_annotations_and_taints_are_set_and_taken_off(kube: Kubectl, node: str) -> None:
    assert kube("label", "node", node, "team=blue").out == f"node/{node} labeled\n"
    assert kube("label", "node", node, "team=red").code == 1
    assert kube("get", "nodes", "-l", "team=blue", "-o", "name").out == f"node/{node}\n"
    assert kube("label", "node", node, "team-").out == f"node/{node} unlabeled\n"
    assert kube("annotate", "node", node, "note=x").code == 0
    assert kube("taint", "node", node, "a=b:NoSchedule", "c=d:NoExecute").out == f"node/{node} tainted\n"
    assert kube("taint", "node", node, "a=b:NoSchedule-").out == f"node/{node} untainted\n"
    assert kube("get", "node", node, "-o", "jsonpath={.spec.taints[*].key}").out == "c"
    assert kube("taint", "node", node, "c=d:NoExecute-").code == 0


def test_cordon_and_uncordon_say_what_they_did(kube: Kubectl, node: str) -> None:
    assert kube("cordon", node).out == f"node/{node} cordoned\n"
    assert kube("cordon", node).out == f"node/{node} already cordoned\n"
    assert kube("get", "node", node).out.splitlines()[1].split()[1] == "Ready,SchedulingDisabled"
    eventually(lambda: "node.kubernetes.io/unschedulable" in kube("get", "node", node, "-o", "yaml").out)
    assert kube("uncordon", node).out == f"node/{node} uncordoned\n"


def test_a_pod_is_created_waited_for_described_and_deleted(kube: Kubectl, node: str) -> None:
    assert kube("apply", "-f", "-", feed=MANIFEST).out == "pod/box created\n"
    assert kube("apply", "-f", "-", feed=MANIFEST).out == "pod/box unchanged\n"
    assert kube("wait", "--for=condition=Ready", "pod/box", "--timeout=20s").out == "pod/box condition met\n"
    ran = kube("get", "pods", "-o", "wide")
    assert ran.heads == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert ran.out.splitlines()[1].split()[:4] == ["box", "1/1", "Running", "0"]
    described = kube("describe", "pod", "box")
    assert described.code == 0
    order = [described.out.index(f"  {reason}  ") for reason in ("Scheduled", "Pulled", "Created", "Started")]
    assert order == sorted(order)
    assert re.search(r"nvidia.com/gpu\s+2\s+2", kube("describe", "node", node).out)
    assert kube("logs", "box").code == 0
    assert kube("create", "-f", "-", feed=MANIFEST).code == 1
    assert kube("delete", "pod", "box").out == 'pod "box" deleted from default namespace\n'
    assert kube("get", "pod", "box").code == 1
    assert kube("get", "pods").err == "No resources found in default namespace.\n"


def test_a_drain_evicts_waits_and_leaves_daemon_sets(kube: Kubectl, api: Api, node: str) -> None:
    api.post("/api/v1/namespaces/default/pods", pod("bare", gpus=1))
    kube("wait", "--for=condition=Ready", "pod/bare", "--timeout=20s")
    eventually(lambda: kube("get", "pods", "-n", "monitoring", "--no-headers").out.split()[1:3] == ["1/1", "Running"])
    refused = kube("drain", node)
    assert refused.code == 1
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): monitoring/gpu-metrics" in refused.err
    assert "cannot delete Pods that declare no controller (use --force to override): default/bare" in refused.err
    drained = kube("drain", node, "--ignore-daemonsets", "--force", "--timeout=30s")
    assert drained.code == 0
    assert "pod/bare evicted" in drained.out
    assert drained.out.endswith(f"node/{node} drained\n")
    assert "gpu-metrics" in kube("get", "pods", "-A").out
    kube("uncordon", node)


def test_a_drain_is_held_by_a_budget_until_its_time_is_over(kube: Kubectl, api: Api, node: str) -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "box"}}}}
    api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    kube("apply", "-f", "-", feed=MANIFEST)
    kube("wait", "--for=condition=Ready", "pod/box", "--timeout=20s")
    eventually(lambda: kube("get", "pdb", "b", "--no-headers").out.split()[:4] == ["b", "1", "N/A", "0"])
    held = kube("drain", node, "--ignore-daemonsets", "--force", "--timeout=3s")
    assert held.code == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in held.err
    kube("uncordon", node)


def test_events_are_followed_as_they_come(kube: Kubectl, node: str) -> None:
    follower = kube.start("get", "events", "-w")
    time.sleep(1)
    kube("cordon", node)
    time.sleep(1)
    follower.terminate()
    out = follower.communicate()[0]
    assert re.split(r"\s{2,}", out.splitlines()[0]) == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert re.search(rf"Normal\s+NodeNotSchedulable\s+node/{node}", out.splitlines()[-1])
    assert kube("events", "--for", f"node/{node}").code == 0


def test_waiting_for_a_reclaimed_node_ends_well(simulation: Simulation, kube: Kubectl, api: Api) -> None:
    """The order of a reclaim: terminate at the provider, then delete the Node; who waits for that gets 0."""
    machine = simulation.node(api, "gpu-preemptible-dp-9")
    result: list[Ran] = []
    words = ("wait", "--for=delete", "node/gpu-preemptible-dp-9", "--timeout=320s")
    waiter = threading.Thread(target=lambda: result.append(kube(*words, seconds=330)))
    waiter.start()
    time.sleep(1)
    simulation.control("DELETE", f"machines/{machine['token']}")
    eventually(lambda: simulation.control("GET", f"machines/{machine['token']}").json()["state"] == "terminated")
    assert waiter.is_alive()
    assert kube("delete", "node", "gpu-preemptible-dp-9").out == 'node "gpu-preemptible-dp-9" deleted\n'
    waiter.join(20)
    assert (result[0].code, result[0].out) == (0, "node/gpu-preemptible-dp-9 condition met\n")


def test_other_verbs_work_too(kube: Kubectl, api: Api) -> None:
    made = kube("create", "namespace", "lab")
    assert (made.code, made.out) == (0, "namespace/lab created\n"), made.err
    assert kube("create", "secret", "generic", "key", "-n", "lab", "--from-literal=a=b").code == 0
    assert kube("get", "secret", "key", "-n", "lab", "-o", "jsonpath={.data.a}").out == "Yg=="
    assert kube("create", "configmap", "map", "-n", "lab", "--from-literal=a=b").code == 0
    patched = kube("patch", "configmap", "map", "-n", "lab", "-p", '{"data":{"a":"c"}}')
    assert patched.out == "configmap/map patched\n"
    assert kube("replace", "-f", "-", feed=kube("get", "cm", "map", "-n", "lab", "-o", "yaml").out).code == 0
    assert "poddisruptionbudgets" in kube("api-resources").out
    assert kube("version").out.splitlines()[-1] == "Server Version: v1.36.3"
    assert kube("get", "all", "-A").code == 0
    assert kube("delete", "namespace", "lab", "--timeout=30s").code == 0
    assert api.get("/api/v1/namespaces/lab").status_code == 404


def test_a_drain_can_delete_instead_of_evict(kube: Kubectl, api: Api, node: str) -> None:
    """kubectl's typed clients send protobuf: here the DeleteOptions, elsewhere whole objects."""
    api.post("/api/v1/namespaces/default/pods", pod("bare"))
    kube("wait", "--for=condition=Ready", "pod/bare", "--timeout=20s")
    drained = kube("drain", node, "--ignore-daemonsets", "--force", "--disable-eviction", "--grace-period=7", "--timeout=30s")
    assert (drained.code, "pod/bare deleted" in drained.out) == (0, True), drained.err


def test_a_budget_is_created_by_its_own_command(kube: Kubectl, api: Api) -> None:
    assert kube("create", "pdb", "half", "--selector=app=web", "--min-available=50%").code == 0
    spec = api.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/half").json()["spec"]
    assert spec == {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    assert kube("create", "pdb", "one", "--selector=app=web", "--max-unavailable=1").code == 0
    assert api.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/one").json()["spec"]["maxUnavailable"] == 1
