"""Clusters whose API is a real Kubernetes, with the simulator's machines as its clients."""

from pathlib import Path

import httpx
import yaml

from console.kube.kubeconfig import parse
from tests.controlplane.plane import Plane
from tests.simulator.conftest import Api, Simulation, eventually, ready

NONSENSE = {"id": "x", "name": "x", "region": "eu-north-1", "kubeconfig": "kind: Config"}


def test_a_real_api_has_no_faults_to_set(simulation: Simulation, real: Api) -> None:
    refused = simulation.control("POST", "faults", {"cluster_id": real.key, "kind": "down"})
    assert (refused.status_code, refused.json()["reason"]) == (409, "RealKubernetes")
    assert simulation.control("GET", f"requests?cluster_id={real.key}").status_code == 409
    assert simulation.http.get(f"{simulation.url}/clusters/{real.key}/api").status_code == 404


def test_a_kubeconfig_that_cannot_be_used_is_refused(simulation: Simulation) -> None:
    assert simulation.control("POST", "clusters", NONSENSE).status_code == 400
    assert "x" not in [one["id"] for one in simulation.control("GET", "clusters").json()["clusters"]]


def test_a_cluster_with_its_own_control_plane_is_found_again_after_a_kill(control_plane: Plane, tmp_path: Path) -> None:
    """What `make up KUBERNETES=real` stands on. The session's plane is asked for because it is built by then."""
    simulation = Simulation(tmp_path, HALFTIDE_SIM_REAL="1").start()
    asked = {"id": "k-1", "name": "k", "region": "eu-north-1"}
    made = simulation.control("POST", "clusters", asked)
    assert made.status_code == 201
    connection = parse(made.json()["kubeconfig"])
    (tmp_path / "ca").write_text(connection.ca or "")
    api = Api(connection.server, key="k-1", token=connection.token or "", ca=tmp_path / "ca")

    def seen(path: str) -> bool:
        try:
            return api.get(path).status_code == 200
        except httpx.TransportError:
            return False

    try:
        eventually(lambda: seen("/apis/apps/v1/namespaces/monitoring/daemonsets/gpu-metrics"), 120)
        machine = simulation.machine(api, "n-1")
        eventually(lambda: ready(api, "n-1"), 60)
        simulation.end(9)
        eventually(lambda: not seen("/version"), 20)
        simulation.start()
        eventually(lambda: seen("/api/v1/nodes/n-1"), 120)
        again = simulation.control("GET", "clusters").json()["clusters"]
        assert yaml.safe_load(again[0]["kubeconfig"]) == yaml.safe_load(made.json()["kubeconfig"])
        assert simulation.control("GET", f"machines/{machine['token']}").json()["state"] == "running"
        assert simulation.control("DELETE", "clusters/k-1").status_code == 202
        assert not (tmp_path / "kubernetes" / "k-1").exists()
    finally:
        simulation.end()
