"""The plan's decisions into rows, and what the provider answered into rows. All of it inside a change of the run.

Intent first: a machine's row says *asked* before `launch` is sent and *leaving* (or *given up*) before `terminate` is, so that
whoever takes over knows what may have happened (DESIGN 4).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID, uuid4

from console.capacity.drains.changes import Start, start_drains
from console.capacity.models import Pool
from console.capacity.pools.inputs import Missing
from console.capacity.pools.plan import CALLED_OFF, GIVEN_UP, LOST, TAKEN_BACK, Launch, Plan, Removal
from console.capacity.pools.victims import MachineView
from console.capacity.providers.base import Given, Order
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from console.kube import marks
from console.timeline.changes import Change
from console.timeline.models import Entry

PREFIX = {ComputeClass.STANDARD: "gpu-dp", ComputeClass.PREEMPTIBLE: "gpu-preemptible-dp"}
SEVERITY = {TAKEN_BACK: Entry.Severity.WARNING, GIVEN_UP: Entry.Severity.WARNING, LOST: Entry.Severity.CRITICAL}
ENDS = {TAKEN_BACK: "called off before it joined", CALLED_OFF: "called off before it joined", GIVEN_UP: "given up", LOST: "lost"}


def apply(made: Change, pool: Pool, clusters: Mapping[UUID, Cluster], decided: Plan, views: Sequence[MachineView]) -> None:
    """Write what was decided. The pool and the clusters are locked."""
    by_id = {view.id: view for view in views}
    going = {removal.machine for removal in decided.removals} | {drain.machine for drain in decided.drains}
    machines = {machine.pk: machine for machine in made.lock(Machine.objects.filter(pk__in=going))}
    nodes = {
        node.machine_id: node for node in made.lock(Node.objects.filter(machine__in=[drain.machine for drain in decided.drains]))
    }
    for launch in decided.launches:
        _intend(made, pool, clusters[launch.cluster], launch)
    for removal in decided.removals:
        machine = machines[removal.machine]
        _remove(made, clusters[machine.cluster_id], machine, removal, by_id[machine.pk].returns)
    starts: dict[UUID, list[Start]] = defaultdict(list)
    for start in decided.drains:
        machine, view = machines[start.machine], by_id[start.machine]
        cluster = clusters[machine.cluster_id]
        if not view.returns and machine.state not in Missing:
            machine.state, machine.gone_at, machine.why_gone = Machine.State.GONE, made.now, start.why
            made.save(cluster.stream, machine, "state", "gone_at", "why_gone")
        if view.lost:
            _say(made, cluster, machine, LOST, f"{machine.node_name} lost: {start.why}")
        starts[cluster.pk].append(Start(machine, nodes.get(machine.pk), start.cause, start.why))
    for cluster_id, each in starts.items():
        start_drains(made, clusters[cluster_id], each, "", made.now)


def _intend(made: Change, pool: Pool, cluster: Cluster, launch: Launch) -> None:
    token = uuid4()
    machine = Machine(
        id=token,
        cluster=cluster,
        region_id=pool.region_id,
        gpu_type_id=pool.gpu_type_id,
        gpus=pool.gpu_type.gpus_per_node,
        compute_class=launch.compute_class,
        # Six digits can be read aloud; two that meet in one cluster break its constraint, and the next run asks with another.
        node_name=f"{PREFIX[launch.compute_class]}-{token.hex[:6]}",
        asked_at=made.now,
    )
    made.save(cluster.stream, machine)


def _remove(made: Change, cluster: Cluster, machine: Machine, removal: Removal, returns: bool) -> None:
    machine.why_gone = removal.why[:300]
    machine.state = Machine.State.LEAVING if returns else Machine.State.GONE
    if removal.reason == GIVEN_UP:
        machine.state = Machine.State.GIVEN_UP
    if machine.state in Missing:
        machine.gone_at = made.now
    made.save(cluster.stream, machine, "state", "why_gone", "gone_at")
    _say(made, cluster, machine, removal.reason, f"{machine.node_name} {ENDS[removal.reason]}: {removal.why}")


def _say(made: Change, cluster: Cluster, machine: Machine, reason: str, message: str) -> None:
    severity = SEVERITY.get(reason, Entry.Severity.INFO)
    subject = ("Machine", machine.node_name, str(machine.pk))
    made.entry(cluster.stream, reason, message, severity=severity, subject=subject, compute_class=machine.compute_class)


def order(pool: Pool, machine: Machine) -> Order:
    """What is sent for a machine. Class belongs to the machine: only preemptible ones carry the label (DESIGN 5)."""
    labels = {marks.MACHINE_LABEL: str(machine.pk)}
    if machine.compute_class == ComputeClass.PREEMPTIBLE:
        labels[marks.CLASS_LABEL] = marks.PREEMPTIBLE
    return Order(
        machine.pk, pool.region_id, pool.gpu_type_id, machine.cluster_id, machine.node_name, machine.compute_class, labels
    )


def confirm(made: Change, answers: Mapping[UUID, Given]) -> None:
    """Machines that the provider has taken on. One line a cluster and class, whatever the number; each machine is in one line."""
    taken: Counter[tuple[UUID, str]] = Counter()
    gpus: Counter[tuple[UUID, str]] = Counter()
    for machine in made.lock(Machine.objects.filter(pk__in=answers)):
        if machine.provider_id:
            continue  # said before
        machine.provider_id = answers[machine.pk].provider_id[:200]
        if machine.state == Machine.State.ASKED:
            machine.state = Machine.State.BOOTING
        made.save(machine.cluster_id, machine, "state", "provider_id")
        key = (machine.cluster_id, machine.compute_class)
        taken[key] += 1
        gpus[key] += machine.gpus
    for (cluster, compute_class), number in sorted(taken.items()):
        machines = "machine" if number == 1 else "machines"
        message = f"{number} {compute_class} {machines} asked for ({gpus[cluster, compute_class]} GPUs)"
        data = {"machines": number, "class": compute_class}
        made.entry(cluster, "LaunchAsked", message, compute_class=compute_class, data=data)


def forget(made: Change, refused: Iterable[UUID], asked_before: Collection[UUID]) -> Counter[tuple[UUID, ComputeClass]]:
    """Launches that the provider refused. Returns how many, by cluster and class.

    The machine never was, and its row goes; but where its token was `asked_before`, an older request may still be on its way, and
    what it makes has to be known to be ended.
    """
    numbers: Counter[tuple[UUID, ComputeClass]] = Counter()
    for machine in made.lock(Machine.objects.filter(pk__in=refused, state=Machine.State.ASKED)):
        numbers[machine.cluster_id, ComputeClass(machine.compute_class)] += 1
        if machine.pk in asked_before:
            machine.state, machine.gone_at, machine.why_gone = (
                Machine.State.GIVEN_UP,
                made.now,
                "the provider gave no machine for it",
            )
            made.save(machine.cluster_id, machine, "state", "gone_at", "why_gone")
            continue
        made.gone(machine.cluster_id, "node", machine.pk)  # a machine and its node are one line of a page
        machine.delete()
    return numbers


def note_gone(made: Change, tokens: Iterable[UUID]) -> None:
    """Machines that were leaving, and that the provider no longer has."""
    for machine in made.lock(Machine.objects.filter(pk__in=tokens, state=Machine.State.LEAVING)):
        machine.state, machine.gone_at = Machine.State.GONE, made.now
        made.save(machine.cluster_id, machine, "state", "gone_at")
