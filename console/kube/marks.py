"""The names by which we know our own hand on Kubernetes objects.

Everything of ours starts with one prefix. `CORDONED_BY` decides what automation may undo: only a cordon whose mark is ours and no
person's is ever lifted by it.
"""

from __future__ import annotations

PREFIX = "halftide.io/"

MACHINE_LABEL = f"{PREFIX}machine"
CLASS_LABEL = "together.ai/compute-class"
PREEMPTIBLE = "preemptible"

DRAIN_CAUSE = f"{PREFIX}drain-cause"
DRAIN_DEADLINE = f"{PREFIX}drain-deadline"
CORDONED_BY = f"{PREFIX}cordoned-by"
LAST_CHECKPOINT = f"{PREFIX}last-checkpoint"  # tenants write these three on their pods
CHECKPOINT_SECONDS = f"{PREFIX}checkpoint-seconds"
CHECKPOINT_BYTES = f"{PREFIX}checkpoint-bytes"
STARTUP_TAINT = f"{PREFIX}startup"

GPU_RESOURCE = "nvidia.com/gpu"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
REPORTING_COMPONENT = "halftide"

# Values of CORDONED_BY.
SYSTEM = "halftide"
_PERSON = "person:"


def by_person(who: str) -> str:
    """The mark of a cordon that a person made on our pages."""
    return _PERSON + who


def is_ours(cordoned_by: str | None) -> bool:
    """Whether automation may lift a cordon with this mark: it has one, and no person's."""
    return bool(cordoned_by) and not str(cordoned_by).startswith(_PERSON)
