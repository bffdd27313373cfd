"""What the watch tells a drain: how pods ended, that a node is gone, that a person opened it."""

from datetime import timedelta

import pytest

from console.capacity.drains.ends import PodEnd, node_gone, node_uncordoned_by_person, pod_ended
from console.capacity.models import Drain, PodVerdict
from console.clusters.models import Cluster, Node
from console.timeline.changes import change
from console.timeline.models import Entry
from tests.capacity.drain_api import Api, Pod, begin, fleet, world
from tests.capacity.drain_world import START

pytestmark = pytest.mark.django_db(transaction=True)

State, Cause, Verdict = Drain.State, Drain.Cause, PodVerdict.Verdict
LATER = START + timedelta(seconds=20)


def told(cluster: Cluster, *pods: Pod, cause: str = Cause.PREEMPTED) -> tuple[Api, Drain]:
    """A drain all of whose pods have been told."""
    api = Api({"node-1": world(*pods)})
    drain = begin(cluster, "node-1", cause)
    api.drive(cluster)
    return api, drain


def in_change(cluster: Cluster, what, *args) -> None:
    with change(LATER) as made:
        what(made, made.lock(Cluster.objects.filter(pk=cluster.pk))[0], *args)


def test_the_end_of_the_last_pod_makes_the_drain_due_at_once():
    cluster = fleet("node-1")
    _, drain = told(cluster, Pod("a", grace=200, stops_after=100), Pod("b", grace=200, stops_after=100))
    in_change(cluster, pod_ended, [PodEnd("uid-a", START + timedelta(seconds=9), 0, True)])
    drain.refresh_from_db()
    assert drain.due_at == START + timedelta(seconds=5)
    in_change(cluster, pod_ended, [PodEnd("uid-b", LATER, 3, True)])
    drain.refresh_from_db()
    assert drain.due_at == LATER
    ends = {one.name: (one.verdict, one.exit_code) for one in PodVerdict.objects.all()}
    assert ends == {"a": (Verdict.FINISHED, 0), "b": (Verdict.FINISHED, 3)}


def test_an_end_seen_late_corrects_an_unknown_one_and_a_gone_pod_unsays_nothing():
    cluster = fleet("node-1")
    told(cluster, Pod("a", grace=200, stops_after=100))
    in_change(cluster, pod_ended, [PodEnd("uid-a", LATER, None, False)])
    assert PodVerdict.objects.get().verdict == Verdict.UNKNOWN
    in_change(cluster, pod_ended, [PodEnd("uid-a", START + timedelta(seconds=9), 0, True)])
    in_change(cluster, pod_ended, [PodEnd("uid-a", LATER, None, False)])
    row = PodVerdict.objects.get()
    assert (row.verdict, row.exit_code, row.ended_at) == (Verdict.FINISHED, 0, START + timedelta(seconds=9))


def test_the_same_end_twice_and_pods_of_no_drain_write_nothing():
    cluster = fleet("node-1")
    told(cluster, Pod("a", grace=200, stops_after=100))
    in_change(cluster, pod_ended, [PodEnd("uid-a", LATER, 0, True)])
    revision = Drain.objects.get().revision
    in_change(cluster, pod_ended, [PodEnd("uid-a", LATER, 0, True), PodEnd("uid-of-a-stranger", LATER, 1, True)])
    in_change(cluster, pod_ended, [])
    assert Drain.objects.get().revision == revision


def test_a_node_that_is_gone_makes_its_drain_due():
    cluster = fleet("node-1")
    _, drain = told(cluster, Pod("a", grace=200, stops_after=100))
    in_change(cluster, node_gone, "uid-node-1")
    in_change(cluster, node_gone, "uid-of-a-stranger")
    drain.refresh_from_db()
    assert drain.due_at == LATER


def test_a_persons_uncordon_stops_a_scale_down_and_our_marks_come_off():
    """planetlabs/draino#17."""
    cluster = fleet("node-1")
    api, drain = told(cluster, Pod("a", budget="web"), cause=Cause.SCALED_DOWN)
    api.worlds["node-1"].unschedulable = False
    in_change(cluster, node_uncordoned_by_person, "uid-node-1")
    asked = len(api.evictions)
    api.now = LATER + timedelta(seconds=60)
    api.finish(cluster)
    drain.refresh_from_db()
    assert (drain.state, drain.note, drain.due_at) == (State.STOPPED, "taken back by a person", None)
    assert len(api.evictions) == asked
    assert not api.worlds["node-1"].mark
    node = Node.objects.get()
    cluster.refresh_from_db()
    assert (node.draining, cluster.allocated_preemptible_gpus) == (False, 8)
    assert Entry.objects.filter(reason="DrainTakenBack").count() == 1


def test_a_drain_that_sees_the_uncordon_before_the_watch_says_it_once():
    cluster = fleet("node-1")
    api, drain = told(cluster, Pod("a", budget="web"), cause=Cause.SCALED_DOWN)
    api.worlds["node-1"].unschedulable = False
    api.now = LATER
    api.finish(cluster)
    in_change(cluster, node_uncordoned_by_person, "uid-node-1")
    drain.refresh_from_db()
    assert drain.state == State.STOPPED
    assert Entry.objects.filter(reason="DrainTakenBack").count() == 1


def test_a_persons_uncordon_during_a_preemption_is_said_and_the_machine_goes_anyway():
    """openshift/machine-config-operator PR#6028."""
    cluster = fleet("node-1")
    api, drain = told(cluster, Pod("a", grace=200, stops_after=100))
    api.worlds["node-1"].unschedulable = False
    in_change(cluster, node_uncordoned_by_person, "uid-node-1")
    api.now = LATER
    api.drive(cluster)
    assert api.worlds["node-1"].unschedulable
    entry = Entry.objects.get(reason="NodeUncordoned")
    assert entry.message.startswith("node-1 was opened by a person, but goes anyway")
    api.finish(cluster)
    drain.refresh_from_db()
    assert drain.state == State.REMOVED


def test_an_uncordon_counts_the_node_once_even_where_the_watch_writes_its_row_too():
    cluster = fleet("node-1", "node-2")
    _, _ = told(cluster, Pod("a", budget="web"), cause=Cause.SCALED_DOWN)
    with change(LATER) as made:
        mine = made.lock(Cluster.objects.filter(pk=cluster.pk))[0]
        row = made.lock(Node.objects.filter(name="node-1"))[0]
        row.unschedulable = False
        made.save(mine.stream, row, "unschedulable")
        node_uncordoned_by_person(made, mine, row.uid)
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 16
    assert not Node.objects.get(name="node-1").draining


@pytest.mark.parametrize(
    ("before", "cause", "after"),
    [
        (Verdict.STOPPING, Cause.PREEMPTED, Verdict.FINISHED),
        (Verdict.BLOCKED, Cause.PREEMPTED, Verdict.BUDGET_OVERRIDDEN),
        (Verdict.BLOCKED, Cause.SCALED_DOWN, Verdict.FINISHED),
    ],
)
def test_a_telling_that_a_killed_run_could_not_write_is_known_from_kubernetes(before, cause, after):
    """Killed between the eviction and the row, while the pod ended before the next look: seen once in a worker killed in CI."""
    cluster = fleet("node-1")
    told(cluster, Pod("a", grace=200, stops_after=100), cause=cause)
    PodVerdict.objects.update(told_at=None, given_grace=0, verdict=before)
    in_change(cluster, pod_ended, [PodEnd("uid-a", START + timedelta(seconds=9), 0, True, START + timedelta(seconds=2), 200)])
    row = PodVerdict.objects.get()
    assert (row.told_at, row.given_grace, row.verdict) == (START + timedelta(seconds=2), 200, after)
