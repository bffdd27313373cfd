"""The tide gauge's geometry and its reason line, from numbers alone, so that server, socket and tests say the same.

Everything is a share of the scale in percent, because the picture is SVG attributes (a strict CSP allows no style).
"""

from dataclasses import dataclass

NICE = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # nodes on a scale
MOST_TICKS = 16


def scale(desired: int, allocated: int, step: int, quota: int) -> int:
    """GPUs at the right end: at least 12 nodes, with a fifth of room above what is asked for, whole nodes, within the quota.

    A limit that is not a whole number of nodes is rounded down: with 37 and nodes of 8 the last stop is 32.
    """
    there = max(desired, allocated)
    nodes = -(-there // step)
    wanted = nodes if nodes <= NICE[0] * 5 // 6 else nodes * 6 // 5
    end = next((nice for nice in NICE if nice >= wanted), wanted)
    return max(min(end, quota // step), nodes, 1) * step


@dataclass(frozen=True)
class Tick:
    x: str
    label: str
    minor: bool  # left out on a phone
    inside: bool  # drawn over the fill
    line: bool  # the ends of the scale have none


def ticks(end: int, allocated: int, step: int) -> list[Tick]:
    """A mark a node, or every few nodes on a long scale; every fourth is labelled on a phone too."""
    nodes = end // step
    stride = -(-nodes // MOST_TICKS)
    major = 4 if nodes // stride >= 8 else 2
    stops = range(0, nodes + 1, stride)
    return [
        Tick(percent(stop * step, end), str(stop * step), (index % major) != 0, stop * step < allocated, 0 < stop < nodes)
        for index, stop in enumerate(stops)
    ]


def percent(part: float, whole: int) -> str:
    return f"{part / whole * 100:.3f}".rstrip("0").rstrip(".") + "%" if whole else "0%"
