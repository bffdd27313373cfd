"""The kinds this API serves, as data: discovery, paths, storage and columns all read this one table."""

from dataclasses import dataclass

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Resource:
    """One kind; `stored_as` names the resource that holds the objects (events.k8s.io shows the same rows as core)."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True
    generation: bool = False
    subresources: tuple[str, ...] = ()
    stored_as: str = ""

    @property
    def api_version(self) -> str:
        """`v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """Where the store keeps it."""
        return self.stored_as or (f"{self.plural}.{self.group}" if self.group else self.plural)


NODES = Resource("", "v1", "nodes", "Node", namespaced=False, short=("no",))
PODS = Resource(
    "", "v1", "pods", "Pod", short=("po",), categories=("all",), generation=True, subresources=("binding", "eviction", "log")
)
EVENTS = Resource("", "v1", "events", "Event", short=("ev",), status=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False, short=("ns",), subresources=("finalize",))
SECRETS = Resource("", "v1", "secrets", "Secret", status=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", short=("cm",), status=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", short=("ds",), categories=("all",), generation=True)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", short=("rs",), categories=("all",), generation=True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", short=("deploy",), categories=("all",), generation=True)
JOBS = Resource("batch", "v1", "jobs", "Job", categories=("all",), generation=True)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",), generation=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", status=False)
NEW_EVENTS = Resource("events.k8s.io", "v1", "events", "Event", short=("ev",), status=False, stored_as="events")

RESOURCES = (
    NODES, PODS, EVENTS, NAMESPACES, SECRETS, CONFIG_MAPS, DAEMON_SETS, REPLICA_SETS, DEPLOYMENTS, JOBS, BUDGETS,
    LEASES, NEW_EVENTS,
)  # fmt: skip
BY_PATH = {(resource.group, resource.version, resource.plural): resource for resource in RESOURCES}
