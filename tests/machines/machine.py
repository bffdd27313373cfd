"""One real machine for the real control plane: Debian's containerd and runc, and the kubelet of the same build.

Containers get real signals and write what became of them into a folder of the machine's. It needs root. Nothing stands behind
its GPUs: they are an extended resource written into the node's status, which the kubelet keeps. The flags are those that run on
a plain virtual machine, with either version of control groups.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from console.env import ROOT
from console.kube.marks import CLASS_LABEL, PREEMPTIBLE
from console.runner.child import PARENT
from console.runner.left_out import NO_MACHINES
from tests.controlplane.plane import Plane
from tests.installation import free_ports
from tests.machines import image

NEEDS = ("containerd", "runc", "ctr", str(image.BUSYBOX), "/usr/lib/cni/loopback")
PACKAGES = "containerd runc containernetworking-plugins busybox-static"
READY_SECONDS = 120.0
STOP_SECONDS = 15.0

CONTAINERD = """version = 2
root = "{home}/containerd"
state = "{run}/state"
[grpc]
  address = "{run}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""

KUBELET: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": False,
    "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "failSwapOn": False,
    "address": "127.0.0.1", "healthzPort": 0, "readOnlyPort": 0, "resolvConf": "", "localStorageCapacityIsolation": False,
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
    "nodeStatusUpdateFrequency": "5s", "imageGCHighThresholdPercent": 100, "evictionHard": {"memory.available": "1Mi"},
}  # fmt: skip

# Any network configuration makes the node Ready; pods use the machine's own (`hostNetwork`).
NETWORK = {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}


def missing() -> str:
    """What this machine lacks to run another one inside; '' for nothing."""
    if os.geteuid() != 0:
        return "not root"
    lacking = [need for need in NEEDS if not shutil.which(need)]
    return f"no {', '.join(lacking)} (Debian: {PACKAGES})" if lacking else ""


def require() -> None:
    """Skip the test aloud where no machine can run; where they are required (HALFTIDE_MACHINES=required), fail it."""
    if why := missing():
        assert os.environ.get("HALFTIDE_MACHINES") != "required", why
        pytest.skip(f"{NO_MACHINES}: {why}")


class Machine:
    """`with Machine(…) as machine:` runs it and gives it when its node is Ready."""

    def __init__(self, plane: Plane, name: str, *, gpus: int = 8, labels: dict[str, str] | None = None) -> None:
        self.plane, self.name, self.gpus = plane, name, gpus
        self.labels = {CLASS_LABEL: PREEMPTIBLE, **(labels or {})}
        self.home = plane.home / name
        self.logs = self.home / "written"  # where containers write what became of them, a file each
        self.manifests = self.home / "manifests"  # static pods
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()

    def __enter__(self) -> "Machine":
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _start(self) -> None:
        # Sockets want a short path.
        self.run = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="machine-")))
        for folder in (self.home / "cni", self.logs, self.manifests):
            folder.mkdir(parents=True)
        (self.home / "cni/10.conflist").write_text(json.dumps(NETWORK))
        (self.home / "containerd.toml").write_text(CONTAINERD.format(home=self.home, run=self.run, pause=image.PAUSE))
        config = KUBELET | {
            "containerRuntimeEndpoint": f"unix://{self.run}/containerd.sock", "podLogsDir": str(self.home / "logs"),
            "port": free_ports(1)[0], "staticPodPath": str(self.manifests), "fileCheckFrequency": "1s",
        }  # fmt: skip
        (self.home / "kubelet.json").write_text(json.dumps(config))
        image.write(self.home / "images.tar")
        self._run("containerd", shutil.which("containerd"), "--config", self.home / "containerd.toml")
        _patiently(lambda: self._ctr("images", "import", str(self.home / "images.tar")).returncode == 0)
        labels = ",".join(f"{key}={value}" for key, value in self.labels.items())
        self._run(
            "kubelet", self.plane.programs / "kubelet", f"--config={self.home}/kubelet.json",
            f"--kubeconfig={self.plane.kubeconfig}", f"--root-dir={self.home}/kubelet", f"--hostname-override={self.name}",
            f"--node-labels={labels}", f"--cert-dir={self.home}/pki", "--node-ip=127.0.0.1",
        )  # fmt: skip
        _patiently(self._exists)
        count = {"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": str(self.gpus)}
        self.plane.ask("PATCH", f"/api/v1/nodes/{self.name}/status", [count], "application/json-patch+json")
        _patiently(self._ready)

    def _run(self, name: str, *command: object) -> None:
        guarded = [sys.executable, "-m", "console.runner.child", "SIGKILL", "-", *(str(word) for word in command)]
        environment = {**os.environ, PARENT: str(os.getpid()), "PYTHONPATH": str(ROOT)}
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                guarded, cwd=self.home, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.append(process)

    def _ctr(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ctr", "-a", str(self.run / "containerd.sock"), "-n", "k8s.io", *words],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def _exists(self) -> bool:
        return self.plane.http.get(f"/api/v1/nodes/{self.name}").status_code == 200

    def _ready(self) -> bool:
        node = self.plane.ask("GET", f"/api/v1/nodes/{self.name}")
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", []))
        return ready and "nvidia.com/gpu" in node["status"]["allocatable"] and not node["spec"].get("taints")

    def static_pod(self, body: dict[str, Any]) -> str:
        """Give the kubelet a pod of its own; the name of its mirror."""
        name: str = body["metadata"]["name"]
        part = self.manifests.parent / f"{name}.part"  # a kubelet that reads half a file would complain
        part.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **body}))
        part.rename(self.manifests / f"{name}.json")
        return f"{name}-{self.name}"

    def stop(self) -> None:
        """Kubelet first, so that it starts nothing anew; then the containers, then what held them."""
        for process in reversed(self._processes[1:]):
            _end(process)
        if self._processes:
            for task in self._ctr("tasks", "ls", "-q").stdout.split():
                self._ctr("tasks", "rm", "-f", task)
            _end(self._processes[0])
        self._processes.clear()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((one for one in mounts if one.startswith((f"{self.home}/", f"{self.run}/"))), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        self._stack.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _patiently(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"{true} did not come true: see the logs of the machine"
        time.sleep(0.2)
