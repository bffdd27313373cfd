"""A cluster of the simulator's, asked as the real Kubernetes is asked, so that one file of tests runs on both."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import cached_property

import httpx

from console.capacity.providers import provider
from console.capacity.providers.base import PoolState, Provider
from console.kube.kubeconfig import Connection
from tests.controlplane.plane import Admin, Asked, Json
from tests.simulator.conftest import Api, Simulation

REGION, GPU_TYPE = "eu-north-1", "H100_SXM"


class SimulatedAudit:
    """What was asked of one cluster since this was made. The simulator knows programs, not accounts: who asks is its agent."""

    def __init__(self, control: Callable[..., httpx.Response], key: str) -> None:
        self._control, self._key = control, key
        self._start = max((one["at"] for one in self._log()), default="")

    def _log(self, since: str = "") -> list[Json]:
        return list(self._control("GET", f"requests?cluster_id={self._key}&since={since}").json())

    def asked(self, user: str | None = None) -> list[Asked]:
        """All answered requests so far, or those of one program."""
        return [_asked(row) for row in self._log(self._start) if user in (None, row["user_agent"])]


def _asked(row: Json) -> Asked:
    """A path, cut as an audit log shows it: …/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE."""
    parts = row["path"].strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    resource, name, subresource = (*parts, "", "", "")[:3]
    return Asked(
        at=datetime.fromisoformat(row["at"]), user=row["user_agent"], verb=row["verb"], resource=resource, name=name,
        subresource=subresource, namespace=namespace, code=row["status"], uri=row["path"], agent=row["user_agent"],
        body=row["body"],
    )  # fmt: skip


class SimulatedPlane(Admin):
    """What `Plane` is to a real Kubernetes, as far as a fleet wants it."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.api = simulation, simulation.cluster()

    @cached_property
    def http(self) -> httpx.Client:  # type: ignore[override]
        return httpx.Client(base_url=self.api.url, timeout=30, trust_env=False)

    @property
    def kubeconfig(self) -> str:
        return Connection(self.api.url).to_kubeconfig("halftide")

    def uncordon(self, node: str) -> None:
        """As kubectl does it."""
        headers = {"content-type": "application/strategic-merge-patch+json"}
        body = json.dumps({"spec": {"unschedulable": None}})
        assert self.http.patch(f"/api/v1/nodes/{node}", content=body, headers=headers).is_success

    def audit(self) -> SimulatedAudit:
        return SimulatedAudit(self.simulation.control, self.api.key)


class SimulatedMachines:
    """The simulator's own, by the same words as `Machines`. Nobody else is in the pool."""

    selector = ""

    def __init__(self, simulation: Simulation, api: Api, total: int) -> None:
        self._simulation, self._api = simulation, api
        self.room(total)

    def room(self, total: int) -> None:
        """So many machines there are from now on: others hold the rest."""
        body = {"region": REGION, "gpu_type": GPU_TYPE, "machines": self.state().total - total, "auto": False}
        assert self._simulation.control("POST", "demand", body).is_success

    def state(self) -> PoolState:
        found = self._simulation.control("GET", f"pools/{REGION}/{GPU_TYPE}").json()
        return PoolState(REGION, GPU_TYPE, found["total"], found["free"], found["owed"], found["version"])

    @property
    def provider(self) -> Callable[[str], Provider]:
        return provider

    @property
    def _there(self) -> list[Json]:
        found = self._simulation.control("GET", f"machines?region={REGION}&gpu_type={GPU_TYPE}").json()["machines"]
        return [one for one in found if one["cluster_id"] == self._api.key and one["state"] != "terminated"]

    @property
    def tokens(self) -> set[str]:
        return {one["token"] for one in self._there}

    def lose(self, name: str) -> None:
        """It dies without a word."""
        [token] = [one["token"] for one in self._there if one["node_name"] == name]
        assert self._simulation.control("POST", f"machines/{token}/lose").is_success
