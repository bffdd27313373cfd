"""`manage.py sim`: each command does what it says, and nothing is lost or acted on by what it breaks (guarantee 5)."""

import asyncio
import io
import re
from collections.abc import Iterator
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from console.accounts.models import Role
from console.capacity.models import Drain
from console.capacity.pools.reconcile import reconcile_pool
from console.capacity.queries import difference
from console.capacity.services import set_target
from console.clusters.models import Cluster, ComputeClass, KindState, Machine, Node
from console.clusters.secrets import connection
from console.demo.management.commands.sim import FAULTS
from console.kube.client import Kube
from console.kube.errors import Expired, Garbage, KubeError, Throttled, Unreachable
from console.kube.kubeconfig import Connection
from console.kube.shapes import Change, Kind
from console.kube.watch import Failed, Heard, Listed, Signal, follow
from console.sync import tasks
from console.sync.room import KINDS
from console.timeline.models import Entry
from tests.capacity.both_worlds import Both
from tests.capacity.rows import person
from tests.kube.conftest import Clock
from tests.simulator.conftest import Simulation, eventually, ready

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "aurora-observed"
POOL = ("--pool", "eu-north-1/H100_SXM")


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


@pytest.fixture
def both(transactional_db: None, simulation: Simulation, settings: Any) -> Iterator[Both]:
    settings.SIM_URL, settings.STATE_DIR = simulation.url, simulation.state
    sim("clear")
    found = Both(simulation)
    yield found
    sim("clear")
    simulation.control("DELETE", f"clusters/{found.cluster.pk}")


@pytest.fixture
def place(simulation: Simulation, settings: Any) -> Iterator[None]:
    """A simulator with an empty cluster, for what needs no rows."""
    settings.SIM_URL, settings.STATE_DIR = simulation.url, simulation.state
    simulation.control("POST", "clusters", {"id": "empty", "name": NAME, "region": "eu-north-1"})
    yield
    sim("clear")
    simulation.control("DELETE", "clusters/empty")


def sim(*words: str) -> str:
    """What the command says."""
    out = io.StringIO()
    call_command("sim", *words, stdout=out)
    return out.getvalue().strip()


def relist(both: Both, *kinds: Kind) -> Cluster:
    tasks.relist_cluster(str(both.cluster.pk), kinds or KINDS)
    return Cluster.objects.get(pk=both.cluster.pk)


def the_picture_is_old() -> datetime:
    """A minute has passed since the last good list."""
    proved = timezone.now() - timedelta(minutes=1)
    Cluster.objects.update(proved_to=proved)
    return proved


def reasons(*wanted: str) -> list[str]:
    return list(Entry.objects.filter(reason__in=wanted).order_by("pk").values_list("reason", flat=True))


# Lists that fail, or lie -------------------------------------------------------------------------------------------------

BROKEN_LISTS = {
    "down": (("api-down",), "is unreachable|is currently unable"),
    "401": (("401",), "Unauthorized"),
    "403": (("403", "list", "--resource", "nodes"), "Halftide may not list of nodes"),
    "429": (("429", "60"), "asks us to wait 60 s"),
    "410": (("410", "http"), "too old resource version"),
    "older": (("older-snapshot", "10000"), "was seen before"),
    "partial": (("partial-pages",), "this page cannot be read"),
}


def test_on_lists_that_fail_or_lie_nothing_is_removed_and_nothing_begun(both: Both) -> None:
    """apache/airflow#21087, kubernetes/client-go#222, lensapp/lens#2375, skypilot-org/skypilot PR#7469: the picture gets older,
    says so once, and what happened meanwhile is there, once, when it is whole again."""
    gone = Node.objects.get(compute_class=ComputeClass.PREEMPTIBLE)
    machines = both.machines()
    both.api.delete(f"/api/v1/nodes/{gone.name}")  # and nobody here has seen it yet
    both.api.post("/api/v1/nodes", {"metadata": {"name": "control-plane"}})  # so that there is a second page
    set_target(person(Role.OPERATOR), both.cluster, 16)
    for fault, (words, why) in BROKEN_LISTS.items():
        assert NAME in sim(*words, "--cluster", NAME)
        proved = the_picture_is_old()
        for _ in range(2):
            cluster = relist(both, "nodes")
            both.plan()
        assert (cluster.unreachable_since, cluster.proved_to) == (proved, proved), fault
        assert re.search(why, cluster.unreachable_why), (fault, cluster.unreachable_why)
        assert (Node.objects.filter(ready=True).count(), cluster.allocated_preemptible_gpus) == (2, 8), fault
        assert (both.machines(), Drain.objects.count()) == (machines, 0), fault
        found = difference(cluster, timezone.now())
        assert found.adds_up, fault
        assert "Kubernetes is unreachable since" in found.blocked_why, fault
        sim("clear")
        Cluster.objects.update(unreachable_since=None, unreachable_why="")
        KindState.objects.update(error="", error_since=None)
    assert reasons("KubernetesUnreachable") == ["KubernetesUnreachable"] * len(BROKEN_LISTS)

    relist(both)
    both.plan()
    assert not Node.objects.filter(pk=gone.pk).exists()
    assert reasons("NodeLost") == ["NodeLost"]
    assert len(both.machines()) == len(machines) + 1


def test_where_nobody_lists_any_more_nothing_is_begun_on_the_old_picture(both: Both) -> None:
    """Neither watch nor relist run, and no error tells of it: the age of the picture is enough."""
    machines = both.machines()
    Cluster.objects.update(proved_to=timezone.now() - timedelta(seconds=121))
    set_target(person(Role.OPERATOR), both.cluster, 0)
    both.plan()
    assert (both.machines(), Drain.objects.count()) == (machines, 0)
    set_target(person(Role.OPERATOR), both.cluster, 16)
    both.plan()
    assert both.machines() == machines
    assert "nothing is begun on an old picture" in difference(Cluster.objects.get(), timezone.now()).blocked_why
    relist(both)
    both.plan()
    assert len(both.machines()) == len(machines) + 1


def test_a_wrong_clock_of_the_api_moves_no_instant_of_ours(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Kubernetes tells is corrected by its Date: half a minute later we still know when the node became Ready."""
    set_target(person(Role.OPERATOR), both.cluster, 16)
    both.plan()
    machine = Machine.objects.get(first_ready_at=None)

    eventually(lambda: ready(both.api, machine.node_name))
    conditions = both.api.get(f"/api/v1/nodes/{machine.node_name}").json()["status"]["conditions"]
    [right] = [datetime.fromisoformat(one["lastTransitionTime"]) for one in conditions if one["type"] == "Ready"]
    assert "3600 s ahead" in sim("clock-shift", "3600")
    later = timezone.now() + timedelta(seconds=30)
    monkeypatch.setattr(tasks, "timezone", SimpleNamespace(now=lambda: later))
    relist(both)
    machine.refresh_from_db()
    assert machine.first_ready_at is not None
    assert abs((machine.first_ready_at - right).total_seconds()) < 3


# Streams that fail -------------------------------------------------------------------------------------------------------

STREAMS: dict[str, tuple[tuple[str, ...], type[KubeError]]] = {
    "410 in the stream": (("410", "stream"), Expired),
    "410 as a status": (("410", "http"), Expired),
    "silence": (("silent",), Unreachable),
    "cut in an object": (("cut",), Garbage),
}


def test_what_goes_while_a_stream_is_broken_is_noticed(both: Both) -> None:
    """kubernetes-client/python-base#57, kubernetes-client/python#1148, lensapp/lens#2375: a node that is deleted unseen."""
    for number, (words, error) in enumerate(STREAMS.values()):
        uid = both.api.post("/api/v1/nodes", {"metadata": {"name": f"ghost-{number}"}}).json()["metadata"]["uid"]
        asyncio.run(_story(connection(Cluster.objects.get()), both, f"ghost-{number}", uid, words, error))


async def _story(way: Connection, both: Both, name: str, uid: str, words: tuple[str, ...], error: type[KubeError]) -> None:
    """Break the open stream, delete the node, mend the stream once its trouble was told; the node's end must be told too."""
    clock, broken, failed, gone = Clock(), False, False, False
    async with asyncio.timeout(30), Kube(way, clock=clock, pause=clock.pause) as kube:
        signals = follow(kube, "nodes", server_timeout=1, read_timeout=2, clock=clock, pause=clock.pause)
        async with aclosing(signals):
            async for signal in signals:
                if isinstance(signal, Heard) and not broken:
                    sim(*words)
                    both.api.delete(f"/api/v1/nodes/{name}")
                    broken = True
                elif isinstance(signal, Failed) and isinstance(signal.error, error):
                    failed = True
                    sim("clear")
                gone = gone or (broken and _tells_gone(signal, uid))
                if failed and gone:
                    return


def _tells_gone(signal: Signal, uid: str) -> bool:
    if isinstance(signal, Listed):
        return uid not in {shape.uid for shape in signal.listing.items}
    return isinstance(signal, Change) and signal.type == "DELETED" and signal.shape.uid == uid


def test_a_busy_api_is_asked_again_after_what_it_says_and_not_at_once(both: Both) -> None:
    """kubernetes/client-go#222: the spacing is Retry-After's, and a wait beyond the time-out is told, after one request."""
    way = connection(Cluster.objects.get())

    async def ask(clock: Clock) -> None:
        async with Kube(way, clock=clock, pause=clock.pause) as kube:
            await kube.version()

    clock = Clock()
    sim("429", "3", "--times", "1")
    asyncio.run(ask(clock))
    assert clock.pauses == [3]
    sim("429", "60")
    before = len(both.asked())
    with pytest.raises(Throttled) as told:
        asyncio.run(ask(clock))
    assert (told.value.retry_after, len(both.asked()) - before) == (60, 1)


# Machines and pools ------------------------------------------------------------------------------------------------------


def test_a_machine_that_never_registers_is_given_up_once_and_ended(both: Both) -> None:
    assert "never become a Node" in sim("never-registers")
    set_target(person(Role.OPERATOR), both.cluster, 16)
    both.plan()
    machine = Machine.objects.get(first_ready_at=None)
    eventually(lambda: (str(machine.pk), "running", True) in both.machines())
    later = timezone.now() + timedelta(minutes=16)
    Cluster.objects.update(proved_to=later)
    for _ in range(2):
        reconcile_pool(both.pool.pk, "w", clock=lambda: later)
    machine.refresh_from_db()
    assert machine.state == Machine.State.GIVEN_UP
    assert reasons("LaunchGivenUp") == ["LaunchGivenUp"]
    eventually(lambda: (str(machine.pk), "terminated", True) in both.machines())
    assert both.api.get(f"/api/v1/nodes/{machine.node_name}").status_code == 404


def test_a_machine_that_registers_late_but_in_time_is_taken(both: Both) -> None:
    assert "only 1 s after its boot" in sim("registers-late", "1")
    set_target(person(Role.OPERATOR), both.cluster, 16)
    both.plan()
    eventually(lambda: relist(both).allocated_preemptible_gpus == 16, 20)
    assert Machine.objects.filter(state=Machine.State.JOINED).count() == 3


@pytest.mark.parametrize("words", [("reclaim", "1"), ("capacity", "1")])
def test_what_others_want_or_the_pool_lacks_is_given_back_by_preemptible_machines(both: Both, words: tuple[str, ...]) -> None:
    sim(*words, *POOL)
    both.plan()
    drain = Drain.objects.get()
    assert (drain.cause, drain.machine.compute_class) == (Drain.Cause.PREEMPTED, ComputeClass.PREEMPTIBLE)
    assert sim("reclaim", "0", *POOL) == "Other tenants of eu-north-1/H100_SXM want no machine of ours any more."


def test_a_machine_can_be_lost_by_its_nodes_name(both: Both) -> None:
    node = Node.objects.get(compute_class=ComputeClass.PREEMPTIBLE)
    assert sim("lose", node.name).startswith(f"The machine of {node.name} is dead")
    assert (str(node.machine_id), "lost", True) in both.machines()
    with pytest.raises(CommandError, match="No machine is named nobody"):
        sim("lose", "nobody")


def test_the_list_says_what_is_wrong_and_clearing_ends_it(both: Both) -> None:
    sim("slow-boot", "77")
    sim("registers-late", "30", "2")
    sim("never-registers")
    sim("403", "list", "watch", "--resource", "pods", "--for", "90", "--cluster", NAME)
    said = sim("list")
    node = Node.objects.get(compute_class=ComputeClass.STANDARD)
    assert f"machine {node.name} of {NAME}: standard, running" in said
    assert "boots take about 77 s" in said
    assert said.count("never registers") == 1
    assert f"fault on {NAME}: status (verbs ['list', 'watch'], resources ['pods'], code 403" in said
    sim("clear")
    assert "fault on" not in sim("list")
    assert "boots take about 0.2 s" in sim("list")


# The command itself ------------------------------------------------------------------------------------------------------


def test_each_fault_can_be_limited_to_a_cluster_and_a_number_of_times(place: None) -> None:
    needs = {"410": ("http",), "403": ("delete",), "clock-shift": ("-5",)}
    for name, _, _ in FAULTS:
        said = sim(name, *needs.get(name, ()), "--cluster", NAME, "--times", "1", "--for", "0")
        assert f"{NAME}, 1 time at most for 0 s" in said
    assert "fault on" not in sim("list")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("api-down", "--cluster", "nowhere"), "no cluster named nowhere. It has: "),
        (("capacity", "3", "--pool", "moon/H100"), "no pool moon/H100. It has: eu-north-1/H100_SXM"),
        (("reclaim", "1.5"), "a whole number that is not negative"),
        (("slow-boot", "nan"), "a number of seconds that is not negative"),
        (("plague",), "invalid choice"),
        (("403", "steal"), "invalid choice"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(place: None, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        sim(*words)


def test_without_a_simulator_it_says_how_to_start_one(tmp_path: Path, settings: Any) -> None:
    settings.STATE_DIR = tmp_path
    with pytest.raises(CommandError, match="`make up` starts one"):
        sim("list")
    (tmp_path / "control-token").write_text("x")
    settings.SIM_URL = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match=r"does not answer at http://127\.0\.0\.1:9"):
        sim("list")


def test_the_manual_names_every_command() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text(encoding="utf-8")
    others = ("reclaim", "capacity", "lose", "slow-boot", "never-registers", "registers-late", "clear", "list")
    missing = [name for name in (*others, *(name for name, _, _ in FAULTS)) if f"`{name}" not in manual]
    assert not missing
