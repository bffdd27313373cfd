"""One cluster in the rows and in a running simulator, with a standard and a preemptible node that the relist has written."""

from console.capacity.pools.reconcile import reconcile_pool
from console.clusters.models import Cluster, Node
from console.clusters.secrets import seal
from console.kube.marks import CLASS_LABEL
from console.sync import tasks
from tests.capacity.rows import a_cluster, a_pool
from tests.simulator.conftest import Api, Simulation, eventually

READS = {"get", "list", "watch"}


class Both:
    """One cluster in both worlds, with a standard and a preemptible node."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.others(0)
        self.pool = a_pool()
        self.cluster = a_cluster(self.pool, standard=8, preemptible=8)
        body = {"id": str(self.cluster.pk), "name": "aurora-observed", "region": "eu-north-1"}
        made = simulation.control("POST", "clusters", body).json()
        Cluster.objects.update(kubeconfig=seal(made["kubeconfig"]))
        self.api = Api(made["server"], key=str(self.cluster.pk))
        eventually(lambda: self.api.get("/api/v1/namespaces/monitoring").status_code == 200)
        self.plan()
        eventually(self.arrived, 20)

    def others(self, machines: int) -> None:
        body = {"region": "eu-north-1", "gpu_type": "H100_SXM", "machines": machines, "auto": False}
        self.simulation.control("POST", "demand", body)

    def plan(self) -> None:
        reconcile_pool(self.pool.pk, "w")

    def arrived(self) -> bool:
        tasks.relist_cluster(str(self.cluster.pk))
        return Node.objects.filter(ready=True).count() == 2

    def asked(self) -> list[tuple[str, str]]:
        """Every request that Halftide has sent to the cluster, in order."""
        asked = self.simulation.control("GET", f"requests?cluster_id={self.cluster.pk}").json()
        return [(one["verb"], one["path"]) for one in asked if one["user_agent"] == "halftide"]

    def wrote(self) -> list[tuple[str, str]]:
        """Those of them that write."""
        return [(verb, path) for verb, path in self.asked() if verb not in READS]

    def machines(self) -> list[tuple[str, str, bool]]:
        found = self.simulation.control("GET", "machines?region=eu-north-1&gpu_type=H100_SXM").json()["machines"]
        return [(one["token"], one["state"], one["cluster_id"] == str(self.cluster.pk)) for one in found]

    def relabel(self, name: str, value: str | None) -> None:
        self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {CLASS_LABEL: value}}})

    def label(self, name: str) -> str | None:
        labels: dict[str, str] = self.api.get(f"/api/v1/nodes/{name}").json()["metadata"]["labels"]
        return labels.get(CLASS_LABEL)
