"""`either`: the same API twice. Machines are simulated ones on both, and clients of it like any other."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.kube.kubeconfig import Connection
from console.runner.controlplane.files import kubeconfig
from tests.contract.kubectl import Kubectl
from tests.simulator.conftest import Api, Simulation, name, simulation

__all__ = ["name", "simulation"]


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest, simulation: Simulation) -> Api:
    """The real Kubernetes, with the simulator's machines at its service."""
    plane, key = request.getfixturevalue("control_plane"), str(uuid.uuid4())
    body = {"id": key, "name": "real", "region": "eu-north-1", "kubeconfig": plane.kubeconfig.read_text()}
    assert simulation.control("POST", "clusters", body).status_code == 201
    return Api(plane.url, key=key, token=plane.token, ca=plane.authority)


@pytest.fixture(scope="session")
def simulated(simulation: Simulation) -> Api:
    """A cluster of the simulator."""
    return simulation.cluster()


@pytest.fixture(params=["simulator", "real"])
def either(request: pytest.FixtureRequest) -> Api:
    """The one API, then the other. Both are shared by all tests of a run."""
    found: Api = request.getfixturevalue("real" if request.param == "real" else "simulated")
    return found


@pytest.fixture
def space(either: Api, name: str) -> Iterator[str]:
    """A namespace of this test's own."""
    assert either.post("/api/v1/namespaces", {"metadata": {"name": name}}).status_code == 201
    if either.real:
        # Admission of pods would else have to wait for the controller.
        either.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    yield name
    either.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def node(simulation: Simulation, either: Api, name: str) -> Iterator[str]:
    """A Ready node of eight GPUs that takes only pods which select it by `lab`."""
    machine = simulation.node(either, name, compute_class="standard", labels={"lab": name})
    yield name
    simulation.control("DELETE", f"machines/{machine['token']}")
    either.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def config(either: Api, name: str) -> str:
    """A kubeconfig of this API."""
    if either.ca is not None:
        return kubeconfig(either.url, either.ca.read_bytes(), either.token)
    return Connection(either.url).to_kubeconfig("halftide")


@pytest.fixture
def kubectl(kubectl_program: Path, config: str, space: str, tmp_path: Path) -> Kubectl:
    """The real kubectl in this test's namespace."""
    return Kubectl(kubectl_program, config, space, tmp_path)
