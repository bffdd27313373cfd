"""The planner's form: what was typed stays typed, each fault stands beside its field, and what is not typed is prefilled.

Everything is in the address (a GET form), so that a plan can be sent to somebody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from console.http import BadInput
from console.pages.numbers import decimal
from console.workloads.facts import PREEMPTIBLE, Owner
from console.workloads.planner import GB, TB, Save, save

UNITS = {"TB": TB, "GB": GB}


class Field(NamedTuple):
    """One number of the form. `what` begins the sentence about a bad one."""

    what: str
    least: float
    most: float


FIELDS = {
    "size": Field("The size", 0.001, 1_000_000),
    "bandwidth": Field("The bandwidth", 0.001, 1_000_000),
    "slower": Field("How much slower", 1, 10_000),
    "step": Field("The step", 0, 86_400),
    "window": Field("What the pod gets", 1, 300),
    "nodes": Field("The number of nodes", 1, 100_000),
}


@dataclass
class PlanForm:
    """`typed` are strings as they came or were prefilled; `errors` by field. `numbers` holds what could be read."""

    typed: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mapping[str, str], filled: Mapping[str, str], window: int) -> "PlanForm":
        """`filled` stands in for what the address does not say; a field that was emptied stays empty."""
        form = cls({name: str(asked.get(name, filled.get(name, ""))) for name in (*FIELDS, "unit")})
        if form.typed["unit"] not in UNITS:
            form.typed["unit"] = "TB"
        for name, (what, least, most) in FIELDS.items():
            form._read(name, what, least, min(most, window) if name == "window" else most)
        return form

    def _read(self, name: str, what: str, least: float, most: float) -> None:
        if not self.typed[name].strip():
            return
        try:
            self.numbers[name] = decimal(self.typed[name], name, what, least, most)
        except BadInput as error:
            self.errors[name] = error.message
        if name == "window" and name in self.errors:
            self.errors[name] += f" A reclaim gives at most {most:g} s, whatever the pod asks for."
        if name == "nodes" and self.numbers.get(name, 1) % 1:
            self.errors[name] = "Nodes are whole."

    @property
    def whole(self) -> bool:
        """Whether there is enough to plan with."""
        return not self.errors and self.numbers.keys() >= FIELDS.keys()

    def plan(self, slower: float) -> Save:
        """At the bandwidth typed, so many times slower."""
        told = self.numbers
        size = told["size"] * UNITS[self.typed["unit"]]
        return save(size, told["bandwidth"] * GB, slower, told["step"], told["window"])


def defaults(window: int) -> dict[str, str]:
    return {"unit": "TB", "slower": "1", "step": "0", "window": f"{window}", "nodes": "1"}


def of_workload(owner: Owner, window: int) -> dict[str, str]:
    """What a workload's own pods say: size and bandwidth where they tell of their saves, its grace, its nodes."""
    found = {"window": str(min(window, max((pod.grace_seconds for pod in owner.active), default=window)))}
    nodes = {pod.node_name for pod in owner.active if pod.compute_class == PREEMPTIBLE}
    if nodes:
        found["nodes"] = str(len(nodes))
    told = [pod for pod in owner.active if pod.checkpoint_bytes and pod.checkpoint_seconds]
    if told:
        # Each pod tells of its own part. They save side by side, so the slowest one's time is the whole save's.
        size = sum(pod.checkpoint_bytes or 0 for pod in told)
        seconds = max(pod.checkpoint_seconds or 0 for pod in told)
        unit = "TB" if size >= TB else "GB"
        found |= {"size": _short(size / UNITS[unit]), "unit": unit, "bandwidth": _short(size / seconds / GB)}
    return found


def _short(number: float) -> str:
    """Three significant digits are more than a tenant's word is worth; never fewer than the form takes."""
    return f"{max(number, 0.001):.3f}".rstrip("0").rstrip(".")
