"""Kubelets that only say that they live, as a niced process of their own: what makes the load must not be what is measured."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from console.env import ROOT
from tests.bench.bare import Bare, Call
from tests.controlplane.plane import Plane

# Seconds. A kubelet renews its Lease so often, and says its Node's status so often while nothing changes.
LEASE_EVERY, STATUS_EVERY = 10, 300

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
HEALTHY = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


@dataclass(frozen=True)
class Orders:
    """What the process is told: where, for which nodes, Ready since when, how often each says its status (seconds), and whether
    it keeps their Leases too."""

    address: str
    authority: str
    token: str
    names: Sequence[str]
    since: str
    every: int
    leases: bool


@contextmanager
def kubelets(plane: Plane, names: Sequence[str], since: str, every: int, *, leases: bool = True) -> Iterator[None]:
    """Every node of `names` says that it lives."""
    orders = Orders(plane.url, str(plane.authority), plane.token, names, since, every, leases)
    process = subprocess.Popen([sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(orders)))
    process.stdin.close()
    try:
        yield
        assert process.poll() is None, "the kubelets have died"
    finally:
        process.kill()
        process.wait()


def conditions(since: str, at: str) -> list[dict[str, str]]:
    """A healthy node's, as its kubelet repeats them."""
    return [
        {
            "type": kind, "status": status, "reason": f"Kubelet{kind}", "message": "kubelet is posting ready status",
            "lastHeartbeatTime": at, "lastTransitionTime": since,
        }
        for kind, status in HEALTHY.items()
    ]  # fmt: skip


def stamp() -> str:
    """Now, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _live(orders: Orders) -> None:
    """One second's share of all nodes, each second."""
    api = Bare(orders.address, orders.authority, orders.token)
    holders = orders.names if orders.leases else []
    made = await api.send([("POST", LEASES, _lease(name)) for name in holders], 8)
    assert set(made) <= {201}, set(made)
    began = time.monotonic()
    second = 0
    while True:
        await asyncio.sleep(max(0.0, began + second - time.monotonic()))
        renewals: list[Call] = [("PATCH", f"{LEASES}/{name}", _lease(name)) for name in _share(orders.names, second, LEASE_EVERY)]
        status = {"status": {"conditions": conditions(orders.since, stamp())}}
        beats = [("PATCH", f"/api/v1/nodes/{name}/status", status) for name in _share(orders.names, second, orders.every)]
        answered = set(await api.send([*renewals, *beats], 4))
        assert answered <= {200}, answered
        second += 1


def _share(names: Sequence[str], second: int, every: int) -> Sequence[str]:
    return names[second % every :: every]


def _lease(name: str) -> dict[str, Any]:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": at},
    }


if __name__ == "__main__":
    os.nice(10)
    asyncio.run(_live(Orders(**json.load(sys.stdin))))
