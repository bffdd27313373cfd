"""The target is changed while drains are running: only the last word counts, and nothing healthy is lost on the way."""

import pytest

from console.capacity.models import Drain, Pool
from console.capacity.pools.reconcile import reconcile_pool
from console.capacity.pools.wakes import wake
from console.capacity.reclaims.reclaim import reclaim
from console.clusters.models import Cluster, ComputeClass, Machine, Node
from tests.capacity.fake_provider import FakeProvider
from tests.capacity.rows import Clock, a_cluster, a_pool, all_become_ready, ask, person

pytestmark = pytest.mark.django_db

State = Machine.State
BOOT = 45  # seconds: longer than all that happens to the target
GONE = 25  # seconds from notice to removal


class Fleet:
    """A cluster with six of six, the engine, and a clock that moves by seconds."""

    def __init__(self, total: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.pool: Pool = a_pool()
        self.provider = FakeProvider(total=total)
        self.cluster: Cluster = a_cluster(self.pool, standard=8, preemptible=48)
        monkeypatch.setattr("django.utils.timezone.now", self.clock)
        for _ in range(6):
            self.run()
            all_become_ready(self.clock.now)
            self.clock.passes(seconds=1)
        assert len(self.counting()) == 6
        self.clock.passes(minutes=10)
        self.healthy = {machine.pk for machine in self.counting()}

    def run(self) -> None:
        wake([self.pool.pk])
        reconcile_pool(self.pool.pk, "worker", open_provider=self.provider, clock=self.clock, dice=lambda: 0.0)

    def counting(self) -> list[Machine]:
        rows = Machine.objects.filter(cluster=self.cluster, compute_class=ComputeClass.PREEMPTIBLE, state__in=Machine.ALIVE)
        return list(rows.exclude(drains__state__in=Drain.OPEN))

    def target(self, machines: int) -> None:
        ask(self.cluster, desired_preemptible_gpus=8 * machines, target_set_at=self.clock.now)

    def passes(self, seconds: int = 1) -> None:
        """A moment of the world: drains end, machines boot, the engine runs. What it removes must be too much to be kept."""
        for drain in Drain.objects.filter(state__in=Drain.OPEN):
            if (self.clock.now - drain.started_at).total_seconds() >= GONE:
                self.removed(drain)
        for machine in Machine.objects.filter(state=State.BOOTING):
            if (self.clock.now - machine.asked_at).total_seconds() >= BOOT:
                all_become_ready(self.clock.now)
        before = {machine.pk for machine in self.counting()}
        self.run()
        self.cluster.refresh_from_db()
        wanted = self.cluster.desired_preemptible_gpus // 8
        taken = before - {machine.pk for machine in self.counting()}
        assert len(taken) <= max(0, len(before) - wanted), "no more goes than is too much"
        assert len(self.counting()) <= wanted
        self.clock.passes(seconds=seconds)

    def removed(self, drain: Drain) -> None:
        Node.objects.filter(machine=drain.machine).delete()
        Machine.objects.filter(pk=drain.machine_id).update(state=State.GONE, gone_at=self.clock.now)
        given = self.provider.machines.pop(drain.machine_id)
        assert given.there
        Drain.objects.filter(pk=drain.pk).update(state=Drain.State.REMOVED, removed_at=self.clock.now, due_at=None)


@pytest.mark.parametrize("total", [8, 24], ids=lambda total: f"pool of {total}")
def test_6_to_4_to_7_to_5_while_two_drain_ends_at_5_and_loses_nothing_healthy(
    total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 6 of 6 two are taken back; the target goes to 4, 7 and 5 within 30 seconds."""
    fleet = Fleet(total, monkeypatch)
    row = reclaim(person(fleet_operator=True), fleet.cluster, 16)
    going = set(row.drains.values_list("machine_id", flat=True))
    for machines, rounds in ((6, 3), (4, 4), (7, 4), (5, 4)):
        fleet.target(machines)
        for _ in range(rounds):
            fleet.passes(2)
            kept = {machine.pk for machine in fleet.counting()}
            assert fleet.healthy - going <= kept, "the four that were Ready and not draining stay throughout"
    for _ in range(10):
        fleet.passes(18)
    fleet.cluster.refresh_from_db()
    assert (fleet.cluster.allocated_preemptible_gpus, len(fleet.counting())) == (40, 5)
    assert set(Drain.objects.values_list("machine_id", flat=True)) == going, "nothing else was ever drained"
    assert len(fleet.provider.there) == 5 + 1, "and the standard one"
    assert fleet.healthy - going <= {machine.pk for machine in fleet.counting()}


def test_at_4_what_has_not_joined_goes_and_not_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet(24, monkeypatch)
    reclaim(person(fleet_operator=True), fleet.cluster, 16)
    fleet.passes()
    coming = {machine.pk for machine in fleet.counting()} - fleet.healthy
    assert len(coming) == 2, "draining ones do not hold the refill back"
    fleet.target(4)
    fleet.passes()
    assert Drain.objects.count() == 2
    assert {machine.pk for machine in fleet.counting()} <= fleet.healthy
    assert coming <= set(fleet.provider.ended)


def test_a_target_that_only_rises_again_removes_nothing_that_was_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without need nothing young goes: the need is a target below what counts, and here there is none."""
    fleet = Fleet(24, monkeypatch)
    reclaim(person(fleet_operator=True), fleet.cluster, 16)
    launches = len(fleet.provider.orders)
    for machines in (6, 7, 8, 9):
        fleet.target(machines)
        for _ in range(3):
            fleet.passes(2)
    for _ in range(8):
        fleet.passes(15)
    assert fleet.provider.ended == []
    assert len(fleet.provider.orders) - launches == 5
    assert len(fleet.counting()) == 9
