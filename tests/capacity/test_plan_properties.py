"""The plan under random lives of a pool: whatever happens, in whatever order, what it decides keeps its promises.

10,000 lives under the profile `ci` (HYPOTHESIS_PROFILE), which `make test` takes.
"""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.capacity.models import Drain
from console.capacity.pools.plan import CALLED_OFF, TAKEN_BACK, Plan, PoolView
from console.capacity.pools.victims import MachineView
from console.clusters.models import ComputeClass
from tests.capacity.pool_world import PREEMPTIBLE, STANDARD, State, World
from tests.reports import report

LIVES = 10_000 if settings.get_current_profile_name() == "ci" else 1_000
EVENTS_OF_A_LIFE = 48  # before a final peace
SCRIPT = 3 * EVENTS_OF_A_LIFE  # bytes: what happens, and two dice for it

EVENTS = (
    *("run", "run", "act", "act", "act", "act", "act", "act", "killed"),
    *("whole run", "whole run", "whole run", "whole run", "whole run"),
    *("target", "target", "standard", "others", "others", "block", "time", "time", "minute"),
    *("delayed", "delayed", "lost", "twice", "arrives", "silent", "refuses", "omits", "omits all"),
    *("registers", "all ready", "all ready", "ready", "ready", "sick", "dies", "drained", "drained", "kept"),
)


@pytest.fixture(scope="module")
def counted(pytestconfig: pytest.Config) -> Iterator[Counter[str]]:
    """How much was lived, for the report."""
    count: Counter[str] = Counter()
    began = time.monotonic()
    yield count
    took = f"{time.monotonic() - began:.0f} s"
    numbers = ", ".join(f"{count[name]:,} {name}" for name in ("lives", "events", "plans", "launches", "drains", "removals"))
    report(pytestconfig, "property-runs.md", f"# Property runs of the plan\n\n{numbers}, in {took}.")


def happen(world: World, word: str, which: int, number: int) -> None:
    it = world.provider
    cluster = list(world.clusters.values())[which % len(world.clusters)]
    match word:
        case "run":
            world.begin()
        case "act" if world.workers:
            world.step(world.workers[which % len(world.workers)])
        case "whole run":
            world.whole_run()
        case "killed" if world.workers:
            world.workers.pop(which % len(world.workers))
        case "target":
            world.asked_anew(cluster.id, preemptible=number % 13)
        case "standard":
            world.asked_anew(cluster.id, standard=1 + number % 3)
        case "others":
            it.others = number % (it.total + 4)
        case "block":
            world.block(cluster.id, "" if cluster.blocked else "unreachable")
        case "time":
            world.now += timedelta(seconds=number)
        case "minute":
            world.now += timedelta(minutes=1 + number % 16)
        case "delayed" | "lost" | "twice":
            it.mood = word
        case "arrives" if it.under_way:
            it.under_way.pop(which % len(it.under_way))()
        case "silent":
            it.silent = not it.silent
        case "refuses":
            it.refuses = not it.refuses
        case "omits all":
            it.omits = set() if it.omits else set(it.live)
        case "all ready":
            for token in it.live:
                world.registers(token, ready=True)
        case "omits" | "registers" | "ready" | "sick" | "dies" if it.live:
            machine(world, word, sorted(it.live)[which % len(it.live)])
        case "drained" | "kept" if world.cause:
            token = list(world.cause)[which % len(world.cause)]
            world.drained(token) if word == "drained" else world.kept(token)


def machine(world: World, word: str, token: object) -> None:
    match word:
        case "omits":
            world.provider.omits ^= {token}
        case "dies":
            world.machine_dies(token)
        case _:
            world.registers(token, ready=word == "ready")


@settings(max_examples=LIVES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(total=st.integers(1, 40), clusters=st.integers(1, 3), script=st.binary(min_size=SCRIPT, max_size=SCRIPT))
def test_whatever_happens_in_whatever_order_the_plan_keeps_its_promises(
    counted: Counter[str], total: int, clusters: int, script: bytes
) -> None:
    """Booting machines that are not counted, two schedulers, workers killed in the middle, locks that run out, answers that never
    come (kubernetes/autoscaler#687, kubernetes/kubernetes#43709, celery/celery#2856, celery/celery#1628,
    repository-service-tuf/repository-service-tuf-worker#151)."""

    def decided(world: World, view: PoolView, machines: list[MachineView], found: Plan) -> None:
        keeps_its_promises(world, view, machines, found)
        counted.update(plans=1, launches=len(found.launches), drains=len(found.drains), removals=len(found.removals))

    world = World(total, clusters, decided)
    for at in range(0, len(script) - 2, 3):
        happen(world, EVENTS[script[at] % len(EVENTS)], script[at + 1], script[at + 2])
        always(world)
    counted.update(lives=1, events=len(script) // 3)
    peace(world)


def keeps_its_promises(world: World, view: PoolView, machines: list[MachineView], decided: Plan) -> None:
    """What holds of each single decision."""
    before = {each.id: each for each in machines}
    blocked = {each.id for each in world.cluster_views() if each.blocked} if view.heard else set(world.clusters)
    keys = [(each.id, kind) for each in world.clusters.values() for kind in ComputeClass]
    wanted = {key: world.clusters[key[0]].wanted(key[1]) for key in keys}
    had = world.counts()
    kept = Counter((each.cluster, each.compute_class) for each in machines if each.counts and each.kept)
    launched = Counter((launch.cluster, launch.compute_class) for launch in decided.launches)
    going = [before[each.machine] for each in (*decided.removals, *decided.drains)]
    assert len({each.id for each in going}) == len(going)
    lost = Counter((each.cluster, each.compute_class) for each in going if each.counts)

    # Never more than is asked for; what cannot be seen is left alone; what is short is launched, held or waiting.
    for key, asked in wanted.items():
        if key[0] in blocked:
            assert not launched[key]
            assert not lost[key]
            continue
        left = had[key] - lost[key]
        assert left + launched[key] <= max(asked, asked + kept[key])
        short = max(0, asked - left)
        assert short == launched[key] + decided.held.get(key, 0) + decided.waiting.get(key, 0)

    # Standard before preemptible, within what is free and the pace.
    assert len(decided.launches) <= max(0, view.free - view.owed)
    ids = {each.id for each in going}
    in_flight = sum(each.counts and not each.was_ready and each.id not in ids for each in machines)
    assert not decided.launches or in_flight + len(decided.launches) <= view.pace
    if any(kind == STANDARD for _, kind in decided.waiting):
        assert not launched or all(kind == STANDARD for _, kind in launched)

    nothing_goes_without_need(view, before, decided, wanted, had, blocked)


def nothing_goes_without_need(
    view: PoolView,
    before: dict[object, MachineView],
    decided: Plan,
    wanted: dict[tuple[object, ComputeClass], int],
    had: Counter[tuple[object, ComputeClass]],
    blocked: set[object],
) -> None:
    """Young or old: what goes is one too many, owed, lost, or overdue."""
    hopeless = {each.id for each in before.values() if each.lost or each.remains}
    preempted = [each.machine for each in decided.drains if each.cause == Drain.Cause.PREEMPTED]
    preempted += [each.machine for each in decided.removals if each.reason == TAKEN_BACK]
    assert all(before[each].compute_class == PREEMPTIBLE for each in preempted)
    going = [before[each.machine] for each in (*decided.removals, *decided.drains)]
    lost = Counter((each.cluster, each.compute_class) for each in going if each.counts)
    short = sum(
        max(0, asked - had[key] + lost[key]) for key, asked in wanted.items() if key[1] == STANDARD and key[0] not in blocked
    )
    unsent = sum(each.counts and each.state == State.ASKED for each in before.values())
    taken = {each for each in preempted if each not in hopeless}
    come_back = view.returning + sum(each.returns and not each.remains for each in going if each.id not in taken)
    assert len(taken) <= max(0, view.owed + short + unsent - come_back)
    scaled = [each.machine for each in decided.drains if each.cause == Drain.Cause.SCALED_DOWN]
    scaled += [each.machine for each in decided.removals if each.reason == CALLED_OFF]
    assert not any(before[each].kept for each in scaled if not before[each].remains), "what a person kept stays"
    number = Counter((before[each].cluster, before[each].compute_class) for each in scaled if before[each].counts)
    assert all(times <= max(0, had[key] - wanted[key]) for key, times in number.items())


def always(world: World) -> None:
    """What holds after every event, whoever is in the middle of what."""
    assert world.provider.live <= world.rows.keys(), "no machine that nobody lists"
    for each in world.cluster_views():
        said = world.difference(each)
        assert said.adds_up
        assert min(said.allocated, said.joining, said.held_by_pace, said.waiting, said.blocked, said.leaving) >= 0


def peace(world: World) -> None:
    """Once all is well again everything converges: exactly what is asked for is there, and nothing else runs."""
    it = world.provider
    it.silent, it.refuses, it.mood, it.omits, it.others, it.total = False, False, "", set(), 0, 100
    for late in it.under_way:
        late()
    world.workers.clear()
    for cluster in list(world.clusters):
        world.block(cluster, "")
        world.asked_anew(cluster)
    for _ in range(30):
        world.now += timedelta(seconds=61)
        world.whole_run()
        for token in it.live & world.rows.keys():
            if world.rows[token].counts:
                world.registers(token, ready=True)
        for token in list(world.cause):
            world.drained(token)
        always(world)
        if at_rest(world):
            return
    raise AssertionError(f"not at rest: {world.rows}")


def at_rest(world: World) -> bool:
    counting = {token for token, row in world.rows.items() if row.counts}
    wanted = Counter({(each.id, kind): each.wanted(kind) for each in world.clusters.values() for kind in ComputeClass})
    full = +world.counts() == +wanted and all(world.difference(each).missing == 0 for each in world.clusters.values())
    return full and world.provider.live == counting and not world.cause
