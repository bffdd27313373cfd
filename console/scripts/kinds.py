"""What kinds of startup script there are, where each of them applies, and what it would run on.

`node_init` is ours. The others carry the names of the published API's Slurm fields, so that a script for it fits here unchanged;
they are offered where they mean something, which is on SLURM clusters.
"""

from dataclasses import dataclass

from console.clusters.models import Cluster
from console.http import NotFound


@dataclass(frozen=True)
class Kind:
    """`where` follows the name on the page; `runs` is a sentence about when it is run, as whom, and what a failure does."""

    name: str
    where: str
    runs: str
    slurm: bool = True
    shell: bool = True  # False: a piece of configuration, with no first line that names an interpreter


NODE_INIT = Kind(
    "node_init",
    "each new node",
    "As root on each new node before workloads may come: exit 0 lets them in.",
    slurm=False,
)
KINDS = (
    NODE_INIT,
    Kind("nodeset_init_script", "each Slurm worker", "As root on each Slurm worker when it starts."),
    Kind("login_init_script", "the login node", "As root on the login node when it starts."),
    Kind(
        "worker_prolog",
        "before each job",
        "As root on each worker of a job before it. A failure drains the node and puts a batch job back in the queue.",
    ),
    Kind("worker_epilog", "after each job", "As root on each worker of a job after it. A failure drains the node."),
    Kind(
        "controller_prolog",
        "before each job, on the controller",
        "On the controller before each job. A failure puts the job back in the queue and leaves the nodes alone.",
    ),
    Kind("controller_epilog", "after each job, on the controller", "On the controller after each job. A failure is only logged."),
    Kind("extra_slurm_conf", "slurm.conf", "No script: these lines are added to slurm.conf as they are.", shell=False),
)


def kinds_of(cluster: Cluster) -> tuple[Kind, ...]:
    """Those that mean something on this cluster, in the order in which a page lists them."""
    return tuple(kind for kind in KINDS if cluster.kind == Cluster.Kind.SLURM or not kind.slurm)


def kind_named(cluster: Cluster, name: str) -> Kind:
    """Raises NotFound, with the kinds there are."""
    offered = kinds_of(cluster)
    for kind in offered:
        if kind.name == name:
            return kind
    there = ", ".join(kind.name for kind in offered)
    why = f"{name} is for SLURM clusters." if any(kind.name == name for kind in KINDS) else "There is no such kind of script."
    raise NotFound(f"{why} {cluster.name} has: {there}.", param="kind", code="no_such_kind")
