"""A pool that lives, in memory: a provider with every fault that real ones have, and workers that may stop between any two acts.

The rows, the leases and the provider are models; what decides (`plan`, the back-off, the difference) is the console's own. A
worker goes through the acts of `capacity.reconcile` one by one, so that anything may happen between two of them: another takes
over its lease, it dies, the provider's answer is late, lost, or comes for a request that was sent long ago. The real worker does
the same on real rows in `test_reconcile`.
"""

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from console.capacity.models import Drain
from console.capacity.pools.backoff import Backoff, after_run, returned
from console.capacity.pools.difference import Coming, Difference, Waiting, difference_of
from console.capacity.pools.plan import GIVEN_UP, ClusterView, Plan, PoolView, plan
from console.capacity.pools.victims import MachineView
from console.clusters.models import ComputeClass, Machine
from tests.capacity.faulty_provider import FaultyProvider

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)
GIVE_UP = timedelta(minutes=15)
SETTLES = timedelta(seconds=60)  # as `capacity.inputs`: how long a list may be older than a launch
STANDARD, PREEMPTIBLE = ComputeClass.STANDARD, ComputeClass.PREEMPTIBLE
State = Machine.State
ENDED = (State.GONE, State.GIVEN_UP)
ORDER = (State.ASKED, State.BOOTING, State.JOINED, State.LEAVING, State.GONE)
Key = tuple[uuid.UUID, ComputeClass]


def an_id(number: int) -> uuid.UUID:
    return uuid.UUID(int=number)


@dataclass
class Worker:
    """One run: what it has heard, decided and been answered. `act` is the next of its acts."""

    fence: int
    act: int = 0
    doubtful: set[uuid.UUID] = field(default_factory=set)
    back: set[uuid.UUID] = field(default_factory=set)
    heard: tuple[int, int, int] | None = None  # total, free, owed
    listed: set[uuid.UUID] = field(default_factory=set)
    known: dict[uuid.UUID, bool] = field(default_factory=dict)
    fresh: set[uuid.UUID] = field(default_factory=set)
    plan: Plan = field(default_factory=Plan)
    orders: list[uuid.UUID] = field(default_factory=list)
    ends: list[uuid.UUID] = field(default_factory=list)
    answers: dict[uuid.UUID, str] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)


class World:
    """Everything. `decided` is called with each plan and what it was made from."""

    def __init__(self, total: int, clusters: int, decided: "Callable[[World, PoolView, list[MachineView], Plan], None]") -> None:
        self.provider = FaultyProvider(total)
        self.now = NOON
        self.clusters = {
            an_id(number): ClusterView(an_id(number), f"cluster-{number}", 1, 0) for number in range(1, clusters + 1)
        }
        self.rows: dict[uuid.UUID, MachineView] = {}
        self.gone_at: dict[uuid.UUID, datetime] = {}
        self.cause: dict[uuid.UUID, Drain.Cause] = {}  # of open drains
        self.ending: set[uuid.UUID] = set()  # of these, machines that the provider was told to end
        self.fence = 0
        self.workers: list[Worker] = []
        self.free_before = 0
        self.backoff = Backoff()
        self.waiting: Counter[Key] = Counter()
        self.refused: dict[uuid.UUID, datetime] = {}
        self._decided = decided
        self._next = 1000

    # Rows as the plan sees them

    def views(self, listed: set[uuid.UUID] | None) -> list[MachineView]:
        found = []
        for token, row in self.rows.items():
            if row.state in ENDED:
                outlived = row.has_node and (self.now - self.gone_at[token] > SETTLES or token in (listed or ()))
                if not outlived:
                    continue
            found.append(self._judged(row, listed))
        return found

    def _judged(self, row: MachineView, listed: set[uuid.UUID] | None) -> MachineView:
        """As `capacity.inputs` judges whether a machine is lost."""
        young = self.now - row.asked_at < SETTLES
        if listed is None or row.state not in (State.BOOTING, State.JOINED) or row.ready or young or row.id in listed:
            return row
        return replace(row, lost="the provider no longer has this machine", returns=False)

    def cluster_views(self) -> list[ClusterView]:
        refused = {cluster for cluster, until in self.refused.items() if self.now < until}
        return [replace(each, blocked="refused") if each.id in refused else each for each in self.clusters.values()]

    def pool_view(self, worker: Worker, next_try_at: datetime | None) -> PoolView:
        total, free, owed = worker.heard or (self.provider.total, 0, 0)
        left_over = {token for token in worker.listed if self.rows[token].state in ENDED}
        back = worker.back | self._returning() | left_over
        return PoolView(total, free, owed, len(back), heard=worker.heard is not None, next_try_at=next_try_at)

    def _returning(self) -> set[uuid.UUID]:
        alive_and_draining = {token for token in self.cause if self.rows[token].state in Machine.ALIVE}
        return alive_and_draining | {token for token, row in self.rows.items() if row.state == State.LEAVING}

    def counts(self) -> Counter[Key]:
        return Counter((row.cluster, row.compute_class) for row in self.rows.values() if row.counts)

    def _write(self, token: uuid.UUID, **what: object) -> None:
        before = self.rows[token]
        after = self.rows[token] = replace(before, **what)  # type: ignore[arg-type]
        if after.state in ENDED:
            self.gone_at.setdefault(token, self.now)
        if before.state in ENDED:
            assert after.state in ENDED, "a machine that was given up or is gone never counts again"
        elif after.state != State.GIVEN_UP:
            assert ORDER.index(after.state) >= ORDER.index(before.state)

    # A worker's acts

    def begin(self) -> None:
        """Take the lease, over whoever holds it."""
        self.fence += 1
        self.workers.append(Worker(self.fence))

    def step(self, worker: Worker) -> None:
        """One act. A worker whose lease was taken over writes nothing more, but what it was about to send may still go out."""
        acts = (self._read, self._listen, self._decide, self._send, self._finish)
        if worker.act in (2, 4) and worker.fence != self.fence:
            self.workers.remove(worker)
            return
        done = acts[worker.act](worker)
        if done:
            worker.act += 1
        if worker.act == len(acts):
            self.workers.remove(worker)

    def _read(self, worker: Worker) -> bool:
        doubtful = {token for token, row in self.rows.items() if row.state in (State.ASKED, State.LEAVING)}
        worker.doubtful, worker.back = doubtful - set(self.cause), self._returning()
        return True

    def _listen(self, worker: Worker) -> bool:
        it = self.provider
        if not it.silent:
            worker.heard = (it.total, it.free, it.owed)
            worker.listed = it.live - it.omits
            worker.known = {token: token in it.live for token in worker.doubtful}
        return True

    def _decide(self, worker: Worker) -> bool:
        for token, there in worker.known.items():
            state = self.rows[token].state if token in self.rows else None
            if there and state == State.ASKED:
                self._write(token, state=State.BOOTING)
            if not there and state == State.LEAVING:
                self._write(token, state=State.GONE)
        listed = worker.listed if worker.heard else None
        worker.backoff = returned(self.backoff, self.free_before, worker.heard[1]) if worker.heard else self.backoff
        view, machines = self.pool_view(worker, worker.backoff.next_try_at), self.views(listed)
        clusters = self.cluster_views()
        worker.plan = plan(view, clusters, machines, self.now, GIVE_UP)
        self._decided(self, view, machines, worker.plan)
        self._apply(worker, {each.id: each for each in machines})
        if worker.heard:
            after = self.pool_view(worker, worker.backoff.next_try_at)
            again = plan(after, clusters, self.views(listed), self.now, GIVE_UP)
            assert again.settled, "what was decided and written leaves nothing more to decide"
            may_try = worker.backoff.next_try_at is None or self.now >= worker.backoff.next_try_at
            asked = [token for token, row in self.rows.items() if row.state == State.ASKED]
            worker.orders = asked if may_try else []
        leaving = [token for token, row in self.rows.items() if row.state == State.LEAVING and token not in self.cause]
        worker.ends = leaving + [
            token for token in sorted(worker.listed) if self.rows[token].state in ENDED and not self.rows[token].has_node
        ]
        return True

    def _apply(self, worker: Worker, views: dict[uuid.UUID, MachineView]) -> None:
        for launch in worker.plan.launches:
            self._next += 1
            token = an_id(self._next)
            worker.fresh.add(token)
            self.rows[token] = MachineView(token, launch.cluster, launch.compute_class, State.ASKED, gpus=8, asked_at=self.now)
        for removal in worker.plan.removals:
            state = State.LEAVING if views[removal.machine].returns else State.GONE
            self._write(removal.machine, state=State.GIVEN_UP if removal.reason == GIVEN_UP else state)
        for start in worker.plan.drains:
            if not views[start.machine].returns and self.rows[start.machine].state not in ENDED:
                self._write(start.machine, state=State.GONE)
            self._write(start.machine, draining=True)
            self.cause[start.machine] = start.cause

    def _send(self, worker: Worker) -> bool:
        """One request; True when there are no more."""
        if worker.orders:
            token = worker.orders.pop()
            worker.answers[token] = self.provider.launch(token)
        elif worker.ends:
            token = worker.ends.pop()
            row = self.rows[token]
            assert row.state in (State.LEAVING, *ENDED), "only what was written off is ended"
            self.provider.end(token)
        return not worker.orders and not worker.ends

    def _finish(self, worker: Worker) -> bool:
        if worker.heard is None:
            return True
        waiting = Counter(worker.plan.waiting)
        launched = 0
        for token, answer in worker.answers.items():
            row = self.rows[token]
            launched += answer == "given"
            if answer == "given" and row.state == State.ASKED:
                self._write(token, state=State.BOOTING)
            if answer in ("none free", "refused") and row.state == State.ASKED:
                if answer == "none free":
                    waiting[row.cluster, row.compute_class] += 1
                else:
                    self.refused[row.cluster] = self.now + timedelta(seconds=60)
                if token in worker.fresh:
                    del self.rows[token]
                else:  # an older request of the same token may still be on its way
                    self._write(token, state=State.GIVEN_UP)
        self.backoff = after_run(worker.backoff, bool(waiting), self.now, 0)
        self.waiting = waiting
        self.free_before = max(0, worker.heard[1] - launched)
        return True

    def whole_run(self) -> None:
        self.begin()
        worker = self.workers[-1]
        while worker in self.workers:
            self.step(worker)

    # What others do

    def drained(self, token: uuid.UUID) -> None:
        """A drain's end: terminated, confirmed, its node removed."""
        self.ending.add(token)
        if self.provider.end(token) == "ended" and token not in self.provider.live:
            del self.cause[token]
            state = self.rows[token].state
            self._write(token, draining=False, has_node=False, ready=False, state=state if state in ENDED else State.GONE)

    def kept(self, token: uuid.UUID) -> None:
        """A person opens a node that was on its way out for our convenience only."""
        if self.cause[token] == Drain.Cause.SCALED_DOWN and token not in self.ending and self.rows[token].state not in ENDED:
            del self.cause[token]
            self._write(token, draining=False, kept=True)

    def asked_anew(self, cluster: uuid.UUID, **numbers: int) -> None:
        self.clusters[cluster] = replace(self.clusters[cluster], **numbers)  # type: ignore[arg-type]
        for token, row in self.rows.items():
            if row.cluster == cluster and row.kept:
                self.rows[token] = replace(row, kept=False)

    def block(self, cluster: uuid.UUID, why: str) -> None:
        self.clusters[cluster] = replace(self.clusters[cluster], blocked=why)

    def registers(self, token: uuid.UUID, ready: bool) -> None:
        """A live machine's node, at any time, as the watch would write it: also of one that was given up or called off."""
        row = self.rows[token]
        if ready and row.state in (State.ASKED, State.BOOTING):
            self._write(token, state=State.JOINED)
        self.rows[token] = replace(
            self.rows[token], has_node=True, ready=ready, was_ready=row.was_ready or ready, idle=False, unsaved=1.0
        )

    def machine_dies(self, token: uuid.UUID) -> None:
        """At the provider, without a word; its node stops being Ready."""
        self.provider.live.discard(token)
        self.provider.ended.add(token)
        self.rows[token] = replace(self.rows[token], ready=False)

    def difference(self, of: ClusterView) -> Difference:
        """What a page says, from rows only, at any moment."""
        mine = [row for row in self.rows.values() if row.counts and (row.cluster, row.compute_class) == (of.id, PREEMPTIBLE)]
        coming = [Coming(row.gpus, row.asked_at, "not Ready" if row.was_ready else "") for row in mine if not row.ready]
        short = self.waiting[of.id, PREEMPTIBLE] * 8
        wait = Waiting(short, self.now, None) if short else None
        return difference_of(of.preemptible * 8, sum(row.gpus for row in mine if row.ready), coming, wait, of.blocked)
