"""What a script finds in its environment, in one table: offered beside the editor, and what delivery has to keep to."""

from dataclasses import dataclass

from console.clusters.models import Cluster
from console.scripts.kinds import Kind


@dataclass(frozen=True)
class Variable:
    name: str
    means: str
    example: str


PREFIX = "HALFTIDE_"  # the ones that are ours; settings of Halftide itself begin so too, and are none of these


def _ours(name: str, means: str, example: str) -> Variable:
    return Variable(PREFIX + name, means, example)


def variables(cluster: Cluster, kind: Kind) -> tuple[Variable, ...]:
    """For this cluster's scripts of this kind; none for what is no script."""
    if not kind.shell:
        return ()
    step = cluster.gpu_type.gpus_per_node
    about = (
        _ours("CLUSTER", "the cluster's name", cluster.name),
        _ours("CLUSTER_ID", "its id, as in the API", str(cluster.pk)),
        _ours("PROJECT", "the project's short name", cluster.project.slug),
        _ours("REGION", "where it stands", cluster.region_id),
        _ours("NODE_NAME", "the node's name in Kubernetes", "gpu-preemptible-dp-7f2c1a"),
        _ours("COMPUTE_CLASS", "standard or preemptible", "preemptible"),
        _ours("GPU_TYPE", "what its GPUs are", cluster.gpu_type_id),
        _ours("GPUS", "how many it has", str(step)),
        _ours("SCRIPT_VERSION", "which version runs", "8"),
    )
    return about + (JOB if kind.name.endswith(("prolog", "epilog")) else ())


# As Slurm's own prolog and epilog set them.
JOB = (
    Variable("SLURM_JOB_ID", "the job", "4711"),
    Variable("SLURM_JOB_USER", "whose it is", "ada"),
    Variable("SLURM_JOB_PARTITION", "where it runs", "gpu"),
    Variable("SLURM_SCRIPT_CONTEXT", "which of the four scripts this is", "prolog_slurmd"),
)
