"""One line a machine: what a cell of the strip and a row of the nodes table say about it.

A machine and its Node are one thing to a person, so they are one line with one key from the moment the machine is asked for; a
Node without a machine of ours has its own. Pure: rows in, words out.

A page may have a thousand of them, so the columns that a line reads come as plain tuples where a whole cluster is drawn: making
model instances of them took half of the page's time.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from console.capacity.models import Drain
from console.clusters.models import ComputeClass, Machine, Node
from console.kube import marks

BOOT_HINT = "usually Ready after a few minutes"
PERSON = marks.by_person("")


class MachineRow(NamedTuple):
    """What a line reads of a machine; the names are the model's."""

    id: UUID
    compute_class: str
    node_name: str
    gpus: int
    state: str
    asked_at: datetime
    first_ready_at: datetime | None
    last_proof_at: datetime | None


class NodeRow(NamedTuple):
    """What a line reads of a Node; the names are the model's."""

    id: UUID
    machine_id: UUID | None
    name: str
    compute_class: str
    gpus: int
    ready: bool | None
    ready_since: datetime | None
    not_ready_why: str
    unschedulable: bool
    cordoned_by: str
    draining: bool
    startup_pending: bool
    created_at: datetime
    kubelet_version: str


class Line(NamedTuple):
    """State is one of: ready, booting, draining, sick, held, lost. `since` counts up in the cell, `until` counts down."""

    key: str
    node_id: str  # empty until Kubernetes shows the Node
    name: str
    preemptible: bool
    gpus: int
    state: str
    word: str  # what the cell says; empty where it says how long
    says: str  # the whole sentence, for the tip, the table and a screen reader
    since: datetime
    until: datetime | None = None
    unschedulable: bool = False
    kubelet: str = ""
    charged: bool = False  # it was Ready once and is still here: it costs

    @property
    def short(self) -> str:
        """The part of the name that tells machines apart."""
        return self.name.rsplit("-", 1)[-1][:7]

    @property
    def sort(self) -> str:
        """Standard before preemptible, then by name; the browser keeps this order too."""
        return f"{int(self.preemptible)} {self.name} {self.key}"


def lines(machines: Iterable[Machine | MachineRow], nodes: Iterable[Node | NodeRow], drains: Iterable[Drain]) -> list[Line]:
    """Machines that are coming or here, and nodes of nobody's machine, in the order of the page."""
    by_machine: dict[UUID, Node | NodeRow] = {}
    alone: list[Node | NodeRow] = []
    for node in nodes:
        if node.machine_id is None:
            alone.append(node)
        else:
            by_machine[node.machine_id] = node
    open_drains = {drain.machine_id: drain for drain in drains}
    found = [_of_machine(machine, by_machine.get(machine.id), open_drains.get(machine.id)) for machine in machines]
    found += [_of_node(node, node.id.hex, None, False) for node in alone]
    return sorted((line for line in found if line is not None), key=lambda line: line.sort)


def _of_machine(machine: Machine | MachineRow, node: Node | NodeRow | None, drain: Drain | None) -> Line | None:
    if node is not None:
        return _of_node(node, machine.id.hex, drain, machine.first_ready_at is not None)
    preemptible = machine.compute_class == ComputeClass.PREEMPTIBLE

    def line(state: str, word: str, says: str, since: datetime) -> Line:
        return Line(machine.id.hex, "", machine.node_name, preemptible, machine.gpus, state, word, says, since)

    if machine.state == Machine.State.ASKED:
        return line("booting", "asked", "Asked for, not yet confirmed by the provider", machine.asked_at)
    if machine.state == Machine.State.BOOTING:
        return line("booting", "boots", f"Booting, {BOOT_HINT}", machine.asked_at)
    if machine.state == Machine.State.JOINED:
        since = machine.last_proof_at or machine.asked_at
        return line("lost", "", "The machine is here, but Kubernetes shows no node of it", since)
    return None  # leaving, gone or given up, and its node is gone too


def _of_node(node: Node | NodeRow, key: str, drain: Drain | None, charged: bool) -> Line:
    state, word, says, since = _state(node, drain, charged or node.machine_id is None)
    return Line(
        key=key,
        node_id=node.id.hex,
        name=node.name,
        preemptible=node.compute_class == ComputeClass.PREEMPTIBLE,
        gpus=node.gpus,
        state=state,
        word=word,
        says=says,
        since=since,
        until=drain.deadline if drain is not None else None,
        unschedulable=node.unschedulable,
        kubelet=node.kubelet_version,
        charged=charged,
    )


def _state(node: Node | NodeRow, drain: Drain | None, was_ready: bool) -> tuple[str, str, str, datetime]:
    """The most urgent truth first. A machine that has never been Ready is still coming, not sick."""
    since = node.ready_since or node.created_at
    if drain is not None:
        why = f": {drain.why}" if drain.why else ""
        return "draining", "", f"Goes back, gone by {drain.deadline:%H:%M:%S} UTC{why}", drain.started_at
    if node.draining:
        return "draining", "goes", "Draining", since
    if node.ready is not True and not was_ready:
        return "booting", "joins", f"Joined, not yet Ready, {BOOT_HINT}", node.created_at
    if node.ready is None:
        return "lost", "", f"Not heard from since {since:%H:%M:%S} UTC", since
    if node.ready is False:
        reason = f": {node.not_ready_why}" if node.not_ready_why else ""
        return "sick", "sick", f"Not Ready since {since:%H:%M:%S} UTC{reason}", since
    if node.startup_pending:
        return "booting", "starts", "Ready, and its startup script runs before workloads may", since
    if node.unschedulable:
        return "held", "cordon", f"Ready, cordoned by {_whose(node.cordoned_by)}: new pods stay away", node.created_at
    return "ready", "", "Ready", node.created_at


def _whose(mark: str) -> str:
    if not mark:
        return "a person"
    return mark.removeprefix(PERSON) if mark.startswith(PERSON) else "Halftide"
