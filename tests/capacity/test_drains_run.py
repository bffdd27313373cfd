"""Drains of a cluster, driven side by side against an API that may die at any request, on a real database."""

from datetime import timedelta

import pytest
from django.db import connection

from console.capacity.drains import rows as drain_rows
from console.capacity.drains.changes import start_drain
from console.capacity.drains.doors import keys_of
from console.capacity.drains.run import LEASE, LEASE_SECONDS, NO_NEW_TELLING, STOP
from console.capacity.drains.window import ends_at
from console.capacity.models import Drain, PodVerdict
from console.clusters import leases
from console.clusters.models import Cluster, Machine, Node
from console.kube import errors
from console.timeline.changes import change
from console.timeline.models import Entry
from tests.capacity.drain_api import Api, Killed, Pod, begin, fleet, world
from tests.capacity.drain_world import START

pytestmark = pytest.mark.django_db(transaction=True)

State, Cause, Verdict = Drain.State, Drain.Cause, PodVerdict.Verdict


def reasons(cluster: Cluster) -> list[str]:
    return list(Entry.objects.filter(stream=cluster.pk).order_by("revision").values_list("reason", flat=True))


def test_a_preemption_is_announced_told_and_the_machine_goes_with_its_node():
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("train", grace=120, stops_after=11, lingers=10), Pod("agent", stays=True))})
    drain = begin(cluster, "node-1")
    api.finish(cluster)
    drain.refresh_from_db()
    assert (drain.state, drain.due_at) == (State.REMOVED, None)
    moments = [drain.cordoned_at, drain.announced_at, drain.told_at, drain.emptied_at, drain.terminated_at, drain.removed_at]
    assert moments == sorted(moments)
    assert drain.removed_at < START + timedelta(seconds=25)
    assert reasons(cluster) == ["TogetherPreempted", "DrainFinished"]
    first, last = Entry.objects.filter(stream=cluster.pk).order_by("revision")
    assert first.message == "node-1 goes back: atlas-serve needs 8 standard GPUs, gone by 14:06:31 UTC"
    assert (first.severity, first.drain_id) == ("warning", drain.pk)
    assert api.events == {first.own_event: first.message}
    assert last.message.endswith("1 pod: 1 stopped")
    verdict = PodVerdict.objects.get()
    assert (verdict.verdict, verdict.exit_code, verdict.ended_at) == (
        Verdict.FINISHED,
        0,
        verdict.told_at + timedelta(seconds=11),
    )
    machine = Machine.objects.get()
    assert (machine.state, machine.gone_at) == (Machine.State.GONE, drain.terminated_at)
    assert (drain.started_at, drain.told_at) == (START, START)


def test_the_node_stops_counting_the_moment_the_drain_begins():
    cluster = fleet("node-1", "node-2")
    begin(cluster, "node-1")
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 8
    assert Node.objects.get(name="node-1").draining


@pytest.mark.parametrize("late", [False, True], ids=["unanswered", "done-but-unanswered"])
def test_wherever_a_run_dies_the_next_one_finishes_what_it_began(late):
    """kubernetes/autoscaler#687 and its kin: an unclear answer is looked at again, never repeated blindly, never forgotten.

    The fullest drain there is (a budget, a pod that never stops, all of it), killed at each of its requests in turn.
    """
    dies_at, died = 0, True
    while died:
        dies_at += 1
        cluster = fleet(f"node-{dies_at}", cluster_name=f"c{dies_at}")
        pods = [Pod("a", grace=60, stops_after=8), Pod("b", grace=60, stops_after=9, budget="web"), Pod("c", hangs=True)]
        api = Api({f"node-{dies_at}": world(*pods)}, dies_at=dies_at, late=late)
        drain = begin(cluster, f"node-{dies_at}", deadline=START + timedelta(seconds=12))
        died = killed(lambda: api.finish(cluster))  # noqa: B023
        api.finish(cluster)
        drain.refresh_from_db()
        assert drain.state == State.REMOVED
        assert drain.removed_at <= drain.deadline + timedelta(seconds=15)
        assert len(api.events) == 1
        assert reasons(cluster) == ["TogetherPreempted", "GraceCapped", "BudgetOverridden", "DrainTimedOut"]
        assert sorted(name for _, name in api.told) == ["a", "b", "c"]
        assert {one.name: one.verdict for one in drain.verdicts.all()} == {
            "a": Verdict.UNKNOWN,
            "b": Verdict.BUDGET_OVERRIDDEN,
            "c": Verdict.KILLED,
        }
        assert not api.worlds[drain.node_name].node_there
        assert Machine.objects.get(cluster=cluster).state == Machine.State.GONE
    assert dies_at > 20


@pytest.mark.parametrize("verb", ["node", "list", "cordon", "emit_event", "evict", "delete_node"])
def test_an_api_that_asks_to_wait_is_waited_for_and_everything_comes_after(monkeypatch, verb):
    """kubernetes/client-go#222, kubernetes/kubernetes#36409: each verb, longer than a request waits by itself."""
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a", grace=60, stops_after=8), Pod("b", grace=60, stops_after=9))})
    drain = begin(cluster, "node-1")
    asked, ask = [], getattr(api, verb)

    async def busy(*args, **kwargs):
        asked.append(api.now)
        if api.now < asked[0] + timedelta(seconds=7):
            raise errors.Throttled("The Kubernetes API asks us to wait 7 s.", 7)
        return await ask(*args, **kwargs)

    monkeypatch.setattr(api, verb, busy)
    api.finish(cluster)
    first, second, *_ = sorted(set(asked))
    assert second >= first + timedelta(seconds=7)
    drain.refresh_from_db()
    assert drain.state == State.REMOVED
    assert drain.removed_at < START + timedelta(seconds=35)
    assert sorted(name for _, name in api.told) == ["a", "b"]
    assert reasons(cluster) == ["TogetherPreempted", "DrainFinished"]
    if verb == "emit_event":  # an Event that has to wait costs nobody a second of notice
        assert {at for at, _ in api.told} == {START}


@pytest.mark.parametrize("before_commit", [True, False])
def test_wherever_a_write_dies_the_next_run_writes_it_once(monkeypatch, before_commit):
    store, dies_at, died = drain_rows.store, 0, True
    while died:
        dies_at += 1
        cluster = fleet(f"node-{dies_at}", cluster_name=f"c{dies_at}")
        pods = [Pod("a", grace=60, stops_after=8), Pod("b", grace=3600, stops_after=12, budget="web")]
        api = Api({f"node-{dies_at}": world(*pods)})
        drain = begin(cluster, f"node-{dies_at}")
        monkeypatch.setattr(drain_rows, "store", dying(store, dies_at, before_commit))
        died = killed(lambda: api.finish(cluster))  # noqa: B023
        api.finish(cluster)
        drain.refresh_from_db()
        assert drain.state == State.REMOVED
        assert reasons(cluster) == ["TogetherPreempted", "GraceCapped", "BudgetOverridden", "DrainFinished"]
        assert len(api.events) == 1
        assert len(api.told) == 2
    assert dies_at > 6


def dying(store, dies_at, before_commit):
    """The write, killed the n-th time, before or after its commit."""
    numbers = iter(range(1, 1000))

    def write(*args):
        number = next(numbers)
        if number == dies_at and before_commit:
            raise Killed
        store(*args)
        if number == dies_at:
            raise Killed

    return write


def killed(run) -> bool:
    try:
        run()
    except Killed:
        return True
    return False


def test_a_worker_that_is_killed_holds_up_its_drains_for_seconds_only():
    """The lease of a run that never came back runs out, and its fence refuses whatever it would still write."""
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a"))})
    begin(cluster, "node-1")
    dead = leases.take(LEASE, cluster.pk, "a worker that is gone", LEASE_SECONDS)
    api.drive(cluster)
    assert api.requests == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM until - clock_timestamp()) FROM clusters_lease")
        assert 0 < cursor.fetchone()[0] <= LEASE_SECONDS
        cursor.execute("UPDATE clusters_lease SET until = clock_timestamp()")
    api.drive(cluster)
    assert len(api.told) == 1
    row = Drain.objects.get()
    before = drain_rows.view_of(row)
    with pytest.raises(leases.LeaseLost):
        drain_rows.store(dead, cluster.pk, [(before, drain_rows.replace(before, note="too late"))], START)
    assert Drain.objects.get().note == ""


def test_one_blocked_pod_holds_up_nobody_else():
    """aws/aws-node-termination-handler#310, aws/karpenter-provider-aws#5400: twenty notices at once, the first with a budget."""
    names = [f"node-{number}" for number in range(20)]
    cluster = fleet(*names)
    worlds = {name: world(Pod(f"{name}-a"), Pod(f"{name}-b")) for name in names}
    worlds["node-0"].pods.append(Pod("held", budget="web"))
    api = Api(worlds)
    for name in names:
        begin(cluster, name)
    api.drive(cluster)
    assert len(api.told) == 41
    assert {at for at, _ in api.told} == {START}
    assert all(one.unschedulable for one in worlds.values())


def test_pods_of_one_owner_are_told_one_after_another_across_nodes():
    cluster = fleet("node-1", "node-2", "node-3")
    worlds = {name: world(*(Pod(f"{name}-{index}") for index in range(4))) for name in ("node-1", "node-2", "node-3")}
    api = Api(worlds)
    for one in worlds.values():
        for index, pod in enumerate(one.pods):
            pod.owner = f"job-{index}"
    for name in worlds:
        begin(cluster, name)
    api.drive(cluster)
    owners = [next(pod.owner for one in worlds.values() for pod in one.pods if pod.name == name) for _, name in api.told]
    assert owners == sorted(owners)
    assert len(owners) == 12


def test_of_a_slow_api_a_run_asks_no_more_than_it_can_hear_the_answers_of(monkeypatch):
    """Measured on a real API server with 100 nodes and 1,500 pods: each run was cut off with 64 evictions under way."""
    names = ("node-1", "node-2", "node-3")
    cluster, seconds = fleet(*names), [0.0]
    api = Api({name: world(*(Pod(f"{name}-{index}", stops_after=60) for index in range(16))) for name in names})
    evict = api.evict

    async def slowly(*args):
        seconds[0] += 0.5
        api.now += timedelta(seconds=0.5)
        return await evict(*args)

    monkeypatch.setattr(api, "evict", slowly)
    monkeypatch.setattr("console.capacity.drains.run.monotonic", lambda: seconds[0])
    hints = []
    monkeypatch.setattr("console.capacity.drains.run.enqueue", lambda *hint: hints.append(hint))
    for name in names:
        begin(cluster, name)
    api.drive(cluster)
    assert hints == [("capacity.drive_drains", str(cluster.pk))], "what is left waits for no sweep"
    told_first = {name for _, name in api.told}
    assert NO_NEW_TELLING <= seconds[0] < STOP
    assert set(PodVerdict.objects.filter(told_at__isnull=False).values_list("name", flat=True)) == told_first
    assert 0 < len(told_first) < 48
    assert Drain.objects.filter(due_at__isnull=False, told_at=None).exists()
    api.finish(cluster)
    assert len({name for _, name in api.told}) == len(api.evictions) == 48
    assert len(hints) == 1, "a run that had time enough calls for no other"
    assert set(Drain.objects.values_list("state", flat=True)) == {State.REMOVED}


def test_a_second_notice_only_moves_the_deadline_earlier():
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a", grace=250, stops_after=200))})
    drain = begin(cluster, "node-1")
    api.drive(cluster)
    assert begin(cluster, "node-1").pk == drain.pk
    assert begin(cluster, "node-1", deadline=START + timedelta(seconds=90)).pk == drain.pk
    assert begin(cluster, "node-1", deadline=START + timedelta(seconds=200)).pk == drain.pk
    drain.refresh_from_db()
    assert drain.deadline == START + timedelta(seconds=90)
    api.finish(cluster)
    drain.refresh_from_db()
    assert drain.state == State.REMOVED
    assert drain.removed_at <= START + timedelta(seconds=105)
    assert len(api.events) == 1
    announced = Entry.objects.get(stream=cluster.pk, reason="TogetherPreempted")
    assert announced.message.endswith("gone by 14:03:01 UTC")


def test_a_preemption_takes_over_a_scale_down_that_a_budget_holds():
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a", budget="web", grace=20))})
    drain = begin(cluster, "node-1", Cause.SCALED_DOWN)
    api.drive(cluster)
    assert Drain.objects.get().note == "held by budget web"
    begin(cluster, "node-1", now=START + timedelta(seconds=60))
    api.now = START + timedelta(seconds=60)
    api.finish(cluster)
    drain.refresh_from_db()
    assert (drain.state, drain.cause) == (State.REMOVED, Cause.PREEMPTED)
    assert drain.removed_at < START + timedelta(seconds=90)
    assert reasons(cluster) == ["TogetherScaledDown", "TogetherPreempted", "BudgetOverridden", "DrainFinished"]
    assert len(api.events) == 2


def test_a_scale_down_held_by_a_budget_stops_at_its_deadline_and_kills_nobody():
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a", budget="web"))})
    drain = begin(cluster, "node-1", Cause.SCALED_DOWN)
    api.finish(cluster)
    drain.refresh_from_db()
    assert (drain.state, drain.note) == (State.STOPPED, "held by budget web")
    assert api.told == []
    node, machine = Node.objects.get(), Machine.objects.get()
    assert (node.draining, machine.state) == (False, Machine.State.JOINED)
    assert api.worlds["node-1"].unschedulable
    entry = Entry.objects.get(reason="DrainTimedOut")
    assert (
        entry.message == "Drain of node-1 stopped at its deadline, held by budget web. The node stays cordoned; a person decides"
    )
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 8


def test_an_hour_of_grace_is_capped_and_that_is_said():
    """aws/aws-node-termination-handler#936, kubernetes-sigs/karpenter#2350."""
    cluster = fleet("node-1")
    api = Api(
        {
            "node-1": world(
                Pod("notebook", grace=3600, stops_after=5),
                Pod("short", grace=30),
                Pod("long", grace=290),
                Pod("whole", grace=300),
            )
        }
    )
    begin(cluster, "node-1")
    api.finish(cluster)
    assert dict(api.evictions) == {"notebook": 300, "short": 30, "long": 290, "whole": 300}
    capped = Entry.objects.get(reason="GraceCapped")
    assert capped.message == "notebook on node-1 asks for 1 h of grace; this drain gives 5:00 at most"


@pytest.mark.parametrize("kind", [errors.Forbidden, errors.Refused, errors.Broken])
def test_what_forbids_evictions_and_is_no_budget_costs_a_preempted_pod_no_notice(monkeypatch, kind):
    cluster = fleet("node-1", "node-2")
    pods = {f"node-{number}": world(Pod(f"pod-{number}", grace=60, stops_after=8, lingers=10)) for number in (1, 2)}
    api = Api(pods)

    async def evict(*_: object) -> None:
        raise kind("admission webhook denied the request")

    monkeypatch.setattr(api, "evict", evict)
    going = begin(cluster, "node-1")
    shrinking = begin(cluster, "node-2", Drain.Cause.SCALED_DOWN, deadline=START + timedelta(seconds=20))
    api.finish(cluster)
    told = PodVerdict.objects.get(drain=going)
    assert (told.told_at, told.given_grace, told.verdict) == (START, 60, Verdict.FINISHED)
    assert pods["node-1"].pod("pod-1").tellings == [("delete", 60, START)]
    shrinking.refresh_from_db()
    assert (shrinking.state, shrinking.note) == (State.STOPPED, "pod-2 could not be told to stop")
    assert pods["node-2"].pod("pod-2").tellings == [], "what is for our convenience kills nobody"


def test_pods_that_land_by_toleration_are_told_have_their_verdicts_and_are_said():
    """Each write says whom it met; a wish beyond the window is said of them as of the first."""
    cluster = fleet("node-1")
    there = world(Pod("first", grace=60, stops_after=40, lingers=10))
    api = Api({"node-1": there})
    drain = begin(cluster, "node-1")
    api.drive(cluster)
    for seconds, names in ((7, ("second", "third")), (14, ("fourth",))):
        there.pods += [Pod(name, grace=3600, stops_after=3, lingers=10) for name in names]
        api.now = START + timedelta(seconds=seconds)
        api.drive(cluster)
        assert {name for at, name in api.told if at == api.now} == set(names)
    api.finish(cluster)
    drain.refresh_from_db()
    assert {one.name: one.verdict for one in drain.verdicts.all()} == dict.fromkeys(
        ("first", "second", "third", "fourth"), Verdict.FINISHED
    )
    came = Entry.objects.filter(reason="PodsCameLate").order_by("revision")
    assert [entry.message for entry in came] == [
        "second, third came to node-1 after it was closed: they are drained too",
        "fourth came to node-1 after it was closed: it is drained too",
    ]
    assert {(entry.severity, entry.subject_name, entry.data["drain"]) for entry in came} == {("warning", "node-1", str(drain.pk))}
    assert Entry.objects.filter(reason="GraceCapped").count() == 2
    assert Entry.objects.get(reason="DrainFinished").message.endswith("4 pods: 4 stopped")


def test_a_pod_that_lands_after_drained_was_said_is_said_as_too_late():
    cluster = fleet("node-1")
    there = world(Pod("first", grace=60, stops_after=4), confirm_after=20)
    api = Api({"node-1": there})
    drain = begin(cluster, "node-1")
    while not Drain.objects.filter(state=State.DRAINED).exists():
        api.drive(cluster)
        api.now += timedelta(seconds=1)
    there.pods.append(Pod("second"))
    api.finish(cluster)
    drain.refresh_from_db()
    assert (drain.state, drain.verdicts.get(name="second").verdict) == (State.REMOVED, Verdict.NEVER_STOPPED)
    assert Entry.objects.get(reason="PodsCameLate").message == "second came to node-1 after it was closed: too late to be told"
    assert Entry.objects.get(reason="DrainFinished").message.endswith("2 pods: 1 never stopped, 1 unknown")


def test_while_kubernetes_is_down_the_drain_says_so_and_a_preempted_machine_still_goes_in_time():
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a"))})
    api.down = True
    drain = begin(cluster, "node-1")
    api.drive(cluster)
    drain.refresh_from_db()
    assert (drain.state, drain.note) == (State.ASKED, "The Kubernetes API cannot be reached.")
    api.now = ends_at(drain)
    api.drive(cluster)
    drain.refresh_from_db()
    assert drain.state == State.TIMED_OUT


def test_a_look_that_finds_nothing_new_wakes_no_browser():
    cluster = fleet("node-1")
    api = Api({"node-1": world(Pod("a", grace=200, stops_after=150))})
    begin(cluster, "node-1")
    for _ in range(3):
        api.drive(cluster)
        api.now += timedelta(seconds=5)
    before = Drain.objects.get()
    api.drive(cluster)
    after = Drain.objects.get()
    assert after.revision == before.revision
    assert after.due_at == api.now + timedelta(seconds=5)


def test_a_cluster_that_is_only_observed_is_never_written_to():
    cluster = fleet("node-1", mode=Cluster.Mode.OBSERVE)
    keys = keys_of(cluster.pk)
    assert keys.connection is None
    assert "observed" in keys.closed_why


def test_a_machine_that_becomes_a_node_after_all_is_drained_as_one_and_never_counts():
    cluster = fleet("node-1")
    Node.objects.filter(name="node-1").update(name="elsewhere")
    with change(START) as made:
        mine = made.lock(Cluster.objects.filter(pk=cluster.pk))[0]
        machine = made.lock(Machine.objects.filter(cluster=mine))[0]
        drain = start_drain(made, mine, machine, None, Cause.SCALED_DOWN, "target from 8 to 0", "", START)
    Node.objects.filter(name="elsewhere").update(name="node-1")
    api = Api({"node-1": world(Pod("a", grace=100, stops_after=60))}, machine_label=str(machine.pk))
    api.drive(cluster)
    drain.refresh_from_db()
    assert (drain.node_uid, drain.state) == ("uid-node-1", State.TERMINATING)
    assert Node.objects.get().draining
    cluster.refresh_from_db()
    assert cluster.allocated_preemptible_gpus == 0


def test_a_notice_between_the_last_look_and_the_release_of_the_lease_does_not_wait_for_the_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own hint finds the lease taken (aws/aws-node-termination-handler#310: the last of ten notices came too late)."""
    cluster = fleet("node-1", "node-2")
    api = Api({"node-1": world(Pod("a", stops_after=20)), "node-2": world(Pod("b", stops_after=20))})
    begin(cluster, "node-1")
    release, late = leases.release, []

    def release_after_a_notice(held: leases.Held) -> None:
        if not late:
            late.append(begin(cluster, "node-2"))
        release(held)

    monkeypatch.setattr(leases, "release", release_after_a_notice)
    api.drive(cluster)
    [drain] = late
    drain.refresh_from_db()
    assert drain.state == State.TERMINATING
