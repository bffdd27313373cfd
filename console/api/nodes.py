"""A machine and its Node as one of the client's worker nodes. Pure: rows in, shapes out."""

from datetime import datetime
from typing import Any

from console.api.shapes import DeletedGPUWorkerNode, GPUWorkerNode, NodePhase, NodePhaseTransition
from console.clusters.models import ComputeClass, Machine, Node

WITHOUT_NODE = {
    Machine.State.ASKED: "Pending",
    Machine.State.BOOTING: "Booting",
    Machine.State.JOINED: "Unknown",  # the machine is here, and Kubernetes shows no node of it
    Machine.State.LEAVING: "Draining",
}


def of_node(node: Node) -> GPUWorkerNode:
    return GPUWorkerNode(
        node_id=node.name,
        instance_id=str(node.machine_id or node.uid),
        host_name=node.name,
        status=_word(node),
        num_gpus=node.gpus,
        networks=[node.internal_ip] if node.internal_ip else [],
        phase_transitions=_of_machine(node.machine) if node.machine else _of_foreign(node),
        marked_for_deletion=node.draining,
        compute_class=ComputeClass(node.compute_class),
    )


def of_machine(machine: Machine) -> GPUWorkerNode:
    return GPUWorkerNode(
        **_same(machine),
        status=WITHOUT_NODE[Machine.State(machine.state)],
        marked_for_deletion=machine.state == Machine.State.LEAVING,
    )


def deleted(machine: Machine) -> DeletedGPUWorkerNode:
    """Of a machine with `gone_at`."""
    assert machine.gone_at is not None
    status = "Failed" if machine.state == Machine.State.GIVEN_UP else "Deleted"
    return DeletedGPUWorkerNode(**_same(machine), status=status, marked_for_deletion=True, deleted_at=machine.gone_at)


def _same(machine: Machine) -> dict[str, Any]:
    return {
        "node_id": machine.node_name,
        "instance_id": str(machine.pk),
        "host_name": machine.node_name,
        "num_gpus": machine.gpus,
        "networks": [],
        "phase_transitions": _of_machine(machine),
        "compute_class": ComputeClass(machine.compute_class),
    }


def _word(node: Node) -> str:
    """The most urgent truth first."""
    if node.draining:
        return "Draining"
    if node.ready is None:
        return "Unknown"
    if not node.ready:
        return "NotReady"
    if node.startup_pending:
        return "Booting"
    return "Cordoned" if node.unschedulable else "Running"


def _of_machine(machine: Machine) -> list[NodePhaseTransition]:
    end: NodePhase = "NODE_PHASE_FAILED" if machine.state == Machine.State.GIVEN_UP else "NODE_PHASE_SUCCEEDED"
    times: list[tuple[NodePhase, datetime | None]] = [
        ("NODE_PHASE_PENDING", machine.asked_at),
        ("NODE_PHASE_BOOTSTRAPPING", machine.joined_at),
        ("NODE_PHASE_RUNNING", machine.first_ready_at),
        (end, machine.gone_at),
    ]
    return [NodePhaseTransition(phase=phase, transition_time=at) for phase, at in times if at is not None]


def _of_foreign(node: Node) -> list[NodePhaseTransition]:
    found = [NodePhaseTransition(phase="NODE_PHASE_BOOTSTRAPPING", transition_time=node.created_at)]
    if node.ready and node.ready_since:
        found.append(NodePhaseTransition(phase="NODE_PHASE_RUNNING", transition_time=node.ready_since))
    return found
