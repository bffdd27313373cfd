"""A drill's report is made of facts that are stored anyway, and the drill is over when what went is back."""

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import pytest

from console.accounts.access import Actor
from console.accounts.models import Role
from console.capacity.models import Drain, PodVerdict, Reclaim
from console.capacity.reclaims import drills
from console.capacity.reclaims.drill import LONGEST, Arrival, NodeFacts, PodFacts, finished, report
from console.capacity.reclaims.reclaim import reclaim
from console.clusters.models import Cluster, ComputeClass, Machine
from console.timeline.models import Entry
from tests.capacity.drain_api import add_node, fleet
from tests.capacity.drain_world import START
from tests.capacity.rows import person

Verdict, State = PodVerdict.Verdict, Drain.State


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


QUIET = NodeFacts(
    "gpu-preemptible-dp-41aa", 8, State.REMOVED, at(0), at(300), cordoned_at=at(0.42), emptied_at=at(1.5), removed_at=at(3.2)
)
BUSY = NodeFacts(
    "gpu-preemptible-dp-9d10",
    8,
    State.REMOVED,
    at(0),
    at(300),
    cordoned_at=at(0.36),
    told_at=at(0.61),
    removed_at=at(303.4),
    pods=(
        PodFacts("team", "train-1", Verdict.KILLED, 137, at(0.6), at(298.6), at(-1200)),
        PodFacts("team", "train-0", Verdict.FINISHED, 0, at(0.6), at(34.6), at(4.6)),
        PodFacts("serve", "infer-rt", Verdict.BUDGET_OVERRIDDEN, 0, at(0.6), at(20.6)),
    ),
)


def test_the_golden_report() -> None:
    found = asdict(
        report([BUSY, QUIET], [Arrival("gpu-preemptible-dp-b2", at(360)), Arrival("gpu-preemptible-dp-a1", at(90))], at(900))
    )
    assert found == {
        "nodes": (
            {
                "node_name": "gpu-preemptible-dp-41aa",
                "gpus": 8,
                "state": "removed",
                "notice_at": at(0),
                "deadline": at(300),
                "cordoned": 0.4,
                "told": None,
                "last_pod_gone": 1.5,
                "removed": 3.2,
                "replaced": 90.0,
                "replaced_by": "gpu-preemptible-dp-a1",
                "replaced_at": at(90),
                "gpu_minutes_away": 12.0,
                "pods": (),
            },
            {
                "node_name": "gpu-preemptible-dp-9d10",
                "gpus": 8,
                "state": "removed",
                "notice_at": at(0),
                "deadline": at(300),
                "cordoned": 0.4,
                "told": 0.6,
                "last_pod_gone": 298.6,
                "removed": 303.4,
                "replaced": 360.0,
                "replaced_by": "gpu-preemptible-dp-b2",
                "replaced_at": at(360),
                "gpu_minutes_away": 48.0,
                "pods": (
                    {
                        "pod": "infer-rt",
                        "namespace": "serve",
                        "verdict": "budget_overridden",
                        "exit_code": 0,
                        "seconds": 20.0,
                        "of_seconds": 300,
                        "checkpoint_minutes": None,
                    },
                    {
                        "pod": "train-0",
                        "namespace": "team",
                        "verdict": "finished",
                        "exit_code": 0,
                        "seconds": 34.0,
                        "of_seconds": 300,
                        "checkpoint_minutes": 0.5,
                    },
                    {
                        "pod": "train-1",
                        "namespace": "team",
                        "verdict": "killed",
                        "exit_code": 137,
                        "seconds": 298.0,
                        "of_seconds": 300,
                        "checkpoint_minutes": 25.0,
                    },
                ),
            },
        ),
        "totals": {
            "nodes": 2,
            "gpus": 16,
            "pods": 3,
            "verdicts": {"budget_overridden": 1, "finished": 1, "killed": 1},
            "cordoned": 0.4,
            "told": 0.6,
            "last_pod_gone": 298.6,
            "removed": 303.4,
            "replaced": 360.0,
            "not_replaced": 0,
            "longest_pod_seconds": 298.0,
            "longest_checkpoint_minutes": 25.0,
            "gpu_minutes_away": 60.0,
        },
    }


def test_what_has_not_happened_is_no_figure_and_what_is_not_back_is_away_until_now() -> None:
    going = replace(BUSY, state=State.TERMINATING, removed_at=None, pods=(replace(BUSY.pods[0], ended_at=None, exit_code=None),))
    found = report([going, QUIET], [], at(60))
    assert found.totals.removed is None, "one of two is no figure for both"
    assert (found.totals.replaced, found.totals.not_replaced) == (None, 2)
    assert found.totals.gpu_minutes_away == 16.0
    [pod] = found.nodes[1].pods
    assert pod.seconds is None
    assert pod.checkpoint_minutes == 21.0


REMOVED, GOING = replace(QUIET, state=State.REMOVED), replace(QUIET, state=State.TERMINATING, removed_at=None)
BACK = Arrival("gpu-preemptible-dp-a1", at(90))


@pytest.mark.parametrize(
    ("nodes", "arrivals", "desired", "allocated", "seconds", "over"),
    [
        ([GOING], [BACK], 8, 8, 100, False),  # its replacement came first; the pods still have their time
        ([REMOVED], [], 8, 0, 100, False),
        ([REMOVED], [BACK], 8, 8, 100, True),
        ([REMOVED], [BACK], 8, 8, 3.1, False),  # its end was written while we looked, a moment after the look began
        ([REMOVED, REMOVED], [BACK], 16, 8, 100, False),
        ([REMOVED, REMOVED], [BACK], 8, 8, 100, True),  # less is asked for now
        ([REMOVED, replace(QUIET, state=State.STOPPED, removed_at=None)], [BACK], 24, 8, 100, True),
        ([REMOVED], [], 8, 0, LONGEST.total_seconds(), True),  # no capacity came back
    ],
)
def test_a_drill_is_over_when_what_went_is_back_or_no_longer_asked_for(
    nodes, arrivals, desired, allocated, seconds, over
) -> None:
    assert finished(nodes, arrivals, desired, allocated, START, at(seconds)) is over


@pytest.fixture
def olu(db: None) -> Actor:
    return person(Role.OPERATOR, fleet_operator=True)


def ends(row: Reclaim, after: float) -> None:
    """Its drains have gone through all their steps."""
    for drain in row.drains.all():
        moments = dict.fromkeys(("cordoned_at", "told_at", "emptied_at"), row.asked_at + timedelta(seconds=1))
        removed = row.asked_at + timedelta(seconds=after)
        Drain.objects.filter(pk=drain.pk).update(state=State.REMOVED, removed_at=removed, due_at=None, **moments)
        PodVerdict.objects.create(
            drain=drain, pod_uid=f"pod-{drain.pk}", namespace="team", name="train-0", asked_grace=60, given_grace=60,
            told_at=moments["told_at"], ended_at=removed, exit_code=0, verdict=Verdict.FINISHED,
        )  # fmt: skip


def comes(cluster: Cluster, name: str, row: Reclaim, after: float) -> None:
    add_node(cluster, name)
    ready = row.asked_at + timedelta(seconds=after)
    Machine.objects.filter(node_name=name).update(asked_at=row.asked_at + timedelta(seconds=1), first_ready_at=ready)


def test_a_drill_ends_once_with_an_entry_that_leads_to_its_report(olu: Actor) -> None:
    cluster = fleet("node-1", "node-2", "node-3")
    row = reclaim(olu, cluster, 16, drill=True)
    assert {drain.why for drain in row.drains.all()} == {"a drill by olu"}
    drills.finish(row.asked_at + timedelta(seconds=10))
    ends(row, 40)
    comes(cluster, "new-1", row, 90)
    drills.finish(row.asked_at + timedelta(seconds=95))
    assert not Entry.objects.filter(reason="DrillFinished").exists()
    comes(cluster, "new-2", row, 120)
    over = row.asked_at + timedelta(seconds=121)
    for later in (0, 1, 2):
        drills.finish(over + timedelta(seconds=later))
    row.refresh_from_db()
    assert row.finished_at == over
    entry = Entry.objects.get(reason="DrillFinished")
    assert entry.message == (
        "Drill by olu is over: 2 nodes (16 GPUs) gone within 40 s, replaced within 2:00; 2 pods told, 28 GPU-minutes away"
    )
    assert entry.data == {"reclaim": str(row.pk), "page": f"/clusters/{cluster.pk}/drills/{row.pk}"}


def test_a_report_does_not_change_once_the_drill_is_over(olu: Actor) -> None:
    cluster = fleet("node-1", "node-2")
    row = reclaim(olu, cluster, 8, drill=True)
    ends(row, 40)
    Cluster.objects.update(desired_preemptible_gpus=8)
    over = row.asked_at + timedelta(seconds=50)
    drills.finish(over)
    row.refresh_from_db()
    assert row.finished_at == over
    before = drills.read(row, over).report
    comes(cluster, "new-1", row, 3600)
    assert drills.read(row, over + timedelta(days=1)).report == before
    assert before.totals.not_replaced == 1


def test_a_report_stands_beside_the_figures_of_the_drill_before(olu: Actor) -> None:
    cluster = fleet("node-1", "node-2", "node-3")
    first = reclaim(olu, cluster, 8, drill=True)
    ends(first, 40)
    comes(cluster, "new-1", first, 90)
    drills.finish(first.asked_at + timedelta(seconds=100))
    reclaim(olu, cluster, 8)  # no drill: not compared with
    second = reclaim(olu, cluster, 8, drill=True)
    found = drills.read(second, second.asked_at + timedelta(seconds=5))
    assert found.running
    assert found.before is not None
    assert (found.before.removed, found.before.replaced) == (40.0, 90.0)
    assert found.before_at == first.asked_at
    first.refresh_from_db()
    assert drills.read(first, second.asked_at).before is None


@pytest.mark.parametrize("nodes", [1, 6])
def test_reading_a_report_asks_the_same_however_large_it_is(
    olu: Actor, nodes: int, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    cluster = fleet(*(f"node-{number}" for number in range(nodes)))
    row = reclaim(olu, cluster, 8 * nodes, drill=True)
    ends(row, 40)
    with django_assert_max_num_queries(4):
        drills.read(row, row.asked_at + timedelta(seconds=50))


def test_a_standard_machine_or_one_asked_for_before_replaces_nothing(olu: Actor) -> None:
    cluster = fleet("node-1")
    row = reclaim(olu, cluster, 8, drill=True)
    ends(row, 40)
    comes(cluster, "standard-1", row, 60)
    comes(cluster, "early-1", row, 60)
    Machine.objects.filter(node_name="standard-1").update(compute_class=ComputeClass.STANDARD)
    Machine.objects.filter(node_name="early-1").update(asked_at=row.asked_at - timedelta(seconds=1))
    assert drills.read(row, row.asked_at + timedelta(seconds=100)).report.totals.not_replaced == 1
