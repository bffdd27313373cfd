"""The control plane that other tests stand on does what they count on."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from console.env import ROOT
from tests.controlplane.plane import Plane

PODS_READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


def test_an_account_may_do_what_its_rules_say_and_the_audit_log_says_what_it_did(control_plane: Plane) -> None:
    audit = control_plane.audit()
    with control_plane.namespace() as namespace:
        account = control_plane.account(namespace, PODS_READ)
        with control_plane.client(account.token) as client:
            assert client.get(f"/api/v1/namespaces/{namespace}/pods").status_code == 200
            assert client.delete(f"/api/v1/namespaces/{namespace}/pods/x").status_code == 403
    assert [(one.verb, one.resource, one.name, one.code) for one in audit.asked(account.user)] == [
        ("list", "pods", "", 200),
        ("delete", "pods", "x", 403),
    ]


def test_a_node_without_a_kubelet_takes_pods_and_the_real_scheduler_places_them(control_plane: Plane) -> None:
    with control_plane.namespace() as namespace:
        room = {"capacity": {"pods": "9", "nvidia.com/gpu": "8"}, "allocatable": {"pods": "9", "nvidia.com/gpu": "8"}}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        control_plane.ask("POST", "/api/v1/nodes", {"metadata": {"name": namespace, "labels": {"t": namespace}}})
        status, kind = {"status": {**room, "conditions": [ready]}}, "application/merge-patch+json"
        control_plane.ask("PATCH", f"/api/v1/nodes/{namespace}/status", status, kind)
        container = {"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "nodeSelector": {"t": namespace}}}
        control_plane.ask("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        placed = control_plane.kubectl("-n", namespace, "wait", "--for=condition=PodScheduled", "pod/p", "--timeout=20s")
        assert placed.returncode == 0, placed.stderr
        control_plane.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods/p", {"gracePeriodSeconds": 0})
        control_plane.ask("DELETE", f"/api/v1/nodes/{namespace}")


START = """
import sys
from pathlib import Path
from console.runner.controlplane.plane import ControlPlane
plane = ControlPlane(Path(sys.argv[1]), Path(sys.argv[2]))
plane._wait_for = lambda path: None
with plane:
    print(*(running.process.pid for running in plane._running), flush=True)
    sys.stdin.read()
"""


def test_nothing_of_it_outlives_whoever_started_it(control_plane: Plane, tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, str(tmp_path), str(control_plane.programs)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(pids) == 4
        starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(_stands_in(pid, tmp_path) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _stands_in(pid: int, home: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == home
    except OSError:
        return False
