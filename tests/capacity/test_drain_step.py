"""What a drain does next: the rules of one node, decided without a cluster."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from console.capacity.drains.step import step
from console.capacity.drains.views import Cordon, Evict, NodeView, Seen
from console.capacity.drains.window import ends_at, grace_for, most_grace
from console.capacity.models import Drain, PodVerdict
from tests.capacity.drain_world import START, Pod, World, new, round_of, run
from tests.capacity.nine import TOLD_BEFORE, WINDOW, evictable, nine

State, Cause, Verdict = Drain.State, Drain.Cause, PodVerdict.Verdict


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def fate(drain, name):
    return next(fate for fate in drain.fates if fate.name == name)


def test_nine_pods_meet_nine_fates():
    """kubernetes-sigs/headlamp#7268, kubernetes/kubernetes#26080: each kind of pod is treated as documented.

    The same table is run against a real Kubernetes, in tests/real.
    """
    cases = nine()
    world = World([case.pod for case in cases.values()] + [Pod("done", finished=True)])
    drain = run(world, new(seconds=WINDOW))
    assert {fate.name: (fate.verdict, fate.exit_code) for fate in drain.fates} == {
        name: (cases[name].verdict, cases[name].code) for name in evictable()
    }
    assert (drain.state, drain.pods_left, drain.staying) == (State.REMOVED, 0, 2)
    assert fate(drain, "served").budget == "web"
    assert fate(drain, "going").told_at == START - TOLD_BEFORE
    assert all(world.pod(name).tellings == [] for name in ("going", "agent", "static", "done"))


def test_a_pod_that_nothing_ends_is_left_when_its_machine_goes():
    drain = run(World([Pod("stuck", grace=3600, hangs=True)]), new())
    assert (drain.state, drain.pods_left) == (State.REMOVED, 1)
    assert (fate(drain, "stuck").verdict, fate(drain, "stuck").exit_code) == (Verdict.KILLED, None)


def test_a_pod_is_evicted_once_and_never_twice():
    world = World([Pod("a"), Pod("b", budget="web")])
    run(world, new())
    assert [kind for kind, _, _ in world.pod("a").tellings] == ["evict"]
    assert [kind for kind, _, _ in world.pod("b").tellings] == ["evict", "delete"]


def test_where_a_budget_refuses_a_preemption_the_pod_is_told_at_once_with_the_same_grace():
    """aws/aws-node-termination-handler#433, #448: a refused eviction neither ends the drain nor costs the pod its notice."""
    world = World([Pod("a", grace=120, budget="web"), Pod("b"), Pod("c"), Pod("d")])
    drain = run(world, new())
    evicted, deleted = world.pod("a").tellings
    assert (deleted[1], deleted[2]) == (evicted[1], evicted[2]) == (120, START)
    assert drain.state == State.REMOVED


@pytest.mark.parametrize(
    ("asked", "left", "given"),
    [
        (30, 300, 30),
        (290, 300, 290),
        (3600, 300, 298),
        (3600, 30, 28),
        (30, 30, 28),
        (20, 30, 20),
        (30, 1, 1),
        (0, 300, 1),
        (3600, 900, 300),
    ],
)
def test_grace_is_the_pods_own_but_never_past_the_machines_end(asked, left, given):
    """aws/aws-node-termination-handler#936, kubernetes-sigs/karpenter#2350: an hour of grace does not fit into five minutes."""
    assert grace_for(asked, START + seconds(left), START) == given


@pytest.mark.parametrize(("told_after", "given"), [(0, 300), (1.9, 300), (2, 300), (2.1, 299), (12, 290)])
def test_three_hundred_seconds_are_three_hundred_where_the_notice_leaves_a_whole_window(told_after, given):
    end = ends_at(new())
    assert grace_for(300, end, START + seconds(told_after)) == given
    assert end <= START + seconds(315)  # guarantee 2: gone by the deadline + 15 s


@pytest.mark.parametrize("window", [300, 120, 30, 3, 1])
def test_what_a_preview_promises_is_what_a_pod_told_at_once_is_given(window):
    assert most_grace(window) == grace_for(3600, ends_at(new(seconds=window)), START)


def test_a_shorter_window_is_somebody_elses_and_hard():
    """A cloud's two minutes end the machine, whatever we would like (aws/aws-node-termination-handler#936)."""
    assert ends_at(new(seconds=120)) == START + seconds(120)
    assert grace_for(300, ends_at(new(seconds=120)), START) == 118


def test_a_pod_that_needs_all_of_its_five_minutes_finishes_by_itself():
    world = World([Pod("a", grace=300, stops_after=299, lingers=10)])
    drain = run(world, new())
    assert world.pod("a").given == 300
    assert (drain.state, fate(drain, "a").verdict, fate(drain, "a").exit_code) == (State.REMOVED, Verdict.FINISHED, 0)


def test_nothing_is_told_before_the_node_is_closed():
    world = World([Pod("a")])
    first = step(new(), world.look(), START)
    assert Cordon(mark=True) in first.actions
    assert not any(isinstance(action, Evict) for action in first.actions)
    assert first.drain.fates  # the pod is written down before it is told


def test_pods_of_a_machine_that_goes_are_told_even_when_its_node_cannot_be_closed():
    """A webhook or a missing right; without a word they would be killed at the deadline."""
    world = World([Pod("a", stops_after=5), Pod("deaf", grace=3600, hangs=True)], unclosable="nodes is forbidden")
    drain = new()
    while drain.due_at is not None and world.now < START + seconds(60):
        world.now = max(world.now, drain.due_at)
        drain = round_of(world, drain)
        assert (drain.state, drain.told_at) == (State.ASKED, None), "what is not closed is not said to be drained"
        assert drain.due_at <= world.now + seconds(1)
    [(_, _, told)], [(_, grace, _)] = world.pod("a").tellings, world.pod("deaf").tellings
    assert seconds(10) <= told - START < seconds(12)
    assert 285 < grace <= 292
    assert drain.note == "nodes is forbidden"
    assert (world.announced, fate(drain, "a").verdict) == (1, Verdict.FINISHED)
    world.pods.append(Pod("late", stops_after=5))
    world.now = drain.due_at
    drain = round_of(world, drain)
    assert world.pod("late").tellings, "an open node takes new pods, which are told as they come"
    world.unclosable = ""
    drain = run(world, drain)
    assert (drain.state, drain.pods_left) == (State.REMOVED, 1)
    assert drain.cordoned_at <= drain.told_at


@pytest.mark.parametrize("cause", [Cause.SCALED_DOWN, Cause.REPAIR])
def test_a_node_that_cannot_be_closed_for_our_convenience_keeps_its_pods(cause):
    world = World([Pod("a")], unclosable="nodes is forbidden")
    drain = run(world, new(cause))
    assert (drain.state, drain.note) == (State.STOPPED, "a could not be told to stop")
    assert world.pod("a").tellings == []


def test_the_node_and_its_machine_go_as_soon_as_the_pods_have_stopped():
    world = World([Pod("a", grace=200, stops_after=40)])
    drain = run(world, new())
    assert drain.emptied_at is not None
    assert drain.removed_at is not None
    assert drain.removed_at < START + seconds(40 + 5 + 5)


def test_a_node_without_pods_is_gone_within_seconds():
    drain = run(World([Pod("agent", stays=True)]), new())
    assert drain.state == State.REMOVED
    assert drain.removed_at is not None
    assert drain.removed_at <= START + seconds(5)


def test_at_the_deadline_a_preempted_machine_goes_with_whatever_is_left():
    """kubernetes/kubernetes#72226: pods of a dead kubelet are released, but only after its machine is gone for certain."""
    world = World([Pod("a", stops_after=None), Pod("b", stops_after=None)], ready=False)
    drain = run(world, new())
    assert drain.state == State.REMOVED
    assert drain.emptied_at is None
    assert drain.pods_left == 2
    assert {fate.verdict for fate in drain.fates} == {Verdict.NEVER_STOPPED}
    assert drain.removed_at is not None
    assert drain.removed_at <= drain.deadline + seconds(5)
    assert world.pod("a").tellings[-1][:2] == ("delete", 0)


def test_a_budget_holds_a_scale_down_and_is_asked_again_each_five_seconds():
    """berops/claudie#1508: retried, named, and at the deadline a person decides; nobody is killed."""
    world = World([Pod("a", budget="web"), Pod("b")])
    drain = run(world, new(Cause.SCALED_DOWN, seconds=60))
    times = [at for _, _, at in world.pod("a").tellings]
    assert len(times) == 12
    assert {later - earlier for earlier, later in pairwise(times)} == {seconds(5)}
    assert (drain.state, drain.due_at, drain.note) == (State.STOPPED, None, "held by budget web")
    assert world.unschedulable
    assert world.terminating_since is None
    assert fate(drain, "a").verdict == Verdict.BLOCKED
    assert fate(drain, "b").ended_at is not None


def test_a_budget_that_lets_go_lets_the_scale_down_finish():
    world, drain = World([Pod("a", budget="web", lingers=10)]), new(Cause.SCALED_DOWN)
    for _ in range(4):
        drain = round_of(world, drain)
        world.now += seconds(5)
    assert drain.note == "held by budget web"
    world.pod("a").budget = ""
    drain = run(world, drain)
    assert (drain.state, fate(drain, "a").verdict) == (State.REMOVED, Verdict.FINISHED)


def test_a_persons_uncordon_stops_a_scale_down_before_anything_more_is_told():
    """planetlabs/draino#17: whoever opens the node takes it back."""
    world, drain = World([Pod("a", budget="web")]), new(Cause.SCALED_DOWN)
    for _ in range(3):
        drain = round_of(world, drain)
    told = len(world.pod("a").tellings)
    world.unschedulable = False
    drain = run(world, drain)
    assert drain.state == State.STOPPED
    assert drain.note.startswith("taken back")
    assert len(world.pod("a").tellings) == told
    assert (world.mark, world.cause) == (False, "")


def test_a_persons_uncordon_during_a_preemption_is_undone_and_the_machine_goes():
    """openshift/machine-config-operator PR#6028: it never ends in "complete" with the node still open."""
    world, drain = World([Pod("a", grace=100, stops_after=60)]), new()
    for _ in range(3):
        drain = round_of(world, drain)
    world.now += seconds(10)
    world.unschedulable = False
    drain = round_of(world, drain)
    assert world.unschedulable
    assert run(world, drain).state == State.REMOVED


def test_a_persons_own_cordon_keeps_its_mark():
    world = World([Pod("a", grace=100)], unschedulable=True)
    first = step(new(), world.look(), START)
    assert Cordon(mark=False) in first.actions


def test_an_earlier_deadline_is_written_on_the_node_again():
    world, drain = World([Pod("a", grace=250, stops_after=None)]), new()
    for _ in range(3):
        drain = round_of(world, drain)
    drain = replace(drain, deadline=START + seconds(60), due_at=world.now)
    drain = round_of(world, drain)
    assert world.deadline == START + seconds(60)
    assert world.announced == 1


def test_a_node_that_is_gone_already_lets_the_machine_go_at_once():
    world = World([], node_there=False)
    drain = run(world, new())
    assert drain.state == State.REMOVED
    assert drain.removed_at is not None
    assert drain.removed_at <= START + seconds(3)


def test_pods_of_another_node_with_the_same_name_are_left_alone():
    world = World([Pod("old", grace=60, stops_after=None), Pod("new")])
    drain = new()
    newcomer = world.pods.pop()
    drain = round_of(world, drain)
    drain = round_of(world, drain)
    world.pods.append(newcomer)
    world.node_there = False  # what carries the name now has another uid
    run(world, drain)
    assert newcomer.tellings == []


def test_a_node_held_by_a_finalizer_is_named_and_never_forced():
    """aws/karpenter-provider-aws#9226, Azure/AKS#1808: the ghost has a cause, shown until it is gone."""
    node = NodeView("node-1", None, True, True, Cause.PREEMPTED, None, ("example.com/volumes",), leaving=True)
    drain = replace(new(), state=State.DRAINED, terminated_at=START)
    found = step(drain, Seen(node, ()), START + seconds(9))
    assert found.actions == ()
    assert found.drain.note == "the Node object is held by example.com/volumes"
    assert found.drain.due_at == START + seconds(14)


@pytest.mark.parametrize(("cause", "state"), [(Cause.PREEMPTED, State.TIMED_OUT), (Cause.SCALED_DOWN, State.TERMINATING)])
def test_an_unreadable_cluster_decides_nothing_but_that_a_preempted_machine_goes_in_time(cause, state):
    world, drain = World([Pod("a", grace=100, stops_after=1)]), new(cause)
    for _ in range(2):
        drain = round_of(world, drain)
    world.now = START + seconds(100)
    drain = round_of(world, drain, blind=True)
    assert drain.state == State.TERMINATING  # although the pod has long stopped: nobody has seen it
    assert fate(drain, "a").ended_at is None
    world.now = ends_at(drain)
    assert round_of(world, drain, blind=True).state == state


def test_a_machine_that_never_became_a_node_is_just_ended():
    world = World([], node_there=False)
    drain = run(world, replace(new(Cause.SCALED_DOWN), node_uid=""))
    assert (drain.state, drain.fates) == (State.REMOVED, ())
    assert world.announced == 0


def test_a_pod_told_by_a_run_that_died_counts_from_when_kubernetes_was_asked():
    world, drain = World([Pod("a", grace=100, stops_after=50)]), new()
    drain = round_of(world, drain)
    told = step(drain, world.look(), world.now)
    for action in told.actions:
        world.do(told.drain, action)  # sent; the answer and the write are lost
    world.now += seconds(7)
    drain = round_of(world, drain)
    assert fate(drain, "a").told_at == START
    assert fate(drain, "a").given_grace == 100
    assert len(world.pod("a").tellings) == 1


def test_an_empty_node_waits_a_second_for_a_pod_that_was_just_being_bound():
    """The scheduler may have decided before the cordon and write its binding after it."""
    world, drain = World([]), new()
    drain = round_of(world, drain)
    drain = round_of(world, drain)
    assert drain.state != State.DRAINED
    world.pods.append(Pod("late", grace=60, stops_after=9, lingers=10))
    drain = run(world, drain)
    assert fate(drain, "late").verdict == Verdict.FINISHED


def test_a_pod_that_lands_by_toleration_is_told_too_and_gets_its_own_grace():
    world, drain = World([Pod("first", grace=60, stops_after=20, lingers=60)]), new()
    drain = round_of(world, round_of(world, drain))
    world.now += seconds(2)
    world.pods.append(Pod("second", grace=40, stops_after=None, lingers=60))
    drain = run(world, drain)
    assert [(kind, given) for kind, given, _ in world.pod("second").tellings] == [("evict", 40)]
    assert fate(drain, "second").told_at <= START + seconds(7), "at the next look, five seconds at most"
    assert (fate(drain, "second").verdict, fate(drain, "second").exit_code) == (Verdict.KILLED, 137)
    assert [kind for kind, _, _ in world.pod("first").tellings] == ["evict"]
    assert drain.emptied_at == fate(drain, "second").ended_at, "drained is not said before it has gone"


def test_a_pod_that_lands_when_the_machine_is_already_on_its_way_has_a_verdict_and_is_released():
    world, drain = World([Pod("first", stops_after=1)], confirm_after=30), new()
    while drain.terminated_at is None:
        world.now = max(world.now, drain.due_at)
        if drain.state == State.DRAINED and len(world.pods) == 1:
            world.pods.append(Pod("second"))
        drain = round_of(world, drain)
    drain = run(world, drain)
    assert drain.state == State.REMOVED
    assert (fate(drain, "second").verdict, fate(drain, "second").told_at) == (Verdict.NEVER_STOPPED, None)
    assert [(kind, given) for kind, given, _ in world.pod("second").tellings] == [("delete", 0)]


def test_a_drain_looks_again_at_its_deadline_at_the_latest():
    world, drain = World([Pod("a", hangs=True)]), new(seconds=13)
    looks = []
    while drain.state not in {State.TIMED_OUT, State.REMOVED}:
        world.now = max(world.now, drain.due_at)
        looks.append(world.now)
        drain = round_of(world, drain)
    assert looks[-1] == drain.deadline
