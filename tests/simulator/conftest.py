"""A running simulator, as a process of its own. What its API is held to stands in `tests/contract`."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
Json = dict[str, Any]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def eventually(true: Callable[[], Any], seconds: float = 10) -> Any:
    """What it returns once that is true; fails the test when it never is."""
    end = time.monotonic() + seconds
    while True:
        if found := true():
            return found
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


class Simulation:
    """A simulator process: started, killed, started again on the same state."""

    def __init__(self, state: Path, **environment: str) -> None:
        self.state, self.port = state, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **os.environ, "HALFTIDE_STATE": str(state), "HALFTIDE_SIM_PORT": str(self.port), "HALFTIDE_SIM_BOOT_SECONDS": "0.2",
            "HALFTIDE_SIM_DEMAND": "off", **environment,
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client(timeout=15, trust_env=False)

    def start(self) -> "Simulation":
        self.process = subprocess.Popen([sys.executable, "-m", "console.simulator"], cwd=ROOT, env=self._environment)
        eventually(self._answers, 20)
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "the simulator ended"
        try:
            return self.http.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(15)

    def control(self, method: str, path: str, body: Any = None) -> httpx.Response:
        token = (self.state / "control-token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        return self.http.request(method, f"{self.url}/control/{path}", json=body, headers=headers)

    def cluster(self, name: str = "") -> "Api":
        key = str(uuid.uuid4())
        made = self.control("POST", "clusters", {"id": key, "name": name or f"c-{key[:8]}", "region": "eu-north-1"})
        assert made.status_code == 201
        api = Api(f"{self.url}/clusters/{key}", key=key)
        eventually(lambda: api.get("/api/v1/namespaces/monitoring").status_code == 200)
        return api

    def machine(self, api: "Api", name: str, **more: Any) -> Json:
        token = more.pop("token", str(uuid.uuid4()))
        body = {"token": token, "region": "eu-north-1", "gpu_type": "H100_SXM", "cluster_id": api.key, "node_name": name}
        answer = self.control("POST", "machines", {**body, "compute_class": "preemptible", **more})
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    def node(self, api: "Api", name: str, **more: Any) -> Json:
        """A machine whose Node is Ready and free of startup taints."""
        machine = self.machine(api, name, **more)
        eventually(lambda: ready(api, name), 15)
        return machine


def ready(api: "Api", name: str) -> bool:
    answer = api.get(f"/api/v1/nodes/{name}")
    if answer.status_code != 200:
        return False
    node = answer.json()
    conditions = node["status"].get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions) and not node["spec"].get("taints")


class Api:
    """A Kubernetes API by plain HTTP."""

    def __init__(self, url: str, *, key: str = "", token: str = "", ca: Path | None = None) -> None:
        self.url, self.key, self.token, self.ca = url, key, token, ca
        headers = {"authorization": f"Bearer {token}"} if token else {}
        trust: Any = ssl.create_default_context(cafile=ca) if ca else True
        self.http = httpx.Client(headers=headers, timeout=15, verify=trust, trust_env=False)

    @property
    def real(self) -> bool:
        """Whether it is a real Kubernetes."""
        return self.ca is not None

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(self.url + path, **options)

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.http.post(self.url + path, json=body, **options)

    def put(self, path: str, body: Any) -> httpx.Response:
        return self.http.put(self.url + path, json=body)

    def patch(self, path: str, body: Any, kind: str = "merge-patch") -> httpx.Response:
        headers = {"content-type": f"application/{kind}+json"}
        return self.http.patch(self.url + path, json=body, headers=headers)

    def delete(self, path: str, body: Any = None) -> httpx.Response:
        return self.http.request("DELETE", self.url + path, json=body)

    def watch(self, path: str, seconds: int = 1, *, last: str = "", **params: Any) -> list[Json]:
        """All events until the server ends the stream, or one of type `last` came."""
        query = {"watch": "1", "timeoutSeconds": seconds, **params}
        events: list[Json] = []
        with self.http.stream("GET", self.url + path, params=query) as answer:
            for line in answer.iter_lines():
                events.append(json.loads(line))
                if events[-1]["type"] == last:
                    break
        return events


def pod(name: str, *, node: str = "", labels: Json | None = None, gpus: int = 0, **spec: Any) -> Json:
    """A small pod."""
    container: Json = {"name": "main", "image": "registry.example/box:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    body: Json = {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container], **spec}}
    if node:
        body["spec"]["nodeName"] = node
    return body


@pytest.fixture(scope="session")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


@pytest.fixture
def api(simulation: Simulation) -> Iterator[Api]:
    """A cluster of this test's own."""
    made = simulation.cluster()
    yield made
    simulation.control("DELETE", f"clusters/{made.key}")


@pytest.fixture
def name() -> str:
    """A name nobody else uses, also on a shared API."""
    return f"sim-{uuid.uuid4().hex[:8]}"
