"""What the plan decides, case by case. Random lives of whole pools are in test_plan_properties."""

import uuid
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from console.capacity.models import Drain
from console.capacity.pools.plan import CALLED_OFF, GIVEN_UP, LOST, TAKEN_BACK, ClusterView, Plan, PoolView, fair_turns, plan
from console.capacity.pools.victims import MachineView, fair_victims
from console.clusters.models import ComputeClass, Machine

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)
GIVE_UP = timedelta(minutes=15)
STANDARD, PREEMPTIBLE = ComputeClass.STANDARD, ComputeClass.PREEMPTIBLE
State = Machine.State


def an_id(number: int) -> uuid.UUID:
    return uuid.UUID(int=number)


def cluster(number: int, standard: int = 1, preemptible: int = 0, blocked: str = "") -> ClusterView:
    return ClusterView(an_id(number), f"cluster-{number}", standard, preemptible, blocked)


def machine(number: int, of: int, compute_class: ComputeClass = PREEMPTIBLE, **more: object) -> MachineView:
    """A Ready one with pods, unless told otherwise."""
    ready = {"state": State.JOINED, "was_ready": True, "ready": True, "has_node": True, "idle": False, "unsaved": 60.0}
    return MachineView(an_id(number), an_id(of), compute_class, gpus=8, **{"asked_at": NOON, **ready, **more})  # type: ignore[arg-type]


def coming(number: int, of: int, compute_class: ComputeClass = PREEMPTIBLE, **more: object) -> MachineView:
    young = {"state": State.BOOTING, "was_ready": False, "ready": False, "has_node": False, "idle": True, "unsaved": 0.0}
    return machine(number, of, compute_class, **{**young, **more})


def decide(pool: PoolView, clusters: list[ClusterView], machines: list[MachineView], now: datetime = NOON) -> Plan:
    return plan(pool, clusters, machines, now, GIVE_UP)


def pool(total: int = 24, free: int = 0, owed: int = 0, returning: int = 0, **more: object) -> PoolView:
    return PoolView(total, free, owed, returning, **more)  # type: ignore[arg-type]


def test_a_target_is_launched_toward_four_machines_at_a_time() -> None:
    decided = decide(pool(free=20), [cluster(1, standard=0, preemptible=8)], [])
    assert len(decided.launches) == 4
    assert decided.held == {(an_id(1), PREEMPTIBLE): 4}
    assert not decided.waiting


def test_a_large_pool_may_have_a_tenth_of_itself_in_flight() -> None:
    decided = decide(pool(total=200, free=100), [cluster(1, standard=0, preemptible=50)], [])
    assert len(decided.launches) == 20


def test_booting_machines_count_so_that_nothing_is_launched_twice() -> None:
    """Cycles that see "0 of 4" while 4 boot launched 235 nodes in 12 hours (kubernetes/autoscaler#687)."""
    machines = [coming(number, 1) for number in range(10, 14)]
    assert decide(pool(free=20), [cluster(1, standard=0, preemptible=4)], machines).settled


def test_draining_machines_do_not_hold_refill_back() -> None:
    machines = [machine(10, 1, draining=True), machine(11, 1)]
    decided = decide(pool(free=1), [cluster(1, standard=0, preemptible=2)], machines)
    assert [launch.cluster for launch in decided.launches] == [an_id(1)]


def test_standard_comes_before_preemptible() -> None:
    clusters = [cluster(1, standard=0, preemptible=4), cluster(2, standard=2)]
    decided = decide(pool(free=3), clusters, [])
    assert Counter(launch.compute_class for launch in decided.launches) == {STANDARD: 2, PREEMPTIBLE: 1}
    assert decided.waiting == {(an_id(1), PREEMPTIBLE): 3}


def test_standard_demand_that_finds_nothing_free_takes_preemptible_machines_only_as_many_as_needed() -> None:
    machines = [machine(number, 1, unsaved=float(number)) for number in range(10, 15)]
    decided = decide(pool(free=1), [cluster(1, standard=0, preemptible=5), cluster(2, standard=3)], machines)
    assert [(start.machine, start.cause) for start in decided.drains] == [
        (an_id(10), Drain.Cause.PREEMPTED),
        (an_id(11), Drain.Cause.PREEMPTED),
    ]
    assert decided.drains[0].why == "cluster-2 needs 24 standard GPUs"
    assert Counter(launch.compute_class for launch in decided.launches) == {STANDARD: 1}


def test_machines_that_are_coming_back_anyway_are_not_taken_a_second_time() -> None:
    machines = [machine(10, 1, draining=True), machine(11, 1)]
    assert not decide(pool(owed=1, returning=1), [cluster(1, standard=0, preemptible=2)], machines).drains
    assert len(decide(pool(owed=2, returning=1), [cluster(1, standard=0, preemptible=2)], machines).drains) == 1


def test_a_standard_machine_is_never_taken_back() -> None:
    machines = [machine(10, 1, STANDARD)]
    assert decide(pool(owed=3), [cluster(1, standard=1)], machines).settled


def test_victims_are_those_whose_loss_costs_least() -> None:
    machines = [
        machine(10, 1, unsaved=5.0),
        machine(11, 1, idle=True, unsaved=0.0),
        coming(12, 1, has_node=True),
        machine(13, 1, unsaved=4.0),
        machine(14, 1, unsaved=4.0),
    ]
    order = [[each.id.int for each in fair_victims(machines, number)][-1] for number in range(1, 6)]
    assert order == [12, 11, 13, 14, 10]


def test_no_cluster_loses_more_than_its_share() -> None:
    machines = [machine(number, 1, unsaved=1.0) for number in range(10, 14)] + [machine(20, 2, unsaved=900.0)]
    assert Counter(each.cluster.int for each in fair_victims(machines, 5)) == {1: 4, 2: 1}
    assert Counter(each.cluster.int for each in fair_victims(machines, 2)) == {1: 2}


def test_what_is_free_goes_to_the_cluster_with_the_smallest_part_of_what_it_asks_for() -> None:
    has_and_wants = {an_id(1): (3, 4), an_id(2): (0, 4), an_id(3): (1, 8)}
    assert [turn.int for turn in fair_turns(has_and_wants, 4)] == [2, 3, 2, 3]


def test_a_lowered_target_drains_nodes_and_calls_off_what_has_not_joined() -> None:
    machines = [machine(10, 1), coming(11, 1)]
    decided = decide(pool(), [cluster(1, standard=0, preemptible=0)], machines)
    assert [(removal.machine.int, removal.reason) for removal in decided.removals] == [(11, CALLED_OFF)]
    assert [(start.machine.int, start.cause) for start in decided.drains] == [(10, Drain.Cause.SCALED_DOWN)]
    assert decided.drains[0].why == "cluster-1 asks for 0 preemptible GPUs now"


def test_a_node_that_a_person_kept_stays_and_no_other_goes_in_its_stead() -> None:
    """A person takes a node back, and the scheduled part drains it again (planetlabs/draino#17)."""
    machines = [machine(10, 1, kept=True), machine(11, 1)]
    assert decide(pool(), [cluster(1, standard=0, preemptible=1)], machines).settled
    decided = decide(pool(), [cluster(1, standard=0, preemptible=0)], machines)
    assert [start.machine.int for start in decided.drains] == [11]


def test_a_machine_that_never_became_ready_is_given_up_once_and_replaced() -> None:
    late = NOON + GIVE_UP
    machines = [coming(10, 1)]
    decided = decide(pool(free=1), [cluster(1, standard=0, preemptible=1)], machines, late)
    assert [(removal.machine.int, removal.reason) for removal in decided.removals] == [(10, GIVEN_UP)]
    assert len(decided.launches) == 1
    after = [replace(machines[0], state=State.GIVEN_UP), coming(11, 1, asked_at=late)]
    assert decide(pool(), [cluster(1, standard=0, preemptible=1)], after, late).settled


def test_a_machine_that_the_provider_lost_is_replaced_and_does_not_pay_what_is_owed() -> None:
    machines = [machine(10, 1, lost="the provider no longer has this machine", returns=False), machine(11, 1)]
    decided = decide(pool(owed=1), [cluster(1, standard=0, preemptible=2)], machines)
    assert [start.machine.int for start in decided.drains] == [10, 11]
    gone = decide(pool(), [cluster(1, standard=0, preemptible=1)], [coming(10, 1, lost="gone", returns=False)])
    assert [removal.reason for removal in gone.removals] == [LOST]


def test_what_owed_demand_takes_before_it_joined_is_called_off_as_preempted() -> None:
    decided = decide(pool(owed=1), [cluster(1, standard=0, preemptible=2)], [machine(10, 1), coming(11, 1)])
    assert [(removal.machine.int, removal.reason) for removal in decided.removals] == [(11, TAKEN_BACK)]


def test_nothing_is_begun_with_the_switch_off_a_silent_provider_or_a_blocked_cluster() -> None:
    machines = [machine(10, 1), coming(11, 1)]
    wants_less, wants_more = cluster(1, standard=0, preemptible=0), cluster(1, standard=1, preemptible=9)
    for wanted in (wants_less, wants_more):
        for held in (pool(free=9, owed=1, on=False), pool(free=9, owed=1, heard=False)):
            assert decide(held, [wanted], machines) == Plan()
        assert decide(pool(free=9, owed=1), [replace(wanted, blocked="unreachable")], machines) == Plan()


def test_while_backing_off_nothing_is_launched_and_everything_short_waits() -> None:
    held = pool(free=3, next_try_at=NOON + timedelta(seconds=5))
    decided = decide(held, [cluster(1, standard=0, preemptible=2)], [])
    assert not decided.launches
    assert decided.waiting == {(an_id(1), PREEMPTIBLE): 2}
