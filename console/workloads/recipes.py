"""*Run work here*: manifests to copy that put a job on preemptible nodes, on standard ones, or where there is room. Pure.

Preemptible nodes carry a class label and no taint; standard ones carry no label. So "there" is a nodeSelector, "never there" an
affinity that excludes the label, which a node without it satisfies, and "rather there" a preference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.kube.marks import CLASS_LABEL, GPU_RESOURCE, LAST_CHECKPOINT, PREEMPTIBLE

_UNFIT = re.compile(r"[^a-z0-9]+")
LONGEST = 40  # of a name's first part: a Job's name goes into its pods' names and into a label of at most 63 characters


@dataclass(frozen=True, slots=True)
class Recipe:
    """One manifest: what it is for, what happens to it, and the text."""

    code: str
    title: str
    says: str
    yaml: str


def recipes(cluster_name: str, gpus: int, window: int) -> tuple[Recipe, ...]:
    """For a cluster whose nodes have `gpus` GPUs and whose reclaims give `window` seconds."""
    base = _UNFIT.sub("-", cluster_name.lower()).strip("-")[:LONGEST].strip("-") or "work"
    minutes = f"{window // 60} minutes" if window >= 120 and window % 60 == 0 else f"{window} s"
    return (
        Recipe(
            "preemptible",
            "On preemptible nodes",
            f"At half the price. A reclaim gives it up to {minutes} after SIGTERM; its Job starts it again when there is room.",
            _job(f"{base}-preemptible", gpus, window, _SELECTOR),
        ),
        Recipe(
            "standard",
            "On standard nodes",
            "Never reclaimed. It waits where no standard node has room, also while preemptible ones have.",
            _job(f"{base}-standard", gpus, window, _affinity(_EXCLUDES)),
        ),
        Recipe(
            "prefer",
            "Preemptible first, else standard",
            "Goes where there is room, preemptible first. It does not move back when room comes later.",
            _job(f"{base}-anywhere", gpus, window, _affinity(_PREFERS)),
        ),
    )


_SELECTOR = f"""\
nodeSelector:
  {CLASS_LABEL}: {PREEMPTIBLE}
"""
_EXCLUDES = f"""\
requiredDuringSchedulingIgnoredDuringExecution:
  nodeSelectorTerms:
    - matchExpressions:
        - key: {CLASS_LABEL}
          operator: NotIn
          values: [{PREEMPTIBLE}]
"""
_PREFERS = f"""\
preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    preference:
      matchExpressions:
        - key: {CLASS_LABEL}
          operator: In
          values: [{PREEMPTIBLE}]
"""


def _affinity(rules: str) -> str:
    return "affinity:\n  nodeAffinity:\n" + _indented(rules, 4)


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


def _job(name: str, gpus: int, window: int, placement: str) -> str:
    return f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  backoffLimit: 6
  podFailurePolicy:
    rules:
      - action: Ignore  # a reclaim is no failure of the job, and uses up none of its tries
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: {window}  # save on SIGTERM, then set {LAST_CHECKPOINT} on the pod
{_indented(placement, 6)}\
      containers:
        - name: main
          image: registry.example/your-image:1
          resources:
            limits:
              {GPU_RESOURCE}: {gpus}
"""
