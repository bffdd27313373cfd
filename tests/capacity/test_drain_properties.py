"""Whatever goes wrong in whatever order, a drain keeps its word."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from console.capacity.drains.step import learn, step
from console.capacity.drains.views import Evict, Failed, Seen, Terminate
from console.capacity.models import Drain
from tests.capacity.drain_world import OPEN, START, Pod, World, new, run

State, Cause = Drain.State, Drain.Cause
CAUSES = st.sampled_from([Cause.PREEMPTED, Cause.SCALED_DOWN])

PODS = st.lists(
    st.builds(
        Pod,
        name=st.uuids().map(lambda found: f"pod-{found}"),
        grace=st.integers(0, 4000),
        stops_after=st.none() | st.integers(0, 400).map(float),
        code=st.integers(0, 255),
        budget=st.sampled_from(["", "", "web"]),
        stays=st.booleans(),
        finished=st.booleans(),
        hangs=st.sampled_from([False, False, False, True]),
        vanishes=st.booleans(),
        lingers=st.integers(0, 20).map(float),
    ),
    max_size=6,
)


class Trouble:
    """What may go wrong in a round, drawn anew for each."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw

    def round(self, world: World, drain):
        world.now += timedelta(seconds=self.draw(st.integers(0, 8)))
        if self.draw(st.integers(0, 9)) == 0:
            world.unschedulable = False  # a person, or anybody
        blind = self.draw(st.integers(0, 4)) == 0
        looked = None if blind else world.look()
        found = step(drain, looked, world.now)
        answers = []
        for action in found.actions:
            fails = self.draw(st.integers(0, 4)) == 0
            answers.append((action, Failed("no answer") if fails else world.do(found.drain, action), world.now))
        if self.draw(st.integers(0, 4)) == 0:
            return drain, found, looked  # killed before it could write
        return learn(found.drain, answers, world.now), found, looked


@settings(max_examples=150, deadline=None)
@given(PODS, CAUSES, st.data())
def test_drained_is_said_only_when_no_evictable_pod_is_left_and_never_after_a_timeout(pods, cause, data):
    world, drain, trouble = World(pods), new(cause, seconds=data.draw(st.integers(5, 300))), Trouble(data)
    states: list[str] = []
    for _ in range(60):
        if drain.due_at is None:
            break
        drain, _, looked = trouble.round(world, drain)
        if drain.state != (states or [""])[-1]:
            states.append(drain.state)
            if drain.state == State.DRAINED:
                assert looked is not None
                assert world.left() == []
    assert not {State.DRAINED, State.TIMED_OUT} <= set(states)
    assert states == sorted(states, key=[*State].index)


@settings(max_examples=150, deadline=None)
@given(PODS, CAUSES, st.data())
def test_an_open_drain_is_always_due_and_the_machine_ends_only_once_empty_or_late(pods, cause, data):
    world, drain, trouble = World(pods), new(cause, seconds=data.draw(st.integers(5, 300))), Trouble(data)
    for _ in range(60):
        assert (drain.state in OPEN) <= (drain.due_at is not None)
        if drain.due_at is None:
            break
        before = world.terminating_since
        drain, found, _ = trouble.round(world, drain)
        if Terminate() in found.actions and before is None:
            assert drain.state in {State.DRAINED, State.TIMED_OUT}
            assert world.now >= drain.deadline or drain.emptied_at is not None


@settings(max_examples=150, deadline=None)
@given(PODS, st.data())
def test_a_preempted_machine_is_gone_by_its_deadline_and_fifteen_seconds_whatever_failed_before(pods, data):
    world, drain, trouble = World(pods), new(seconds=data.draw(st.integers(5, 300))), Trouble(data)
    for _ in range(data.draw(st.integers(0, 30))):
        drain, _, _ = trouble.round(world, drain)
        if drain.due_at is None:
            break
    late = max(world.now, drain.deadline)
    drain = run(world, drain)
    assert drain.state == State.REMOVED
    assert drain.removed_at is not None
    assert drain.removed_at <= late + timedelta(seconds=15)
    assert all(fate.ended_at is not None for fate in drain.fates)


@settings(max_examples=100, deadline=None)
@given(PODS, st.data())
def test_a_scale_down_never_sends_past_a_budget_and_never_ends_a_machine_under_an_untold_pod(pods, data):
    world, drain, trouble = World(pods), new(Cause.SCALED_DOWN, seconds=data.draw(st.integers(5, 60))), Trouble(data)
    for _ in range(60):
        if drain.due_at is None:
            break
        drain, _, _ = trouble.round(world, drain)
    held = [pod for pod in pods if pod.budget and not pod.stays and not pod.finished]
    assert all(kind == "evict" for pod in held for kind, _, _ in pod.tellings)
    if held:
        assert world.terminating_since is None


@settings(max_examples=100, deadline=None)
@given(PODS, CAUSES, st.data())
def test_every_pod_gets_its_whole_grace_up_to_the_machines_end(pods, cause, data):
    deadline = data.draw(st.integers(5, 300))
    world, drain, trouble = World(pods), new(cause, seconds=deadline), Trouble(data)
    for _ in range(40):
        if drain.due_at is None:
            break
        drain, _, _ = trouble.round(world, drain)
    for pod in pods:
        for _, grace, at in pod.tellings:
            left = (START + timedelta(seconds=deadline) - at).total_seconds()
            assert grace in {0, max(1, min(pod.grace, 300, int(left) - 2))}


@settings(max_examples=100, deadline=None)
@given(PODS, CAUSES, st.integers(1, 12), st.data())
def test_the_same_look_twice_asks_for_nothing_new(pods, cause, rounds, data):
    """A step repeated after a crash decides what it decided, and what was done is not asked for again."""
    world, drain, trouble = World(pods), new(cause), Trouble(data)
    for _ in range(rounds):
        drain, _, _ = trouble.round(world, drain)
    looked = world.look()
    first = step(drain, looked, world.now)
    again = step(first.drain, looked, world.now) if first.drain.state == drain.state else step(drain, looked, world.now)
    assert again.actions == first.actions
    assert replace(again.drain, due_at=None) == replace(first.drain, due_at=None)
    answers = [(action, world.do(first.drain, action), world.now) for action in first.actions if isinstance(action, Evict)]
    after = learn(first.drain, answers, world.now)
    told = {
        action.fate.uid for action, outcome, _ in answers if not isinstance(outcome, Failed) and not hasattr(outcome, "budgets")
    }
    repeated = step(after, world.look(), world.now).actions
    assert not {action.fate.uid for action in repeated if isinstance(action, Evict)} & told


def test_nothing_is_concluded_from_another_look_at_nothing():
    world = World([Pod("a")])
    assert step(new(), None, START).actions == ()
    assert step(new(), Seen(world.look().node, ()), START).drain.state == State.ASKED
