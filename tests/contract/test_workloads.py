"""What people do with workloads: explain, apply, roll out, wait. By kubectl and by the official Python client, without flags."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.env import ROOT
from tests.contract import openapi
from tests.contract.kubectl import Kubectl
from tests.controlplane.plane import Plane
from tests.simulator.conftest import Api, eventually

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {lab: NODE}
      terminationGracePeriodSeconds: 5
      containers: [{name: main, image: "registry.example/web:1"}]
"""
OUT = 'deployment "web" successfully rolled out\n'


@pytest.fixture
def web(kubectl: Kubectl, node: str) -> str:
    """A Deployment of two, rolled out; its manifest."""
    manifest = WEB.replace("NODE", node)
    assert kubectl("apply", "-f", "-", feed=manifest).out == "deployment.apps/web created\n"
    assert kubectl("rollout", "status", "deployment/web", "--timeout=30s").out.endswith(OUT)
    return manifest


def test_a_rollout_replaces_every_pod_and_says_when_it_is_done(kubectl: Kubectl, web: str) -> None:
    changed = web.replace("web:1", "web:2")
    assert kubectl("apply", "-f", "-", feed=web).out == "deployment.apps/web unchanged\n"
    assert kubectl("apply", "-f", "-", feed=changed).out == "deployment.apps/web configured\n"
    assert kubectl("rollout", "status", "deployment/web", "--timeout=30s").out.endswith(OUT)
    assert kubectl("get", "deploy", "web", "--no-headers").out.split()[:4] == ["web", "2/2", "2", "2"]
    # An old pod that is still using its grace is no longer counted, but it is there.
    images = ("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.containers[*].image}")
    eventually(lambda: set(kubectl(*images).out.split()) == {"registry.example/web:2"}, 20)
    assert kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=10s").code == 0
    assert kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "deploy/web", "--timeout=10s").code == 0
    assert kubectl("delete", "deployment", "web").code == 0
    eventually(lambda: kubectl("get", "replicasets,pods", "-o", "name").out == "", 20)


def test_an_evicted_replica_is_replaced(kubectl: Kubectl, either: Api, web: str) -> None:
    pods = f"/api/v1/namespaces/{kubectl.namespace}/pods"
    before = {item["metadata"]["name"] for item in either.get(pods).json()["items"]}
    gone = min(before)
    assert either.post(f"{pods}/{gone}/eviction", {"metadata": {"name": gone}}).status_code == 201
    assert kubectl("wait", "--for=delete", f"pod/{gone}", "--timeout=20s").code == 0
    assert kubectl("rollout", "status", "deployment/web", "--timeout=20s").out.endswith(OUT)
    assert len({item["metadata"]["name"] for item in either.get(pods).json()["items"]} - before) == 1


def test_an_apply_on_the_servers_side_tells_of_a_conflict(kubectl: Kubectl, web: str) -> None:
    assert kubectl("set", "image", "deployment/web", "main=registry.example/web:9").code == 0
    theirs = kubectl("apply", "--server-side", "-f", "-", feed=web, seconds=30)
    assert theirs.code == 1
    assert 'conflict with "kubectl-set" using apps/v1: .spec.template.spec.containers[name="main"].image' in theirs.err
    mine = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", feed=web)
    assert mine.out == "deployment.apps/web serverside-applied\n"


def test_fields_are_explained(kubectl: Kubectl) -> None:
    pod = kubectl("explain", "pod.spec.containers")
    assert pod.code == 0
    assert "FIELD: containers <[]Container>" in pod.out
    assert "  terminationMessagePolicy\t<string>" in pod.out
    assert "GROUP:      policy" in kubectl("explain", "pdb.spec.minAvailable").out
    assert kubectl("explain", "node.spec.nope").code == 1


def test_a_field_that_is_not_there_is_refused_before_anything_is_made(kubectl: Kubectl, node: str) -> None:
    wrong = WEB.replace("NODE", node).replace("replicas:", "replica:")
    ran = kubectl("create", "-f", "-", feed=wrong)
    assert ran.code == 1
    assert 'unknown field "spec.replica"' in ran.err
    tried = kubectl("create", "--dry-run=server", "-f", "-", feed=WEB.replace("NODE", node))
    assert tried.out == "deployment.apps/web created (server dry run)\n"
    assert kubectl("get", "deploy").err == f"No resources found in {kubectl.namespace} namespace.\n"


def test_the_schemas_are_those_that_the_real_server_publishes(control_plane: Plane) -> None:
    assert json.loads(openapi.FILE.read_bytes()) == openapi.published(control_plane)


CLIENT = """
import json, sys
from kubernetes import client, config, watch
config.load_kube_config(sys.argv[1])
space, node = sys.argv[2:]
core, apps, policy = client.CoreV1Api(), client.AppsV1Api(), client.PolicyV1Api()
said = {"version": client.VersionApi().get_code().git_version}
for number in range(5):
    core.create_namespaced_config_map(space, {"metadata": {"name": f"m{number}", "labels": {"run": "x"}}})
names, token = [], None
while token != "":
    page = core.list_namespaced_config_map(space, label_selector="run=x", limit=2, _continue=token)
    names.append([item.metadata.name for item in page.items])
    token = page.metadata._continue or ""
said["pages"] = names
start = core.list_namespaced_pod(space).metadata.resource_version
container = {"name": "main", "image": "registry.example/box:1"}
core.create_namespaced_pod(space, {"metadata": {"name": "p"}, "spec": {"nodeSelector": {"lab": node}, "containers": [container]}})
phases = []
for event in watch.Watch().stream(core.list_namespaced_pod, space, resource_version=start, timeout_seconds=20):
    phases.append(event["object"].status.phase)
    if phases[-1] == "Running":
        break
said["phases"] = list(dict.fromkeys(phases))
core.patch_node(node, {"spec": {"unschedulable": True}})
said["cordoned"] = core.read_node(node).spec.unschedulable
soon = client.V1DeleteOptions(grace_period_seconds=1)
eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p"), delete_options=soon)
core.create_namespaced_pod_eviction("p", space, eviction)
lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
coordination = client.CoordinationV1Api()
held = coordination.create_namespaced_lease(space, lease)
held.spec.holder_identity = "b"
coordination.replace_namespaced_lease("l", space, held)
try:
    coordination.replace_namespaced_lease("l", space, held)
except client.ApiException as error:
    said["stale"] = [error.status, json.loads(error.body)["reason"]]
try:
    core.read_namespaced_pod("nope", space)
except client.ApiException as error:
    said["missing"] = error.status
print(json.dumps(said))
"""


@pytest.fixture
def official(config: str, tmp_path: Path) -> Callable[..., Any]:
    """Runs a script with the official client; what it printed last."""
    (tmp_path / "official").write_text(config)

    def run(script: str, *arguments: str) -> Any:
        command = [str(ROOT / ".venv-clients/bin/python"), "-c", script, str(tmp_path / "official"), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    return run


def test_the_official_client_works_as_it_comes(official: Callable[..., Any], space: str, node: str) -> None:
    assert official(CLIENT, space, node) == {
        "version": "v1.36.3",
        "pages": [["m0", "m1"], ["m2", "m3"], ["m4"]],
        "phases": ["Pending", "Running"],
        "cordoned": True,
        "stale": [409, "Conflict"],
        "missing": 404,
    }
