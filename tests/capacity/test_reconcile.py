"""A pool made to match what is wanted of it, against a provider with faults, on real rows and leases."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone
from hypothesis import settings

from console.capacity import queries
from console.capacity.models import Automation, Drain, Pool, PoolWake, Wait
from console.capacity.pools.reconcile import reconcile_pool
from console.capacity.pools.wakes import wake
from console.capacity.providers.base import Given, Standing, Unclear
from console.clusters import leases
from console.clusters.models import Cluster, Lease, Machine, Node, Pod
from console.timeline.models import Entry, Tombstone
from tests.capacity.fake_provider import FakeProvider
from tests.capacity.rows import NOON, Clock, a_cluster, a_pool, all_become_ready, ask, becomes_ready

pytestmark = pytest.mark.django_db

State = Machine.State
Run = Callable[[], bool]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pool() -> Pool:
    return a_pool()


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider()


@pytest.fixture
def run(pool: Pool, provider: FakeProvider, clock: Clock) -> Run:
    def once(owner: str = "worker") -> bool:
        return reconcile_pool(pool.pk, owner, open_provider=provider, clock=clock, dice=lambda: 0.0)

    return once


def elsewhere(work: Callable[[], object]) -> None:
    """In another thread, on a connection of its own, as another process would."""

    def there() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(there).result()


def states() -> list[str]:
    return sorted(Machine.objects.values_list("state", flat=True))


def reasons(cluster: Cluster) -> list[str]:
    return list(Entry.objects.filter(stream=cluster.stream).order_by("revision").values_list("reason", flat=True))


def grow(run: Run, clock: Clock, rounds: int = 10) -> None:
    for _ in range(rounds):
        run()
        all_become_ready(clock.now)
        clock.passes(seconds=1)


def test_a_target_of_64_becomes_eight_machines_four_at_a_time(pool: Pool, provider: FakeProvider, run: Run, clock: Clock) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=64)
    assert run()
    assert len(provider.orders) == 4
    assert states() == [State.BOOTING] * 4
    said = queries.difference(cluster, clock.now)
    assert (said.desired, said.allocated, said.joining, said.held_by_pace, said.waiting) == (64, 0, 24, 40, 0)
    grow(run, clock)
    assert provider.most == 9
    assert states() == [State.JOINED] * 9
    cluster.refresh_from_db()
    assert (cluster.allocated_preemptible_gpus, cluster.allocated_standard_gpus) == (64, 8)
    assert queries.difference(cluster, clock.now).missing == 0


def test_the_launch_carries_the_machines_id_and_only_preemptible_ones_the_class(
    pool: Pool, provider: FakeProvider, run: Run
) -> None:
    a_cluster(pool, standard=8, preemptible=8)
    run()
    standard, preemptible = sorted(provider.orders, key=lambda order: order.compute_class, reverse=True)
    assert standard.labels == {"halftide.io/machine": str(standard.token)}
    assert standard.node_name.startswith("gpu-dp-")
    assert preemptible.labels["together.ai/compute-class"] == "preemptible"
    assert preemptible.node_name.startswith("gpu-preemptible-dp-")


@pytest.mark.django_db(transaction=True)
def test_the_intent_is_committed_before_the_provider_is_asked(pool: Pool, provider: FakeProvider, run: Run) -> None:
    a_cluster(pool, standard=8)
    seen: list[tuple[list[str], bool]] = []
    provider.before = lambda verb: seen.append((verb, connection.in_atomic_block))  # type: ignore[func-returns-value, arg-type]
    run()
    assert {verb for verb, _ in seen} == {"pool", "list", "launch"}
    assert not any(inside for _, inside in seen)


def test_a_wish_between_the_last_look_and_the_release_of_the_lease_does_not_wait_for_the_sweep(
    pool: Pool, provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = a_cluster(pool, standard=8)
    release, late = leases.release, []

    def release_after_a_wish(held: leases.Held) -> None:
        if not late:
            late.append(ask(cluster, desired_preemptible_gpus=8))
            wake([pool.pk])
        release(held)

    monkeypatch.setattr(leases, "release", release_after_a_wish)
    assert run()
    assert len(provider.orders) == 2


def test_an_unclear_launch_is_looked_up_and_never_becomes_two(pool: Pool, provider: FakeProvider, run: Run, clock: Clock) -> None:
    """The provider times out but did create; the next cycle launches again (kubernetes/kubernetes#43709)."""
    a_cluster(pool, standard=32)
    provider.swallow = {"launch"}
    run()
    assert states() == [State.ASKED] * 4
    assert len(provider.there) == 4
    provider.swallow = set()
    clock.passes(seconds=1)
    run()
    assert states() == [State.BOOTING] * 4
    assert len(provider.orders) == 4
    assert provider.most == 4


def test_an_unclear_launch_is_not_sent_again_before_it_could_be_looked_up(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """Else only the provider's memory stands between it and a second machine (kubernetes/autoscaler#687)."""
    a_cluster(pool, standard=8)
    provider.swallow = {"launch"}
    run()

    def deaf(verb: str) -> None:
        if verb == "look_up":
            raise Unclear("no answer")

    provider.before, provider.swallow = deaf, set()
    clock.passes(seconds=1)
    run()
    assert (len(provider.orders), states()) == (1, [State.ASKED])
    pool.refresh_from_db()
    assert pool.due_at is not None
    assert pool.due_at <= clock.now + timedelta(seconds=1)
    provider.before = lambda verb: None
    clock.passes(seconds=1)
    run()
    assert (len(provider.orders), states()) == (1, [State.BOOTING])


def test_an_unclear_launch_that_never_happened_is_sent_again_with_its_token(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    a_cluster(pool, standard=8)

    def die(verb: str) -> None:
        if verb == "launch":
            raise SystemExit  # the worker is killed with the request on its lips

    provider.before = die
    with pytest.raises(SystemExit):
        run()
    assert states() == [State.ASKED]
    provider.before = lambda verb: None
    run()
    assert [order.token for order in provider.orders] == [Machine.objects.get().pk] * 2
    assert states() == [State.BOOTING]


def test_a_run_that_dies_after_the_launch_leaves_nothing_the_next_does_not_find(
    pool: Pool, provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_cluster(pool, standard=16)
    monkeypatch.setattr("console.capacity.pools.reconcile._finish", lambda *_: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        run()
    assert states() == [State.ASKED] * 2
    monkeypatch.undo()
    run()
    assert states() == [State.BOOTING] * 2
    assert provider.most == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["pool", "launch"])
def test_a_run_whose_lease_was_taken_over_writes_nothing_more(pool: Pool, provider: FakeProvider, run: Run, verb: str) -> None:
    """A late writer is fenced off (repository-service-tuf/repository-service-tuf-worker#151)."""
    a_cluster(pool, standard=8)

    def overtake(asked: str) -> None:
        if asked == verb:
            elsewhere(
                lambda: Lease.objects.update(owner="other", fence=F("fence") + 1, until=timezone.now() + timedelta(minutes=1))
            )

    provider.before = overtake
    assert not run()
    assert states() == ([] if verb == "pool" else [State.ASKED])
    assert not Pool.objects.filter(seen_at__isnull=False).exists()


def test_a_second_run_at_the_same_time_does_nothing(pool: Pool, provider: FakeProvider, run: Run) -> None:
    a_cluster(pool, standard=8)
    held = leases.take("pool", pool.pk, "other")
    assert held is not None
    assert not run()
    assert not provider.asked
    leases.release(held)
    assert run()


@pytest.mark.django_db(transaction=True)
def test_what_is_wanted_while_a_run_works_is_seen_to_by_the_same_run(pool: Pool, provider: FakeProvider, run: Run) -> None:
    cluster = a_cluster(pool, standard=8)

    def more(verb: str) -> None:
        if verb == "launch" and len(provider.orders) == 1:
            elsewhere(lambda: ask(cluster, desired_standard_gpus=16))
            elsewhere(lambda: wake([pool.pk]))

    provider.before = more
    run()
    assert len(provider.there) == 2
    assert not PoolWake.objects.exists()


def test_no_capacity_is_one_line_and_few_tries_and_ends_at_once_when_it_returns(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """Launch refused, retried at once, timeline flooded (kubernetes-sigs/karpenter#3198, aws/karpenter-provider-aws#6643)."""
    cluster = a_cluster(pool, standard=8, preemptible=16)
    provider.others = 23
    run()
    all_become_ready(clock.now)
    for _ in range(15 * 12):
        clock.passes(seconds=5)
        if PoolWake.objects.exists() or Pool.objects.filter(due_at__lte=clock.now).exists():
            run()
    assert len(provider.orders) == 1
    assert provider.asked.count("pool") < 30
    assert reasons(cluster).count("WaitingForCapacity") == 1
    said = queries.difference(cluster, clock.now)
    assert (said.waiting, said.waiting_since, said.held_by_pace) == (16, NOON, 0)
    assert said.next_try_at is not None
    assert said.next_try_at > clock.now
    provider.others = 20
    run()
    assert len(provider.orders) == 3
    assert reasons(cluster)[-2:] == ["LaunchAsked", "CapacityReturned"]
    assert not Wait.objects.exists()
    assert not Pool.objects.filter(waiting_since__isnull=False).exists()


def test_a_provider_that_says_free_and_refuses_is_not_asked_in_a_hot_loop(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8)
    provider.others, provider.lie_free = 24, 3
    for _ in range(40):
        run()  # as if something woke the pool all the time
        clock.passes(seconds=3)
    assert len(provider.orders) <= 6
    assert states() == []
    assert reasons(cluster) == ["WaitingForCapacity"]
    assert Tombstone.objects.filter(stream=cluster.stream, kind="node").count() == len(provider.orders)


def test_a_cluster_that_the_provider_refuses_does_not_hold_up_the_pool(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    refused = a_cluster(pool, "refused", standard=8)
    provider.refuse = "the provider answers 404 NoCluster"
    run()
    assert queries.difference(refused, clock.now).blocked == 0  # its preemptible target is 0
    provider.refuse = ""
    a_cluster(pool, "fine", standard=8)
    run()
    assert [machine.cluster.name for machine in Machine.objects.all()] == ["fine"]
    ask(refused, desired_preemptible_gpus=8)
    refused.refresh_from_db()
    assert queries.difference(refused, clock.now).blocked_why == "The provider refuses it: the provider answers 404 NoCluster."
    clock.passes(seconds=61)
    run()
    assert Machine.objects.filter(cluster=refused).count() == 2


def test_a_silent_provider_is_said_and_nothing_is_begun(pool: Pool, provider: FakeProvider, run: Run, clock: Clock) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=8)
    provider.silent = True
    run()
    assert states() == []
    assert queries.difference(cluster, clock.now).blocked_why == "The provider of machines does not answer since 12:00 UTC."
    provider.silent = False
    clock.passes(seconds=5)
    run()
    assert states() == [State.BOOTING] * 2
    assert queries.difference(cluster, clock.now).blocked == 0


def test_the_stop_switch_stops_launches_drains_and_old_intents(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=16)
    provider.swallow = {"launch"}
    run()
    provider.swallow, provider.machines = set(), {}
    Automation.objects.create(pk=1, on=False, changed_by="olu", changed_at=NOON, why="storm")
    clock.passes(seconds=30)
    run()
    assert len(provider.orders) == 3
    assert states() == [State.ASKED] * 3
    ask(cluster, desired_preemptible_gpus=32)
    cluster.refresh_from_db()
    assert queries.difference(cluster, clock.now).blocked_why == "Automation is stopped by olu since 12:00 UTC: storm."


def test_a_lowered_target_starts_drains_and_calls_off_what_has_not_joined(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=16)
    run()
    first, second = Machine.objects.filter(compute_class="preemptible").order_by("pk")
    becomes_ready(first, clock.now)
    ask(cluster, desired_preemptible_gpus=0)
    run()
    drain = Drain.objects.get()
    assert (drain.machine_id, drain.cause, drain.state) == (first.pk, Drain.Cause.SCALED_DOWN, Drain.State.ASKED)
    assert Node.objects.get(machine=first).draining
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 0
    assert provider.ended == [second.pk]
    clock.passes(seconds=1)
    run()
    second.refresh_from_db()
    assert second.state == State.GONE
    assert reasons(cluster).count("TogetherScaledDown") == 2


def test_a_pool_that_lost_everything_overnight_is_refilled_within_one_delay_of_capacitys_return(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """All nodes preempted at once, desired stays, nothing retried by the morning (Azure/AKS#5736, Azure/AKS#3092)."""
    cluster = a_cluster(pool, standard=8, preemptible=40)
    grow(run, clock)
    provider.others = provider.total - 1
    run()
    assert Drain.objects.count() == 5
    for drain in Drain.objects.all():  # all of them come to their end
        provider.machines[drain.machine_id] = replace(provider.machines[drain.machine_id], standing=Standing.TERMINATED)
    Machine.objects.filter(drains__isnull=False).update(state=State.GONE, gone_at=clock.now)
    Drain.objects.update(state=Drain.State.REMOVED, removed_at=clock.now, due_at=None)
    Node.objects.filter(draining=True).delete()
    launched = len(provider.orders)
    for turn in range(8 * 3):
        clock.passes(minutes=20)
        if turn == 12:  # a worker dies with the lease in its hands
            assert leases.take("pool", pool.pk, "dead") is not None
            assert not run()
            Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
        assert Pool.objects.get().due_at <= clock.now, "still looked at"
        assert run()
    assert len(provider.orders) == launched, "nothing was free, so nothing was asked for"
    assert queries.difference(cluster, clock.now).waiting == 40
    assert reasons(cluster).count("WaitingForCapacity") == 1
    provider.others = 0
    clock.passes(seconds=144)
    assert Pool.objects.get().due_at <= clock.now
    grow(run, clock, 3)
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 40
    assert len(provider.orders) == launched + 5


def test_a_cluster_that_cannot_be_seen_for_a_while_goes_on_waiting_since_when_it_did(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=16)
    provider.others = provider.total - 1
    run()
    all_become_ready(clock.now)
    for away in (True, False):
        clock.passes(minutes=5)
        Cluster.objects.update(unreachable_since=clock.now if away else None, unreachable_why="connection refused" * away)
        run()
    assert reasons(cluster).count("WaitingForCapacity") == 1
    said = queries.difference(cluster, clock.now)
    assert (said.waiting, said.waiting_since) == (16, NOON)


def test_owed_machines_are_given_back_by_the_node_that_loses_least(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=16)
    run()
    all_become_ready(clock.now)
    dear, cheap = Machine.objects.filter(compute_class="preemptible").order_by("pk")
    for machine, minutes in ((dear, 40), (cheap, 2)):
        pod = {"namespace": "ml", "name": f"train-{minutes}", "node_name": machine.node_name, "phase": "Running"}
        started = clock.now - timedelta(hours=1)
        Pod.objects.create(
            cluster=cluster, uid=str(minutes), started_at=started, last_checkpoint=clock.now - timedelta(minutes=minutes), **pod
        )
    provider.others = provider.total - 2
    run()
    assert [(drain.machine_id, drain.cause) for drain in Drain.objects.all()] == [(cheap.pk, Drain.Cause.PREEMPTED)]
    assert provider._state().owed == 1
    clock.passes(seconds=1)
    run()
    assert Drain.objects.count() == 1


def test_a_machine_that_never_became_ready_is_given_up_terminated_and_replaced(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8)
    run()
    first = Machine.objects.get()
    clock.passes(minutes=15)
    assert Pool.objects.get().due_at is not None
    run()
    first.refresh_from_db()
    assert first.state == State.GIVEN_UP
    assert provider.ended == [first.pk]
    assert states() == [State.BOOTING, State.GIVEN_UP]
    assert reasons(cluster).count("LaunchGivenUp") == 1


def test_a_node_that_comes_before_its_launch_is_written_down_does_not_hide_that_it_was_asked_for(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies after the launch, and the watch sees the node Ready before the next worker comes."""
    cluster = a_cluster(pool, standard=16)
    monkeypatch.setattr("console.capacity.pools.reconcile._finish", lambda *_: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        run()
    monkeypatch.undo()
    all_become_ready(clock.now)
    run()
    run()
    asked = Entry.objects.get(stream=cluster.stream, reason="LaunchAsked")
    assert asked.data == {"machines": 2, "class": "standard"}
    assert states() == [State.JOINED] * 2
    assert not Machine.objects.filter(provider_id="").exists()


def test_a_launch_that_arrives_after_its_token_was_refused_is_known_and_ended(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """The first request hangs on its way, the second finds nothing free, then the first arrives (kubernetes/autoscaler#687)."""
    a_cluster(pool, standard=8)

    def hangs(verb: str) -> None:
        if verb == "launch":
            raise Unclear("no answer yet")

    provider.before = hangs
    run()
    token = Machine.objects.get().pk
    provider.before, provider.others = lambda verb: None, provider.total
    clock.passes(seconds=1)
    run()
    assert Machine.objects.get(pk=token).state == State.GIVEN_UP
    provider.others = 0
    provider.machines[token] = Given(token, "late", Standing.BOOTING)
    clock.passes(seconds=200)
    run()
    assert provider.ended == [token]
    assert len(provider.there) == 1
    assert states() == [State.BOOTING, State.GIVEN_UP]


def given_up(pool: Pool, provider: FakeProvider, run: Run, clock: Clock) -> Machine:
    """A standard machine that has not become a node in time, and whose end the provider does not get to hear."""

    def deaf(verb: str) -> None:
        if verb == "terminate":
            raise Unclear("no answer")

    run()
    first = Machine.objects.get(compute_class="standard")
    for other in Machine.objects.exclude(pk=first.pk):
        becomes_ready(other, clock.now)
    clock.passes(minutes=15)
    provider.before = deaf
    run()
    first.refresh_from_db()
    assert first.state == State.GIVEN_UP
    assert provider.machines[first.pk].there
    return first


def test_a_machine_that_registers_after_it_was_given_up_is_drained_and_never_counted(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """Adopted or removed, never both: its replacement is there already, and pods may have come to it."""
    cluster = a_cluster(pool, standard=8)
    late = given_up(pool, provider, run, clock)
    fields = {"uid": "late", "name": late.node_name, "gpus": 8, "resource_version": "1", "created_at": clock.now}
    Node.objects.create(cluster=cluster, machine=late, compute_class="standard", ready=True, draining=True, **fields)
    provider.before = lambda verb: None
    run()
    drain = Drain.objects.get()
    assert (drain.machine_id, drain.why) == (late.pk, "it became a node after it was given up")
    assert provider.machines[late.pk].there, "its pods are told first"
    late.refresh_from_db()
    assert late.state == State.GIVEN_UP
    assert len(provider.there) == 2
    run()
    assert Drain.objects.count() == 1


def test_a_machine_that_was_given_up_goes_back_instead_of_a_healthy_one(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    a_cluster(pool, standard=8, preemptible=16)
    provider.others = provider.total - 3
    given_up(pool, provider, run, clock)
    clock.passes(seconds=1)
    run()
    assert not Drain.objects.exists()
    provider.before = lambda verb: None
    clock.passes(seconds=1)
    run()
    clock.passes(seconds=200)
    run()
    assert not Drain.objects.exists()
    assert sorted(states()) == [State.BOOTING, State.GIVEN_UP, State.JOINED, State.JOINED]


def test_a_machine_of_ours_that_we_know_as_gone_is_never_left_running(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """A launch that arrives after its machine was called off would run, and cost, unseen."""
    cluster = a_cluster(pool, standard=8, preemptible=8)
    run()
    late = Machine.objects.get(compute_class="preemptible")
    ask(cluster, desired_preemptible_gpus=0)
    run()
    clock.passes(seconds=1)
    run()
    assert Machine.objects.get(pk=late.pk).state == State.GONE
    provider.machines[late.pk] = replace(provider.machines[late.pk], standing=Standing.RUNNING)
    run()
    assert not provider.machines[late.pk].there


def test_a_machine_missing_at_the_provider_is_replaced_only_if_its_node_is_not_ready(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    """A provider that forgets everything must not make us replace a healthy fleet."""
    cluster = a_cluster(pool, standard=8, preemptible=16)
    run()
    all_become_ready(clock.now)
    provider.machines = {}
    clock.passes(minutes=2)
    run()
    assert states() == [State.JOINED] * 3
    assert not Drain.objects.exists()
    sick = Machine.objects.filter(compute_class="preemptible").order_by("pk")[0]
    becomes_ready(sick, clock.now, ready=False)
    run()
    sick.refresh_from_db()
    assert sick.state == State.GONE
    assert Drain.objects.get().machine_id == sick.pk
    assert "MachineLost" in reasons(cluster)
    assert len(provider.there) == 1


def test_nothing_is_done_for_a_cluster_that_cannot_be_seen(pool: Pool, provider: FakeProvider, run: Run, clock: Clock) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=16)
    run()
    all_become_ready(clock.now)
    ask(cluster, desired_preemptible_gpus=0)
    Cluster.objects.update(unreachable_since=clock.now, unreachable_why="connection refused")
    provider.others = provider.total
    clock.passes(minutes=20)
    run()
    assert not Drain.objects.exists()
    assert states() == [State.JOINED] * 3


def test_a_pool_that_is_as_wanted_writes_no_ledger_and_no_revision(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock
) -> None:
    cluster = a_cluster(pool, standard=8, preemptible=8)
    grow(run, clock, 3)
    revision, entries = Pool.objects.get().revision, Entry.objects.count()
    seen = Machine.objects.order_by("pk").values_list("pk", "revision")
    before = list(seen)
    grow(run, clock, 5)
    assert (Pool.objects.get().revision, Entry.objects.count(), list(seen)) == (revision, entries, before)
    assert reasons(cluster).count("LaunchAsked") == 2


def test_a_node_that_a_person_took_back_is_not_drained_again_until_something_else_is_asked_for(
    pool: Pool, run: Run, clock: Clock
) -> None:
    """A person takes a node back, and the scheduled part drains it again (planetlabs/draino#17)."""
    cluster = a_cluster(pool, standard=8, preemptible=16)
    run()
    all_become_ready(clock.now)
    clock.passes(minutes=5)
    ask(cluster, desired_preemptible_gpus=8, target_set_at=clock.now)
    run()
    Drain.objects.update(state=Drain.State.STOPPED, due_at=None, note="taken back by a person")
    Node.objects.update(draining=False)
    run()
    assert Drain.objects.count() == 1
    clock.passes(minutes=5)
    ask(cluster, desired_preemptible_gpus=0, target_set_at=clock.now)
    run()
    assert Drain.objects.filter(state=Drain.State.ASKED).count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(12 if settings.get_current_profile_name() == "ci" else 6))
def test_runs_that_die_stall_and_overtake_each_other_never_launch_too_many(
    pool: Pool, provider: FakeProvider, run: Run, clock: Clock, seed: int
) -> None:
    """Two schedulers, killed workers, lost answers (celery/celery#2856, #1628; kubernetes/autoscaler#687)."""
    cluster = a_cluster(pool, standard=8, preemptible=24)
    dice = Random(seed)
    depth = 0

    def trouble(verb: str) -> None:
        nonlocal depth
        provider.swallow = {"launch"} if dice.random() < 0.3 else set()
        luck = dice.random()
        if luck < 0.1:
            raise SystemExit
        if luck < 0.3 and depth < 2:  # this one stalls; its lease runs out, and another takes over and finishes
            depth += 1
            elsewhere(lambda: Lease.objects.update(until=timezone.now() - timedelta(seconds=1)))
            elsewhere(lambda: survived(f"other-{dice.random()}"))
            depth -= 1

    def survived(owner: str) -> None:
        with suppress(SystemExit):
            run(owner)

    provider.before = trouble
    for turn in range(12):
        survived(f"worker-{turn}")
        clock.passes(seconds=3)
        Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
        if turn == 6:
            ask(cluster, desired_preemptible_gpus=16)
    provider.before, provider.swallow = lambda verb: None, set()
    for _ in range(6):
        clock.passes(seconds=30)
        assert run("the last")
    assert provider.most <= 4
    assert {machine.token for machine in provider.there} == set(
        Machine.objects.filter(state=State.BOOTING).values_list("pk", flat=True)
    )
    assert len(provider.there) == 3
