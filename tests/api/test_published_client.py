"""The published command line and library, unmodified and in a venv of their own, against a real server process."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from django.db import connection
from django.utils import timezone

from console.clusters.models import Cluster, ComputeClass, Machine
from tests.api.world import KUBECONFIG, World, new_machine, new_node, tell

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENTS = ROOT / ".venv-clients" / "bin"


@dataclass(frozen=True)
class Shell:
    """A terminal of somebody with a key. `together` says its exit code and what it printed."""

    base: str
    home: Path

    def together(self, *words: str, key: str, **more: str) -> tuple[int, str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CI": "1",
            "COLUMNS": "200",
            "TOGETHER_TELEMETRY_DISABLED": "1",
            "TOGETHER_DISABLE_VERSION_CHECK": "1",
            "TOGETHER_BASE_URL": self.base,
            "TOGETHER_API_KEY": key,
            **more,
        }
        done = subprocess.run(
            [str(CLIENTS / "together"), *words], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def base(transactional_db: None) -> Iterator[str]:
    """A web process as `make up` starts it, on this test's database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = connection.settings_dict
    where = "&".join(
        f"{name}={quote(str(settings[key]), safe='/')}"
        for name, key in (("host", "HOST"), ("port", "PORT"), ("user", "USER"), ("password", "PASSWORD"))
        if settings[key]
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "console.asgi:application", "--port", str(port), "--log-level", "warning"],
        env={**os.environ, "DATABASE_URL": f"postgresql:///{settings['NAME']}?{where}"},
        cwd=ROOT,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        _await(process, f"{base}/api/openapi.json")
        yield base
    finally:
        process.terminate()
        process.wait(timeout=15)


def _await(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")


@pytest.fixture
def shell(base: str, tmp_path: Path) -> Shell:
    assert (CLIENTS / "together").exists(), "The published client is not installed: run `make clients`."
    return Shell(base, tmp_path)


def test_the_published_command_line_does_what_it_is_for(shell: Shell, world: World) -> None:
    """One story, because a web process takes seconds to start: list, read, set, be refused, fetch credentials, create."""
    new_node(world.train, "gpu-dp-1")
    new_node(world.train, "gpu-preemptible-dp-1", ComputeClass.PREEMPTIBLE)
    new_machine(world.train, "gpu-preemptible-dp-2", Machine.State.BOOTING)
    tell(world.train, "TogetherPreempted", "gpu-preemptible-dp-0")
    key, which = world.keys["operator"], str(world.train.pk)

    code, said = shell.together("whoami", "--json", key=key)
    assert (code, json.loads(said)["project"]["slug"]) == (0, "aurora")

    code, said = shell.together("clusters", "list", "--no-json", key=key)
    assert code == 0
    assert all(word in said for word in (which, "aurora-train", "Ready", "eu-north-1"))
    assert "borealis-eval" not in said

    code, said = shell.together("clusters", "list-regions", "--no-json", key=key)
    assert code == 0
    assert all(word in said for word in ("machine-image", "eu-north-1", "H100_SXM", "us-central-2", "B200_SXM"))

    code, said = shell.together("clusters", "update", which, "--num-preemptible-gpus", "64", "--no-json", key=key)
    assert (code, said.strip()) == (0, "Cluster updated successfully")
    assert Cluster.objects.get(pk=which).desired_preemptible_gpus == 64

    code, said = shell.together("clusters", "get", which, "--json", key=key)
    read = json.loads(said)
    assert code == 0
    assert (read["desired_preemptible_gpus"], read["allocated_preemptible_gpus"]) == (64, 8)
    assert [node["status"] for node in read["gpu_worker_nodes"]] == ["Running", "Running", "Booting"]
    assert [event["reason"] for event in read["node_lifecycle_events"]] == ["TogetherPreempted"]

    code, said = shell.together("clusters", "update", which, "--num-preemptible-gpus", "30", "--no-json", key=key)
    assert code == 1
    assert "moves in whole nodes of 8 GPUs: 24 or 32, not 30." in " ".join(said.split())

    code, said = shell.together("clusters", "get", str(world.other.pk), "--no-json", key=key)
    assert code == 1
    assert "There is no cluster with this id" in said
    assert "Traceback" not in said

    code, said = shell.together("clusters", "get-credentials", which, "--file", "-", key=key)
    assert code == 0
    assert said.strip() == KUBECONFIG.strip()

    wanted = ("--name", "atlas", "--region", "eu-north-1", "--gpu-type", "H100_SXM", "--num-gpus", "8")
    more = ("--billing-type", "ON_DEMAND", "--cluster-type", "KUBERNETES", "--nvidia-version-id", "machine-image")
    code, said = shell.together(
        "clusters", "create", *wanted, *more, "--num-preemptible-gpus", "16", "--no-json", key=world.keys["admin"]
    )
    assert (code, "Cluster created successfully" in said) == (0, True), said
    assert Cluster.objects.get(name="atlas").desired_preemptible_gpus == 16


def test_the_published_library_finds_every_field_that_it_declares(
    shell: Shell, world: World, api: Callable[[str], object]
) -> None:
    """The library builds its models without checking them, so they are checked here, with its own declarations."""
    new_node(world.train, "gpu-dp-1")
    new_machine(world.train, "gpu-preemptible-dp-2", Machine.State.GONE, gone_at=timezone.now())
    tell(world.train, "TogetherScaledUp", "gpu-dp-1")
    program = """
import os, sys
from together import Together
from together.types import Cluster
from together.types.cluster_list_regions_response import ClusterListRegionsResponse
client = Together()
for one in [*client.clusters.list().clusters, client.clusters.retrieve(sys.argv[1])]:
    Cluster.model_validate(one.model_dump(mode="json", warnings="error"), strict=False)
    print(one.kube_config)
ClusterListRegionsResponse.model_validate(client.clusters.list_regions().model_dump())
"""
    environment = {"PATH": os.environ["PATH"], "TOGETHER_BASE_URL": shell.base, "TOGETHER_API_KEY": world.keys["operator"]}
    done = subprocess.run(
        [str(CLIENTS / "python"), "-c", program, str(world.train.pk)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [base64.b64decode(line).decode() for line in done.stdout.split("\n")[:-1]] == ["", KUBECONFIG]
