"""A machine that is taken back, real or simulated: what the engine says of each pod, and what the containers wrote."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from console.capacity.drains.acts import Doors
from console.capacity.drains.doors import Keys, open_doors
from console.capacity.drains.run import OpenDoors
from console.capacity.models import Drain, PodVerdict
from console.clusters.models import Cluster, Node
from console.clusters.models import Machine as MachineRow
from console.runner.controlplane.build import SERVERS
from tests.capacity.driving import finish, take_back
from tests.controlplane.fixtures import built
from tests.controlplane.plane import Plane
from tests.installation import within
from tests.machines.fates import FATES, STAYS, WINDOW
from tests.machines.machine import Machine, require
from tests.machines.worlds import World, real, simulated
from tests.reports import report, table
from tests.simulator.conftest import Simulation, eventually
from tests.sync.processes import Watchers

pytestmark = pytest.mark.django_db(transaction=True)

CUT = timedelta(seconds=1)  # Kubernetes writes whole seconds
LEAVING = timedelta(seconds=3)


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of their own: their kubelets report to it."""
    folder = built(request, *SERVERS, "kubectl", "kubelet")
    with Plane(tmp_path_factory.mktemp("machines"), folder, heartbeats=False) as plane:
        yield plane


@pytest.fixture
def watchers(db: None) -> Iterator[Watchers]:
    started = Watchers()
    yield started
    started.close()


@contextmanager
def real_world(request: pytest.FixtureRequest, *names: str) -> Iterator[World]:
    """Machines of these names, and a registry that takes every call and never answers."""
    require()
    plane: Plane = request.getfixturevalue("plane")
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        machines = [stack.enter_context(Machine(plane, name)) for name in names]
        namespace = stack.enter_context(plane.namespace("lives"))
        yield real(plane, machines, namespace, f"127.0.0.1:{silent.getsockname()[1]}/never:1")


@pytest.fixture(params=["real", "simulated"])
def world(request: pytest.FixtureRequest, tmp_path: Path, settings) -> Iterator[World]:
    if request.param == "real":
        with real_world(request, "gpu-preemptible-dp-real") as here:
            yield here
        return
    simulation = Simulation(tmp_path).start()
    settings.SIM_URL, settings.STATE_DIR = simulation.url, simulation.state
    yield simulated(simulation, "gpu-preemptible-dp-sim")
    simulation.end()


def open_real(world: World) -> OpenDoors:
    """The engine's own doors, with a provider that stops real machines where there are any."""

    @asynccontextmanager
    async def doors(keys: Keys) -> AsyncIterator[Doors]:
        async with open_doors(keys) as found:
            if world.terminate is None:
                yield found
                return
            stop = world.terminate

            async def end_machine(machine: MachineRow) -> bool:
                await asyncio.to_thread(stop, machine.node_name)
                return True

            yield replace(found, end_machine=end_machine)

    return doors


def reclaim(world: World) -> list[Drain]:
    """Its notice, for all nodes that are ours."""
    return take_back(list(Node.objects.filter(cluster=world.cluster, machine__isnull=False)), WINDOW)


def test_the_engine_says_of_each_pod_what_became_of_it(world: World, watchers: Watchers, pytestconfig: pytest.Config) -> None:
    """aws/aws-node-termination-handler#433: graces that do not fit the window among them."""
    watchers.start()
    body = STAYS.body(world.node.name, str(world.written or "/out"), world.nowhere)
    world.daemon(body)
    mirror = world.mirror({"metadata": {"name": "static"}, "spec": body["spec"]})
    for fate in FATES:
        world.run(fate)
    for fate in FATES:
        if fate.pulled:
            eventually(lambda name=fate.name: world.running(name), 90)
    eventually(lambda: world.here() >= {mirror, *(fate.name for fate in FATES)} and world.daemons(), 60)
    eventually(lambda: Cluster.objects.get(pk=world.cluster.pk).proved_to, 60)
    with world.watched() as seen:
        [drain] = reclaim(world)
        finish(world.cluster, WINDOW + 60, open_real(world))
        drain.refresh_from_db()
        within(20, lambda: all(seen.steps(fate.name) == fate.steps() for fate in FATES))
    rows = {row.name: row for row in PodVerdict.objects.filter(drain=drain)}
    tell(pytestconfig, world, rows)
    assert {name: (row.verdict, row.exit_code) for name, row in rows.items()} == {
        fate.name: (fate.verdict, fate.exit_code) for fate in FATES
    }
    assert {fate.name: seen.steps(fate.name) for fate in FATES} == {fate.name: fate.steps() for fate in FATES}
    assert all(rows[fate.name].given_grace <= min(fate.grace, WINDOW - 2) for fate in FATES)
    assert drain.state == Drain.State.REMOVED
    assert drain.removed_at is not None
    assert drain.removed_at <= drain.deadline + timedelta(seconds=15)
    assert world.api.get(f"/api/v1/nodes/{world.node.name}").status_code == 404
    assert "told" not in " ".join(seen.steps(mirror))
    if world.written:
        agrees(world, rows)


def agrees(world: World, rows: dict[str, PodVerdict]) -> None:
    """Each verdict against what the container wrote: the same end, at the same time, with the same code."""
    for fate in FATES:
        row, said = rows[fate.name], world.said(fate.name)
        assert row.told_at is not None, fate.name
        assert row.ended_at is not None, fate.name
        assert ("ended" in said) == fate.ends(), fate.name
        if fate.pulled:
            assert said["told"].at >= row.told_at + timedelta(seconds=fate.hook) - CUT, fate.name
        if fate.ends():
            # A second is cut off by the kubelet, and a shell needs its own time to leave.
            assert abs(said["ended"].at - row.ended_at) <= LEAVING, fate.name
        if fate.ends() and fate.side is None:
            assert said["ended"].code == row.exit_code, fate.name
        if fate.pulled and not fate.ends():  # it did not listen: its end is the end of its grace, after the hook too
            assert row.given_grace is not None
            assert abs(row.ended_at - row.told_at - timedelta(seconds=row.given_grace)) <= LEAVING + CUT, fate.name
    assert "told" not in world.said(STAYS.name)


def tell(config: pytest.Config, world: World, rows: dict[str, PodVerdict]) -> None:
    """The table beside the containers' own words, for people."""
    lines = []
    for fate in FATES:
        row = rows.get(fate.name)
        if row is None or row.told_at is None:
            continue
        after = f"{(row.ended_at - row.told_at).total_seconds():.1f} s" if row.ended_at else "–"
        said = world.said(fate.name) if world.written else {}
        words = [
            f"{word} {(one.at - row.told_at).total_seconds():+.1f} s" + (f" exit {one.code}" if one.code is not None else "")
            for word, one in said.items()
            if word != "started"
        ]
        lines.append(
            [fate.name, f"{fate.grace} s", f"{row.given_grace} s", row.verdict, str(row.exit_code), after, ", ".join(words)]
        )
    head = ["pod", "own grace", "given", "verdict", "exit code", "after", "the container wrote"]
    report(config, f"lives-{world.cluster.name}.md", f"# Verdicts, {world.cluster.name} machine\n\n{table(head, lines)}")


def test_pods_of_one_job_on_two_machines_are_told_within_a_second(
    request: pytest.FixtureRequest, watchers: Watchers, transactional_db: None
) -> None:
    """So that they can save together. The real scheduler and Job controller put one pod on each."""
    with real_world(request, "gpu-preemptible-dp-one", "gpu-preemptible-dp-two") as world:
        watchers.start()
        world.job("train", pods=2, body=FATES[0].body("", str(world.written), ""))
        eventually(lambda: Cluster.objects.get(pk=world.cluster.pk).proved_to, 60)
        eventually(lambda: len([name for name in world.pods_of("train") if world.running(name)]) == 2, 90)
        drains = reclaim(world)
        finish(world.cluster, WINDOW + 60, open_real(world))
        rows = list(PodVerdict.objects.filter(drain__in=drains, owner_kind="Job", owner_name="train"))
        assert sorted((row.verdict, row.exit_code) for row in rows) == [(PodVerdict.Verdict.FINISHED, 0)] * 2
        assert len({row.drain_id for row in rows}) == 2
        told = [row.told_at for row in rows if row.told_at]
        assert max(told) - min(told) <= timedelta(seconds=1)
        assert {drain.state for drain in Drain.objects.filter(cluster=world.cluster)} == {Drain.State.REMOVED}
