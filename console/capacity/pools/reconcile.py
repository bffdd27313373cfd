"""One pool made to match what is wanted of it: ask the provider, decide, write the intent, act, write what came of it.

One run at a time, under the pool's lease; each of its transactions begins by proving that the lease is still its own, so a run
that was frozen writes nothing when it wakes (repository-service-tuf/repository-service-tuf-worker#151). A run may die anywhere:
the next one looks up every launch whose answer nobody wrote down before it does anything else (DESIGN 4).
No transaction is open while the provider is asked.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from console.capacity.models import Drain, Pool, PoolWake
from console.capacity.pools import applying, asking, waits
from console.capacity.pools.asking import Done, Heard
from console.capacity.pools.backoff import Backoff, after_run, returned
from console.capacity.pools.inputs import Missing, cluster_views, machine_views, machines_of, pool_view, returning
from console.capacity.pools.plan import Plan, plan
from console.capacity.providers import provider as provider_named
from console.capacity.providers.base import Given, NoCapacity, Order, Provider, ProviderError, Refused, Unclear
from console.capacity.queries import automation
from console.clusters import leases
from console.clusters.leases import Held, LeaseLost
from console.clusters.models import Cluster, ComputeClass, Machine
from console.timeline.changes import Change, change

LEASE = "pool"
NO_NEW_ROUND = 8.0  # seconds after the start; a round takes at most 8 more, and the task's limit is 20
SILENT = timedelta(seconds=5)  # while the provider does not answer; the sweep notices sooner when it does
SOON = timedelta(seconds=1)  # while an answer is unclear or a machine is on its way out
AT_LEAST = timedelta(seconds=60)  # a run with nothing to do still compares the provider's list with ours this often

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """What does not change during one. `dice` gives numbers between -1 and 1."""

    held: Held
    pool_id: UUID
    open_provider: Callable[[str], Provider]
    clock: Callable[[], datetime]
    dice: Callable[[], float]


def reconcile_pool(
    pool_id: UUID,
    owner: str,
    *,
    open_provider: Callable[[str], Provider] = provider_named,
    clock: Callable[[], datetime] = timezone.now,
    dice: Callable[[], float] = lambda: random.uniform(-1, 1),  # noqa: S311  (jitter, no secret)
) -> bool:
    """Rounds until nothing more is wanted or the time is up. False where another run holds the pool, or took it over.

    What is wanted between the last look and the release finds the lease taken, so there is one more look after it.
    """
    until = monotonic() + NO_NEW_ROUND
    ran = False
    while not ran or (monotonic() < until and PoolWake.objects.filter(pool=pool_id).exists()):
        held = leases.take(LEASE, pool_id, owner)
        if held is None:
            return ran
        try:
            _rounds(Run(held, pool_id, open_provider, clock, dice), until)
        except LeaseLost:
            log.warning("run_overtaken", extra={"pool": str(pool_id), "owner": owner})
            return False
        finally:
            leases.release(held)
        ran = True
    return True


def _rounds(run: Run, until: float) -> None:
    while _round(run) and monotonic() < until:
        leases.renew(run.held)


@dataclass(frozen=True)
class Decided:
    """What the first transaction of a round leaves for the provider and for the second."""

    plan: Plan
    orders: Sequence[Order]
    ends: Collection[UUID]
    backoff: Backoff
    blocked: Collection[UUID]  # clusters that nothing was decided about


def _round(run: Run) -> bool:
    """One pass. True where something was wanted meanwhile, so that another should follow at once."""
    pool = Pool.objects.select_related("gpu_type").get(pk=run.pool_id)
    wakes = list(PoolWake.objects.filter(pool=pool).values_list("pk", flat=True))
    back = returning(pool)
    # Its node may come before the provider's answer is written down; without that, nobody has said that it was asked for.
    unsaid = Q(state__in=Machine.ALIVE, provider_id="")
    doubtful = Machine.objects.filter(machines_of(pool)).filter(unsaid | Q(state=Machine.State.LEAVING))
    tokens = list(doubtful.exclude(drains__state__in=Drain.OPEN).values_list("pk", flat=True))
    heard = asyncio.run(asking.listen(run.open_provider(pool.provider), pool, tokens))
    if heard.silence:
        log.warning("provider_silent", extra={"pool": str(pool.pk), "why": heard.silence})
    leases.renew(run.held)
    decided = _decide(run, heard, back)
    done = Done()
    if decided.orders or decided.ends:
        done = asyncio.run(asking.carry_out(run.open_provider(pool.provider), decided.orders, decided.ends))
        leases.renew(run.held)
    _finish(run, heard, decided, done, wakes)
    return PoolWake.objects.filter(pool=pool).exists()


def _lock(run: Run, made: Change) -> tuple[Pool, dict[UUID, Cluster]]:
    """Prove the lease, then lock the pool and its clusters: nobody changes a target while it is decided about."""
    leases.guard(run.held)
    pool = made.lock(Pool.objects.select_related("gpu_type").filter(pk=run.pool_id))[0]
    clusters = made.lock(Cluster.objects.filter(region=pool.region_id, gpu_type=pool.gpu_type_id))
    return pool, {cluster.pk: cluster for cluster in clusters}


def _decide(run: Run, heard: Heard, back: Collection[UUID]) -> Decided:
    """Write what the look-ups told, then decide on rows that nobody else can change, and write that."""
    if heard.known:
        with change(run.clock()) as made:
            _lock(run, made)
            applying.confirm(
                made, {token: found for token, found in heard.known.items() if isinstance(found, Given) and found.there}
            )
            applying.note_gone(made, [token for token, found in heard.known.items() if _is_gone(found)])
    with change(run.clock()) as made:
        pool, clusters = _lock(run, made)
        switch = automation()
        backoff = Backoff(pool.waiting_since, pool.tries, pool.next_try_at)
        if heard.state is not None:
            backoff = returned(backoff, 0 if pool.silent_since else pool.free_machines, heard.state.free)
        machines = machine_views(pool, list(clusters.values()), heard.listing, made.now)
        views = cluster_views(list(clusters.values()), switch, made.now, pool.gpu_type.gpus_per_node)
        decided = plan(
            pool_view(pool, heard.state, switch, {*back, *returning(pool), *_left_over(heard)}, backoff.next_try_at),
            views,
            machines,
            made.now,
            timedelta(seconds=settings.GIVE_UP_AFTER),
        )
        applying.apply(made, pool, clusters, decided, machines)
    orders = _orders(pool, heard) if heard.state is not None and switch.on and _may_try(backoff, made.now) else []
    return Decided(decided, orders, _ends(pool, heard), backoff, {view.id for view in views if view.blocked})


def _is_gone(found: object) -> bool:
    return found is None or (isinstance(found, Given) and not found.there)


def _may_try(backoff: Backoff, now: datetime) -> bool:
    return backoff.next_try_at is None or now >= backoff.next_try_at


def _orders(pool: Pool, heard: Heard) -> list[Order]:
    """Every launch that is committed and not confirmed by the provider, this round's and older ones, by their own tokens.

    Not one whose look-up failed just now: it may be there, and is asked for again only where the provider says that it is not.
    """
    asked = Machine.objects.filter(machines_of(pool)).filter(
        state=Machine.State.ASKED, cluster__status=Cluster.Status.READY, cluster__mode=Cluster.Mode.ACT
    )
    doubtful = heard.doubtful
    return [applying.order(pool, machine) for machine in asked.order_by("asked_at", "pk") if machine.pk not in doubtful]


def _ends(pool: Pool, heard: Heard) -> set[UUID]:
    """Machines to terminate: those leaving without a drain, and those the provider still has that we gave up or know as gone.

    One of the latter that became a node meanwhile is drained like any other (see `plan`), for pods may have come to it.
    """
    leaving = Machine.objects.filter(machines_of(pool)).filter(state=Machine.State.LEAVING, cluster__mode=Cluster.Mode.ACT)
    ends = set(leaving.exclude(drains__state__in=Drain.OPEN).values_list("pk", flat=True))
    acting = Machine.objects.filter(pk__in=_left_over(heard), nodes=None, cluster__mode=Cluster.Mode.ACT)
    return ends | set(acting.values_list("pk", flat=True))


def _left_over(heard: Heard) -> set[UUID]:
    """Machines that we wrote off and the provider still has: they come back to it, so no other is taken in their stead."""
    there = heard.listing.there if heard.listing is not None else ()
    return set(Machine.objects.filter(pk__in=there, state__in=Missing).values_list("pk", flat=True))


def _finish(run: Run, heard: Heard, decided: Decided, done: Done, wakes: Collection[int]) -> None:
    """Write what came of it, and when to look again. The reasons that were read before the start are used up now."""
    with change(run.clock()) as made:
        pool, clusters = _lock(run, made)
        backoff = decided.backoff
        if heard.state is not None:
            waiting = _settle(made, clusters, decided, done, heard.known.keys())
            backoff = after_run(backoff, bool(waiting), made.now, run.dice())
            came = {order.cluster for order in decided.orders if isinstance(done.launched.get(order.token), Given)}
            known = [cluster for cluster in clusters.values() if cluster.pk not in decided.blocked]
            waits.record(made, known, waiting, came, pool.gpu_type.gpus_per_node, backoff.next_try_at)
        unclear = bool(decided.ends or heard.doubtful) or any(isinstance(answer, Unclear) for answer in done.launched.values())
        due_at = made.now + SILENT if heard.state is None else min(_due(pool, backoff, unclear, made.now))
        launched = sum(isinstance(answer, Given) for answer in done.launched.values())
        _write_pool(made, pool, heard, launched, backoff, due_at)
        PoolWake.objects.filter(pk__in=list(wakes)).delete()


def _settle(
    made: Change, clusters: dict[UUID, Cluster], decided: Decided, done: Done, asked_before: Collection[UUID]
) -> Counter[tuple[UUID, ComputeClass]]:
    """Write the answers to launches. Returns what waits: what the plan found nothing free for, and what came to nothing since."""
    cluster_of = {order.token: clusters[order.cluster] for order in decided.orders}
    failed = {token: answer for token, answer in done.launched.items() if isinstance(answer, ProviderError)}
    applying.confirm(made, {token: answer for token, answer in done.launched.items() if isinstance(answer, Given)})
    waiting: Counter[tuple[UUID, ComputeClass]] = Counter(decided.plan.waiting)
    none_free = [token for token, answer in failed.items() if isinstance(answer, NoCapacity)]
    waiting.update(applying.forget(made, none_free, asked_before))
    refused = {token: str(answer) for token, answer in failed.items() if isinstance(answer, Refused)}
    applying.forget(made, refused, asked_before)
    for cluster, why in {cluster_of[token].pk: why for token, why in refused.items()}.items():
        waits.refuse(made, clusters[cluster], why)
    return waiting


def _due(pool: Pool, backoff: Backoff, unclear: bool, now: datetime) -> list[datetime]:
    """When to run again although nothing may ask: the next try, a doubt, a machine to be given up, or simply a look."""
    moments = [now + AT_LEAST]
    if backoff.next_try_at is not None:
        moments.append(backoff.next_try_at)
    if unclear:
        moments.append(now + SOON)
    give_up = timedelta(seconds=settings.GIVE_UP_AFTER)
    coming = Machine.objects.filter(machines_of(pool)).filter(
        first_ready_at=None, state__in=Machine.ALIVE, asked_at__gt=now - give_up
    )
    oldest = coming.order_by("asked_at").values_list("asked_at", flat=True).first()
    if oldest is not None:
        moments.append(oldest + give_up)
    return moments


SHOWN = ("total_machines", "free_machines", "owed_machines", "silent_since", "waiting_since", "tries", "next_try_at")


def _write_pool(made: Change, pool: Pool, heard: Heard, launched: int, backoff: Backoff, due_at: datetime) -> None:
    """The pool's own row: numbered where a page would show it differently, quietly where only our own clockwork moved."""
    before = [getattr(pool, name) for name in SHOWN]
    if heard.state is not None:
        pool.total_machines, pool.owed_machines = heard.state.total, heard.state.owed
        pool.free_machines = max(0, heard.state.free - launched)
        pool.seen_version, pool.seen_at, pool.silent_since = heard.state.version, made.now, None
    else:
        pool.silent_since = pool.silent_since or made.now
    pool.waiting_since, pool.tries, pool.next_try_at = backoff.since, backoff.tries, backoff.next_try_at
    pool.due_at = due_at
    quiet = ("seen_version", "seen_at", "due_at")
    if before != [getattr(pool, name) for name in SHOWN]:
        made.save(pool.stream, pool, *SHOWN, *quiet)
    else:
        Pool.objects.filter(pk=pool.pk).update(**{name: getattr(pool, name) for name in quiet})
