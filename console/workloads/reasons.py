"""Why a pod does not run, in words that a person at 3 a.m. reads once. Pure; the original goes along for the tooltip.

The scheduler counts nodes by obstacle: "0/9 nodes are available: 2 Insufficient nvidia.com/gpu, 7 node(s) didn't match Pod's node
affinity/selector." What decides is the obstacle of the nodes that came nearest: where some match the selector and are full, that
the others do not match says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.kube.marks import GPU_RESOURCE

LONGEST = 160  # characters of a message we do not know

_HEAD = re.compile(r"^\d+/\d+ nodes are available:\s*")
_PART = re.compile(r"(\d+)\s+(.+?)(?:,\s+(?=\d+\s)|\.\s*$|\.\s+|$)")
_TAINT = re.compile(r"untolerated taint\s*\{([^}:]*)")

_CONTAINERS = {
    "CrashLoopBackOff": "its container ends again and again; Kubernetes starts it anew, ever more slowly",
    "ImagePullBackOff": "its image cannot be pulled",
    "ErrImagePull": "its image cannot be pulled",
    "InvalidImageName": "the name of its image is not valid",
    "CreateContainerConfigError": "a ConfigMap or Secret that it names is not there",
    "CreateContainerError": "its container cannot be made",
    "RunContainerError": "its container cannot be started",
}
_WHOLE = {
    "SchedulingGated": "it is held back by a scheduling gate, usually a queue such as Kueue",
    "Scheduling is blocked": "it is held back by a scheduling gate, usually a queue such as Kueue",
    "no nodes available": "the cluster has no node at all",
    "unbound immediate PersistentVolumeClaims": "a volume that it claims is not there yet",
}


@dataclass(frozen=True, slots=True)
class Aim:
    """What the pod asked for, as far as words depend on it."""

    gpus: int = 0
    wish: str = ""

    @property
    def nodes(self) -> str:
        """'preemptible node', 'standard node' or 'node'."""
        return {"required": "preemptible node", "refused": "standard node"}.get(self.wish, "node")


def plain_reason(message: str, gpus: int = 0, wish: str = "") -> str:
    """The sentence's second half: "no preemptible node has 8 GPUs free". '' for an empty message."""
    text = message.strip()
    if not text:
        return ""
    for reason, words in _CONTAINERS.items():
        if text == reason or text.startswith(f"{reason}:"):
            return words
    for beginning, words in _WHOLE.items():
        if beginning in text:
            return words
    counted = _counted(text)
    aim = Aim(gpus, wish)
    found = [
        (rank, _words(kind, number, what, aim)) for number, what in counted for rank, said, kind in _OBSTACLES if said in what
    ]
    if not found:
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    found.sort(key=lambda one: one[0])
    nearest = [words for rank, words in found if rank < _NO_MATCH] or [found[0][1]]
    if found[0][0] in _BEFORE_SELECTOR and found[-1][0] == _NO_MATCH:
        nearest = [nearest[0], "no other node matches its nodeSelector or affinity"]
    return "; ".join(dict.fromkeys(nearest[:2]))


def _counted(text: str) -> list[tuple[int, str]]:
    """Obstacles with the number of nodes that have them; what preemption of other pods would bring is left out."""
    found = _HEAD.match(text)
    if not found:
        return []
    body = text[found.end() :].split(" preemption: ", 1)[0].split(" no new claims to deallocate", 1)[0]
    return [(int(count), what.strip()) for count, what in _PART.findall(body)]


def _words(kind: str, count: int, what: str, aim: Aim) -> str:
    """One obstacle, met on `count` nodes, in our words."""
    nodes = f"{count} {'node' if count == 1 else 'nodes'}"
    match kind:
        case "full":
            size = f"{aim.gpus} {'GPU' if aim.gpus == 1 else 'GPUs'}" if aim.gpus else "GPUs"
            return f"no {aim.nodes} has {size} free"
        case "short":
            resource = what.removeprefix("Insufficient ").rstrip(".")
            return f"no {aim.nodes} has enough {_RESOURCES.get(resource, resource)} free"
        case "cordoned":
            return f"{nodes} {'is' if count == 1 else 'are'} cordoned or draining"
        case "tainted":
            key = _TAINT.search(what)
            named = f" ({key[1].strip()})" if key and key[1].strip() else ""
            return f"{nodes} {'has' if count == 1 else 'have'} a taint that it does not tolerate{named}"
        case "unmatched":
            return f"nothing matches its nodeSelector or affinity{_NONE.get(aim.wish, '')}"
        case _:
            return kind


_RESOURCES = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "disk space"}
_NONE = {"required": ": no preemptible node is there", "misaimed": ": no node has the class it names"}
_NO_MATCH = 90
_BEFORE_SELECTOR = (40, 50)  # looked at before the selector, so such a node may match it or not

# (rank, what the scheduler says, which of our words). The lowest rank is said first.
_OBSTACLES = (
    (10, f"Insufficient {GPU_RESOURCE}", "full"),
    (20, "Insufficient cpu", "short"),
    (20, "Insufficient memory", "short"),
    (20, "Insufficient ephemeral-storage", "short"),
    (30, "Too many pods", "the nodes hold as many pods as they may"),
    (40, "were unschedulable", "cordoned"),
    (50, "untolerated taint", "tainted"),
    (60, "anti-affinity", "its own rules keep its pods apart, and no other node is there"),
    (60, "pod affinity", "it wants to be near a pod that is on no node with room"),
    (60, "topology spread", "its rules for spreading allow no node"),
    (70, "volume node affinity", "its volume is in another place than the nodes with room"),
    (70, "free ports", "the port that it wants is taken on every node"),
    (_NO_MATCH, "node affinity", "unmatched"),
    (_NO_MATCH, "node selector", "unmatched"),
)
