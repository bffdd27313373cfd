"""The exact kubectl lines for a workload, to be copied. Pure.

Names come from strangers: each argument is quoted for a POSIX shell, and one that begins with a dash cannot pass for an option,
because it stands behind `--option=` or behind a kind and a slash.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from console.workloads.facts import BARE, Owner

# Kinds of which kubectl finds a pod by itself for `logs` (kubectl's polymorphic helpers).
WITH_LOGS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController"})

# With their groups, because a short kind may mean another API's: `job/x` might be Volcano's.
FULL = {"Job": "job.batch", "Deployment": "deployment.apps", "ReplicaSet": "replicaset.apps", "StatefulSet": "statefulset.apps"}

MOST_NAMES = 20  # pods named in one line; a line that is longer nobody reads before running it


def line(context: str, namespace: str, *words: str) -> str:
    """A kubectl line for one namespace of one context."""
    return shlex.join(["kubectl", f"--context={context}", f"--namespace={namespace}", *words])


def logs(context: str, owner: Owner) -> str:
    """The newest words of a pod that runs, else of one that has ended; '' where there is none."""
    running = [pod for pod in owner.active if pod.node_name]
    ended = [pod for pod in owner.pods if pod.finished]
    if not running and not ended:
        return ""
    if running and owner.kind in WITH_LOGS:
        target = f"{FULL.get(owner.kind, owner.kind.lower())}/{owner.name}"
    else:
        target = f"pod/{(running or ended)[0].name}"
    return line(context, owner.namespace, "logs", target, "--all-containers", "--tail=100")


def describe(context: str, owner: Owner) -> str:
    """The owner; of one that waits the first waiting pod, because there the scheduler's words stand.

    Of a kind that Kubernetes does not bring a pod as well: what that kind is called in a cluster, only its own API knows.
    """
    waiting = [pod for pod in owner.active if pod.waits or pod.stuck]
    shown = waiting or ([] if owner.kind in FULL or owner.bare else list(owner.active or owner.pods))
    if shown or owner.kind == BARE:
        return line(context, owner.namespace, "describe", f"pod/{shown[0].name if shown else owner.name}")
    return line(context, owner.namespace, "describe", f"{FULL.get(owner.kind, owner.kind.lower())}/{owner.name}")


def clear(context: str, owner: Owner) -> str:
    """Takes away what preemptions left as Failed; '' where nothing is left."""
    return _delete(context, owner.namespace, [pod.name for pod in owner.pods if pod.excused])


def _delete(context: str, namespace: str, names: Sequence[str]) -> str:
    return line(context, namespace, "delete", *(f"pod/{name}" for name in names[:MOST_NAMES])) if names else ""
